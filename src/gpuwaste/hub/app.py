"""The API as an application: its routes, and one form for every rejection and error."""

from typing import TYPE_CHECKING, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from gpuwaste.core import log_event
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.refusal import BAD, LATER, NOT_FOUND, Refusal
from gpuwaste.hub.exchange import Exchange, json_response
from gpuwaste.hub.middleware import HEADERS, KnownMethods, SafeHeaders, Timing
from gpuwaste.hub.models import ErrorAnswer
from gpuwaste.hub.mount import Mount
from gpuwaste.hub.openapi import DescribedApp, answers
from gpuwaste.hub.page_answers import no_such_page
from gpuwaste.hub.routes import add_routes

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig  # newer than the oldest FastAPI that does so

_UNSERVED: Final = log_event.error(
    "request-failed: cannot answer a request: {error}",
    "Slurm, munge or the store did not answer. The client retries. Out of Memory: raise `[hub] memory_mb`.",
)
_ERRORS: Final = answers(ErrorAnswer, "4XX", "5XX", description="An error")

_GZIP_LEVEL: Final = 5
# FastAPI sends traces and metrics to an endpoint that its environment names, and fails without the packages for that.
_NO_TELEMETRY: Final["TelemetryConfig"] = {"auto_configure": False, "tracing": False, "metrics": False, "logs": False}


def build_app(exchange: Exchange, version: str) -> FastAPI:
    """Return the application."""
    app = DescribedApp(
        title="gpuwaste hub",
        version=version,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # it redirects to whatever the Host header names, before any check
        responses=_ERRORS,
        telemetry=_NO_TELEMETRY,
    )
    app.add_middleware(GZipMiddleware, compresslevel=_GZIP_LEVEL)
    app.add_middleware(KnownMethods)
    app.add_middleware(SafeHeaders)
    app.add_middleware(Timing, reading=exchange.reading)  # the last one added is the outermost
    _add_errors(app, exchange)
    add_routes(app, exchange)
    Mount(app, exchange).all()
    return app


def _add_errors(app: FastAPI, exchange: Exchange) -> None:
    @app.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> Response:
        return _refused(refusal)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        if error.status_code == NOT_FOUND and "text/html" in request.headers.get("accept", ""):
            return no_such_page()
        return json_response({"error": str(error.detail)}, error.status_code, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def bad_parameter(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return json_response({"error": f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}"}, BAD)

    @app.exception_handler(GpuwasteError)
    async def unserved(_: Request, error: GpuwasteError) -> Response:
        exchange.failures.caused(_UNSERVED, type(error).__name__, error=error)
        return json_response({"error": "the hub cannot answer now: see its log"}, LATER)

    @app.exception_handler(Exception)
    async def defect(_: Request, error: Exception) -> Response:
        BUG.log(error, what="request")
        return json_response({"error": "a bug in the hub: see its log"}, 500, HEADERS)  # outside of every middleware


def _refused(refusal: Refusal) -> Response:
    headers = {"Connection": "close"} if refusal.closes else {}
    after = refusal.extra.get("retry_after")
    if after is not None:
        headers["Retry-After"] = str(after)
    return json_response(refusal.body(), refusal.status, headers)
