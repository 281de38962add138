"""The API: routes that read a request, hand it to a thread, and put its answer on the wire."""

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.hub.backup import Backups
from gpuwaste.hub.batch_taker import Taken
from gpuwaste.hub.body import read_body
from gpuwaste.hub.gate import Gate, GateLimits
from gpuwaste.hub.identity import Identity
from gpuwaste.hub.ingest import Ingest
from gpuwaste.hub.map import ClusterMap
from gpuwaste.hub.metrics import HubMetrics
from gpuwaste.hub.models import (
    AckAnswer,
    BackupAnswer,
    Document,
    ErrorAnswer,
    HealthAnswer,
    HistoryAnswer,
    MapAnswer,
    NoticeAnswer,
    PredictAnswer,
    ScoreAnswer,
    VerdictsAnswer,
)
from gpuwaste.hub.notify.service import MAX_NOTICES, NoticeQuestion, NoticeService
from gpuwaste.hub.predictions import Predictions
from gpuwaste.hub.questions import NoticeRunQuestion, NoticeWish, PredictQuestion, body_schema
from gpuwaste.hub.reads import MAX_HISTORY, Reads, ReportQuestion
from gpuwaste.hub.refusal import BAD, FORBIDDEN, LATER, Refusal, not_found
from gpuwaste.hub.roles import Scope as ReadScope
from gpuwaste.hub.turns import Turns
from gpuwaste.hub.verdict_ingest import VerdictIngest
from gpuwaste.hub.verdict_reads import MAX_VERDICTS, VerdictQuestion, VerdictReads

