"""/v1/programs: runs of the caller's programs."""

from fastapi import FastAPI, Request, Response

from gpuwaste.hub.exchange import Exchange, Name
from gpuwaste.hub.openapi import answers
from gpuwaste.jobs.program_estimate import ProgramRunsAnswer


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    programs = exchange.services.program_runs

    @app.get("/v1/programs/runs", responses=answers(ProgramRunsAnswer))
    async def program_runs(request: Request, program: Name) -> Response:
        """Return the caller's own completed runs whose comment names this program's fingerprint, the newest first."""
        return await exchange.document(request, lambda scope: programs.of(scope, program))
