"""The pages for browsers: /me, /users/U, /accounts/A, /jobs/ID, /now, /verdicts, /models, as .json too; /helpdesk."""

from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from starlette.datastructures import QueryParams
from starlette.responses import RedirectResponse

from gpuwaste.core.scope import Scope
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.pages.answers import SEE_OTHER, Pages
from gpuwaste.hub.pages.forms import split_form
from gpuwaste.hub.pages.jobs import JobViews
from gpuwaste.hub.pages.now import NowViews
from gpuwaste.hub.pages.usage import UsageViews
from gpuwaste.hub.pages.verdicts import VerdictViews
from gpuwaste.show.environment import Frame

_LONGEST_ID: Final = 32


def add(app: FastAPI, exchange: Exchange) -> None:
    """Add the routes of this subject."""
    services = exchange.services
    pages = Pages(exchange, exchange.threads.reports)
    shared = Pages(exchange, exchange.threads.readers)
    by = partial(_by_form, pages, shared)
    usage = UsageViews(services.reads)
    jobs = JobViews(services.reads, services.disputes, services.visitors, services.events)
    verdicts = VerdictViews(services.verdicts, services.disputes, services.health)

    @app.get("/", include_in_schema=False)
    async def root() -> Response:
        return RedirectResponse("/me", SEE_OTHER)

    @app.get("/users/{user}", include_in_schema=False)
    async def user_page(request: Request, user: str) -> Response:
        return await by(user).answer(request, lambda scope, frame: usage.user(scope, frame, request.query_params, user))

    @app.get("/accounts/{account}", include_in_schema=False)
    async def account_page(request: Request, account: str) -> Response:
        return await by(account).answer(
            request, lambda scope, frame: usage.account(scope, frame, request.query_params, account)
        )

    @app.get("/jobs", include_in_schema=False)
    async def find_job(request: Request) -> Response:
        """Lead from the header's form to a job's page."""
        wanted = request.query_params.get("id", "").strip()[:_LONGEST_ID]
        return RedirectResponse(f"/jobs/{quote(wanted, safe='+')}" if wanted else "/me", SEE_OTHER)

    @app.get("/jobs/{job_id}", include_in_schema=False)
    async def job(request: Request, job_id: str) -> Response:
        return await by(job_id).answer(
            request, lambda scope, frame: jobs.answer(scope, frame, request.query_params, job_id)
        )

    @app.post("/jobs/{job_id}/dispute", include_in_schema=False)
    async def dispute(request: Request, job_id: str) -> Response:
        return await pages.order(request, lambda scope, _, body: jobs.dispute(scope, job_id, body))

    def add_forms(path: str, answer: Callable[[Scope, Frame, QueryParams, str], Response], *forms: str) -> None:
        async def route(request: Request) -> Response:
            form = request.scope["path"].removeprefix(path)
            return await by(form).answer(request, lambda scope, frame: answer(scope, frame, request.query_params, form))

        for form in ("", *forms):
            app.add_api_route(f"{path}{form}", route, methods=["GET"], include_in_schema=False)

    add_forms("/me", usage.me, ".json", ".csv")
    add_forms("/now", NowViews(services.now, services.events).answer, ".json", ".csv")
    add_forms("/helpdesk", jobs.helpdesk)
    add_forms("/verdicts", verdicts.listed, ".json", ".csv")
    add_forms("/models", verdicts.model, ".json")


def _by_form(pages: Pages, shared: Pages, name: str) -> Pages:
    """Return what answers for a name: forms other than pages are long documents, of which few are made at once."""
    return pages if split_form(name)[1] else shared