_log = logging.getLogger(__name__)
_MAX_NUMBER: Final = 2**40
_PART: Final = 256 * 1024
_ERRORS: Final[dict[int | str, dict[str, Any]]] = {"4XX": {"model": ErrorAnswer}, "5XX": {"model": ErrorAnswer}}
Number = Annotated[int, Query(ge=0, le=_MAX_NUMBER)]
Name = Annotated[str, Query(min_length=1, max_length=256)]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may take: bytes of a body, seconds for sending it, seconds of waiting for the map, the gate."""

    max_body_bytes: int = 1024 * 1024
    body_deadline_s: float = 30.0
    map_wait_s: float = 10.0
    gate: GateLimits = field(default_factory=GateLimits)


@dataclass(frozen=True, slots=True)
class Services:
    """What the routes call."""

    identity: Identity
    ingest: Ingest
    reads: Reads
    cluster_map: ClusterMap
    metrics: HubMetrics
    predictions: Predictions
    verdicts: VerdictReads
    verdict_ingest: VerdictIngest
    notices: NoticeService
    backups: Backups
    health: Callable[[], dict[str, Any]]
    turns: Turns = field(default_factory=Turns)


def build_app(services: Services, version: str, limits: Limits) -> FastAPI:
    """Return the application."""
    app = FastAPI(title="gpuwaste hub", version=version, docs_url=None, redoc_url=None, responses=_ERRORS)
    app.add_middleware(Timing, metrics=services.metrics)
    _add_errors(app)
    _add_ingest(app, services, limits)
    _add_documents(app, services)
    _add_verdicts(app, services)
    _add_predictions(app, services, limits)
    _add_notices(app, services)
    _add_notice_orders(app, services, limits)
    _add_streams(app, services, limits)
    _add_backups(app, services, limits)
    _add_health(app, services)
    return app


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> Response:
        return _refused(refusal, {})

    @app.exception_handler(HTTPException)
    async def http_error(_: Request, error: HTTPException) -> Response:
        return _json({"error": str(error.detail)}, error.status_code)

    @app.exception_handler(RequestValidationError)
    async def bad_parameter(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return _json({"error": f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}"}, BAD)

    @app.exception_handler(GpuwasteError)
    async def unserved(_: Request, error: GpuwasteError) -> Response:
        _log.error("a request is not served: %s", error)
        return _json({"error": "the hub cannot answer now: see its log"}, LATER)

    @app.exception_handler(Exception)
    async def defect(_: Request, error: Exception) -> Response:
        _log.error("defect in a request: %s: %s", type(error).__name__, error)
        return _json({"error": "a defect of the hub: see its log"}, 500)


def _add_ingest(app: FastAPI, services: Services, limits: Limits) -> None:
    gate = Gate(limits.gate, lambda: services.metrics.put_off())  # noqa: PLW0108 the wire reference has no parts

    async def taken(request: Request, take: Callable[[str, str, bytes], Taken]) -> Response:
        try:
            with gate.visit() as visit:
                body = await _body(request, limits, visit.counted(request.stream()))
                if isinstance(body, Response):
                    return body
                answer = await visit.in_thread(lambda: take(_authorization(request), _target(request), body))
        except Refusal as refusal:
            # What is left of the body is not read: the connection ends with the answer.
            return _refused(refusal, {"Connection": "close"})
        return Response(answer.body, media_type="application/json", headers=answer.headers)

    @app.post("/v1/hours", responses={200: {"model": AckAnswer}})
    async def hours(request: Request) -> Response:
        """Take a batch of hours: NDJSON, the envelope first."""
        return await taken(request, services.ingest.take)

    @app.post("/v1/verdicts", responses={200: {"model": AckAnswer}})
    async def take_verdicts(request: Request) -> Response:
        """Take a batch of verdicts: NDJSON, the envelope first; each id counts once."""
        return await taken(request, services.verdict_ingest.take)


def _add_documents(app: FastAPI, services: Services) -> None:
    reads = services.reads

    @app.get("/v1/report", responses={200: {"model": Document}})
    async def report(
        request: Request,
        *,
        user: Name | None = None,
        account: Name | None = None,
        cluster: Name | None = None,
        start: Number | None = None,
        end: Number | None = None,
        limit: Number | None = None,
    ) -> Response:
        """Report on a user, an account or a cluster; times are UTC seconds, the last seven days by default."""
        question = ReportQuestion(user, account, cluster, start, end, limit)
        return await _document(services, request, lambda scope: reads.report(scope, question))

    @app.get("/v1/jobs/{job_id}", responses={200: {"model": Document}})
    async def job(request: Request, job_id: str) -> Response:
        """Report on every run of one job: 7, 3_1 or 4+1."""
        return await _document(services, request, lambda scope: reads.job(scope, job_id))

    @app.get("/v1/top", responses={200: {"model": Document}})
    async def top(request: Request, since: Number | None = None, limit: Number | None = None) -> Response:
        """Tell who wastes now; `since` is UTC seconds, an hour ago by default."""
        return await _document(services, request, lambda scope: reads.top(scope, since, limit))


def _add_verdicts(app: FastAPI, services: Services) -> None:
    verdicts = services.verdicts

    @app.get("/v1/verdicts", responses={200: {"model": VerdictsAnswer}})
    async def listed(
        request: Request,
        *,
        user: Name | None = None,
        policy: Name | None = None,
        start: Number | None = None,
        end: Number | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_VERDICTS)] = 1000,
    ) -> Response:
        """List verdicts with how their jobs ended, the newest first; times are UTC seconds, the last seven days."""
        question = VerdictQuestion(user, policy, start, end, limit)
        return await _document(services, request, lambda scope: verdicts.listed(scope, question))

    @app.get("/v1/verdicts/score", responses={200: {"model": ScoreAnswer}})
    async def score(request: Request, since: Number | None = None) -> Response:
        """Score what was said since UTC second `since`, 30 days ago by default; for operators and advisors."""
        return await _document(services, request, lambda scope: verdicts.score(scope, since))

    @app.get("/v1/history/snapshot", responses={200: {"content": {"application/x-tar": {}}}})
    async def snapshot(request: Request) -> Response:
        """Hand out the state of the history as a tar, for an advisor that starts; for operators and advisors."""
        scope = await _scope(services, request)
        if not (scope.everything or scope.agent):
            raise Refusal(FORBIDDEN, "the history is for operators")
        file = await run_in_threadpool(services.predictions.snapshot)
        length = file.seek(0, os.SEEK_END)
        file.seek(0)

        def parts() -> Iterator[bytes]:
            with file:
                yield from iter(lambda: file.read(_PART), b"")

        return StreamingResponse(parts(), media_type="application/x-tar", headers={"Content-Length": str(length)})


def _add_predictions(app: FastAPI, services: Services, limits: Limits) -> None:
    predictions = services.predictions

    @app.get("/v1/predict", responses={200: {"model": PredictAnswer}})
    async def predict_job(request: Request, job: Name) -> Response:
        """Predict a job that Slurm has, by what was known at its submission: 7, 3_1 or 4+1."""
        return await _document(services, request, lambda scope: predictions.for_job(scope, job))

    @app.post("/v1/predict", responses={200: {"model": PredictAnswer}}, openapi_extra=body_schema(PredictQuestion))
    async def predict(request: Request) -> Response:
        """Predict jobs as they would be submitted now: JSON, the caller's own; an operator may name any user."""
        body = await _body(request, limits)
        if isinstance(body, Response):
            return body
        scope = await _scope(services, request, body)

        with services.turns.taken(scope):
            return _json(await run_in_threadpool(predictions.for_requests, scope, body))


