"""/ and /jobs, which redirect to other pages."""

from typing import Final
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from starlette.responses import RedirectResponse

from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.page_answers import SEE_OTHER

_LONGEST_ID: Final = 32


def add(app: FastAPI, _: Exchange) -> None:
    """Add the routes of this subject."""

    @app.get("/", include_in_schema=False)
    async def root() -> Response:
        return RedirectResponse("/me", SEE_OTHER)

    @app.get("/jobs", include_in_schema=False)
    async def find_job(request: Request) -> Response:
        """Redirect from the header's form to a job's page."""
        wanted = request.query_params.get("id", "").strip()[:_LONGEST_ID]
        return RedirectResponse(f"/jobs/{quote(wanted, safe='+')}" if wanted else "/me", SEE_OTHER)