def _add_notices(app: FastAPI, services: Services) -> None:
    notices = services.notices
    answers: dict[int | str, dict[str, Any]] = {200: {"model": NoticeAnswer}}

    @app.get("/v1/notices", responses=answers)
    async def listed(
        request: Request,
        *,
        user: Name | None = None,
        start: Number | None = None,
        end: Number | None = None,
        limit: Annotated[int, Query(ge=1, le=MAX_NOTICES)] = 1000,
    ) -> Response:
        """List who was told of his waste and who was not, and why; times are UTC seconds, the last 60 days."""
        question = NoticeQuestion(user, start, end, limit)
        return await _document(services, request, lambda scope: notices.listed(scope, question))

    @app.get("/v1/notices/preview", responses=answers)
    async def preview(request: Request, user: Name | None = None) -> Response:
        """Tell what a user would read if a period ended now: the caller, or anybody for an operator."""
        return await _document(services, request, lambda scope: notices.preview(scope, user))

    @app.get("/v1/notices/replay", responses=answers)
    async def replay(request: Request, start: Number, end: Number | None = None) -> Response:
        """Tell whom the periods between two UTC seconds would have told; for operators."""
        return await _document(services, request, lambda scope: notices.replay(scope, start, end))


def _add_notice_orders(app: FastAPI, services: Services, limits: Limits) -> None:
    notices = services.notices
    answers: dict[int | str, dict[str, Any]] = {200: {"model": NoticeAnswer}}

    async def ordered(request: Request, do: Callable[[ReadScope, bytes], dict[str, Any]]) -> Response:
        body = await _body(request, limits)
        if isinstance(body, Response):
            return body
        scope = await _scope(services, request, body)
        with services.turns.taken(scope):
            return _json(await run_in_threadpool(do, scope, body))

    @app.post("/v1/notices/run", responses=answers, openapi_extra=body_schema(NoticeRunQuestion))
    async def run(request: Request) -> Response:
        """Decide on the newest period now; a dry run notes nothing. For operators."""
        return await ordered(request, notices.run)

    @app.post("/v1/notices/wish", responses=answers, openapi_extra=body_schema(NoticeWish))
    async def wish(request: Request) -> Response:
        """Take the caller's word whether he wants digests."""
        return await ordered(request, notices.want)


def _add_streams(app: FastAPI, services: Services, limits: Limits) -> None:
    @app.get("/v1/history", responses={200: {"model": HistoryAnswer}})
    async def history(
        request: Request, after: Number = 0, limit: Annotated[int, Query(ge=1, le=MAX_HISTORY)] = 1000
    ) -> Response:
        """Tell what happened to runs after event `after`."""
        return await _document(services, request, lambda scope: services.reads.history(scope, after, limit))

    @app.get("/v1/map", responses={200: {"model": MapAnswer}})
    async def cluster_map(
        request: Request, node: Name, job: Annotated[int, Query(ge=1, lt=2**32)] | None = None
    ) -> Response:
        """Tell which run of a job, or which runs, hold what on a node; for agents only."""
        if not (await _scope(services, request)).agent:
            raise not_found()
        asked = services.cluster_map
        future = asked.ask_node(node) if job is None else asked.ask(node, job)
        try:
            async with asyncio.timeout(limits.map_wait_s):
                found = await asyncio.shield(asyncio.wrap_future(future))
        except TimeoutError as error:
            raise Refusal(LATER, "slurmctld has not answered yet: ask again") from error
        return _json({"jobs": found})


def _add_backups(app: FastAPI, services: Services, limits: Limits) -> None:
    backups = services.backups
    answers: dict[int | str, dict[str, Any]] = {200: {"model": BackupAnswer}}

    @app.post("/v1/backup", responses=answers)
    async def begin(request: Request) -> Response:
        """Begin to copy the store as of now, unless a copy is being made; for root, operators and staff."""
        body = await _body(request, limits)
        if isinstance(body, Response):
            return body
        return _json(await run_in_threadpool(backups.begin, await _scope(services, request, body)))

    @app.get("/v1/backup", responses=answers)
    async def stands(request: Request) -> Response:
        """Tell how the copy stands."""
        return await _document(services, request, backups.stands)

    @app.get("/v1/backup/file", responses={200: {"content": {"application/x-tar": {}}}})
    async def fetched(request: Request) -> Response:
        """Hand out the copy as a tar, once: it is whole where its last member is sums.json."""
        scope = await _scope(services, request)
        return StreamingResponse(backups.parts(scope), media_type="application/x-tar")


def _add_health(app: FastAPI, services: Services) -> None:
    @app.get("/v1/health", responses={200: {"model": HealthAnswer}})
    async def health() -> Response:
        """Tell how the hub stands; needs no credential and names no user."""
        return _json(await run_in_threadpool(services.health))

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(
            await run_in_threadpool(services.metrics.text), media_type="text/plain; version=0.0.4; charset=utf-8"
        )


def _refused(refusal: Refusal, headers: dict[str, str]) -> Response:
    after = refusal.extra.get("retry_after")
    return _json(refusal.body(), refusal.status, headers | ({} if after is None else {"Retry-After": str(after)}))


async def _body(request: Request, limits: Limits, chunks: AsyncIterator[bytes] | None = None) -> bytes | Response:
    """Return the request's body, or the answer that refuses it."""
    headers = request.headers
    try:
        return await read_body(
            chunks or request.stream(),
            length=headers.get("content-length"),
            encoding=headers.get("content-encoding", ""),
            max_bytes=limits.max_body_bytes,
            deadline_s=limits.body_deadline_s,
        )
    except ClientDisconnect as error:
        raise Refusal(BAD, "the body ended early") from error
    except Refusal as refusal:
        # What is left of the body is not read: the connection ends with the answer.
        return _refused(refusal, {"Connection": "close"})


async def _document(services: Services, request: Request, build: Callable[[ReadScope], dict[str, Any]]) -> Response:
    scope = await _scope(services, request)

    def answer() -> bytes:
        return json.dumps(build(scope), separators=(",", ":")).encode()

    with services.turns.taken(scope):
        return Response(await run_in_threadpool(answer), media_type="application/json")


async def _scope(services: Services, request: Request, body: bytes = b"") -> ReadScope:
    peer_uid: int | None = getattr(request.state, "peer_uid", None)
    reader = services.identity.reader
    return await run_in_threadpool(reader, _authorization(request), _target(request), peer_uid, request.method, body)


def _authorization(request: Request) -> str:
    return request.headers.get("authorization", "")


def _target(request: Request) -> str:
    """Return the request line's target exactly as it was sent: the credential is bound to it."""
    path: bytes = request.scope["raw_path"]
    query: bytes = request.scope["query_string"]
    return (path + (b"?" + query if query else b"")).decode("latin-1")


def _json(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    body = json.dumps(content, separators=(",", ":")).encode()
    return Response(body, status_code=status, media_type="application/json", headers=headers)


class Timing:
    """Notes how long each request took, by route and status."""

    def __init__(self, app: ASGIApp, metrics: HubMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if route != "other" else "other"
            self._metrics.request(method, route, status, time.monotonic() - began)
