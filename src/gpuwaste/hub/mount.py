"""Mounts what subjects declare (show/resource.py) in the application: routes of /v1, pages and their forms."""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

from fastapi import FastAPI, Path, Query, Request, Response
from msgspec import Meta
from starlette.responses import RedirectResponse

from gpuwaste.act.events.event_service import EventReads
from gpuwaste.core.parts import Parts
from gpuwaste.core.refusal import not_found
from gpuwaste.core.scope import Scope
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.openapi import answers, body
from gpuwaste.hub.page_answers import SEE_OTHER, Pages, html, plain
from gpuwaste.hub.page_changes import PageChanges
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.show.charts.draw import file_policy
from gpuwaste.show.environment import Frame
from gpuwaste.show.resource import Follow, Order, Page, PageOrder, PageRequest, Resource, chart_form, declared

_T = TypeVar("_T")
_BOUNDS: Final = ("ge", "le", "gt", "lt", "min_length", "max_length", "pattern")
_MEDIA: Final = {".json": "application/json", ".csv": "text/csv; charset=utf-8"}


class HubReading:
    """What resources read from."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def now(self) -> int:
        """Return UTC seconds."""
        return self._parts.get(HostPorts).clock.utc_s()

    def get(self, kind: type[_T]) -> _T:
        """Return a part of the hub."""
        return self._parts.get(kind)


class Mount:
    """Gives an application the routes of declarations."""

    def __init__(self, app: FastAPI, exchange: Exchange) -> None:
        self._app = app
        self._exchange = exchange
        self._reading = exchange.reading
        threads = exchange.threads
        self._short, self._long = Pages(exchange, threads.readers), Pages(exchange, threads.reports)
        self._changes = PageChanges(exchange)

    def all(self) -> None:
        """Mount what all subjects declare."""
        kinds: dict[type, Callable[[Any], None]] = {
            Resource: self.resource, Order: self.order, Page: self.page, PageOrder: self.page_order
        }  # fmt: skip
        for one in declared():
            kinds[type(one)](one)

    def resource(self, one: Resource[Any, Any]) -> None:
        """Mount GET of a document."""
        pool = getattr(self._exchange.threads, one.pool)

        async def answer(request: Request, **asked: Any) -> Response:
            question = one.question(**asked)
            answered = self._exchange.signed if one.signed else self._exchange.document
            return await answered(request, lambda scope: one.read(self._reading, scope, question), pool)

        _describe(answer, one.read, _parameters(one.question, one.path))
        self._app.add_api_route(one.path, answer, methods=["GET"], responses=answers(one.document))

    def order(self, one: Order[Any, Any]) -> None:
        """Mount POST of an order."""

        async def answer(request: Request, **asked: Any) -> Response:
            question = one.question(**asked)
            return await self._exchange.order(request, lambda scope, sent: one.do(self._reading, scope, question, sent))

        _describe(answer, one.do, _parameters(one.question, one.path))
        described = None if one.body is None else body(one.body)
        self._app.add_api_route(
            one.path, answer, methods=["POST"], responses=answers(one.document), openapi_extra=described
        )

    def page(self, one: Page[Any]) -> None:
        """Mount a page and its forms: these are long documents, of which few are made at once."""
        begin, _, end = one.path.partition("{")
        if one.follow is not None:
            self._follow(one.path, one.follow)

        async def answer(request: Request) -> Response:
            name, form = _split(request.scope["path"].removeprefix(begin), one)
            pages = self._long if form or one.long else self._short

            def build(scope: Scope, frame: Frame) -> Response:
                if one.follow is not None and not form:
                    frame = replace(frame, place=self._reading.get(EventReads).last())
                return _made(one, self._asked(request, scope, frame, name, form))

            return await pages.answer(request, build)

        for form in ("",) if end else ("", *one.forms):
            self._app.add_api_route(f"{one.path}{form}", answer, methods=["GET"], include_in_schema=False)

    def page_order(self, one: PageOrder) -> None:
        """Mount a form of a page."""

        async def answer(request: Request) -> Response:
            name = next(iter(request.path_params.values()), "")

            def done(scope: Scope, frame: Frame, sent: bytes) -> Response:
                return RedirectResponse(one.do(self._asked(request, scope, frame, name, ""), sent), SEE_OTHER)

            return await self._long.order(request, done)

        self._app.add_api_route(one.path, answer, methods=["POST"], include_in_schema=False)

    def _asked(self, request: Request, scope: Scope, frame: Frame, name: str, form: str) -> PageRequest:
        url = self._reading.get(Visitors).url
        return PageRequest(self._reading, scope, frame, request.query_params, name, form, url)

    def _follow(self, path: str, follow: Follow) -> None:
        async def answer(request: Request) -> Response:
            return await self._changes.answer(request, follow, next(iter(request.path_params.values()), ""))

        self._app.add_api_route(f"{path}/changes", answer, methods=["GET"], include_in_schema=False)


@cache
def answered_standing_by() -> tuple[str, ...]:
    """Return the patterns of the paths that a hub answers while it stands by, as their declarations state."""
    return tuple(
        pattern for one in declared() if isinstance(one, Resource | Page) and one.standby for pattern in _paths(one)
    )


def _paths(one: Resource[Any, Any] | Page[Any]) -> Iterator[str]:
    path = re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(one.path))
    forms = "" if isinstance(one, Resource) or "{" in one.path else "|".join(map(re.escape, one.forms))
    yield f"{path}({forms})?" if forms else path
    if isinstance(one, Page) and one.follow is not None:
        yield f"{path}/changes"


def _split(name: str, page: Page[Any]) -> tuple[str, str]:
    """Return a name without the form at its end, and the form, "" for a page."""
    if page.charts is not None:
        name, dot, form = name.partition(".")
        return name, dot + form
    return next(((name.removesuffix(form), form) for form in page.forms if name.endswith(form)), (name, ""))


def _made(page: Page[Any], asked: PageRequest) -> Response:
    """Return a page in the requested form. Raises Refusal 404 for an unknown one."""
    document = page.document(asked)
    if asked.form in page.forms:
        return plain(page.forms[asked.form](document), _MEDIA[asked.form])
    if asked.form:
        return _chart([] if page.charts is None else page.charts(document), asked.form)
    return html(page.html(asked, document))


def _chart(files: Sequence[Callable[[], str]], form: str) -> Response:
    found = dict(zip(map(chart_form, range(len(files))), files, strict=True))
    if form not in found:
        raise not_found()
    headers = {"Content-Security-Policy": file_policy()}
    return Response(found[form](), headers=headers, media_type="image/svg+xml")


def _describe(route: Callable[..., Any], function: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
    """Give a route what FastAPI reads: its name, its docstring, its parameters."""
    request = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
    route.__name__, route.__doc__ = function.__name__, function.__doc__
    route.__signature__ = inspect.Signature([request, *parameters])  # type: ignore[attr-defined]


def _parameters(question: type[Any], path: str) -> list[inspect.Parameter]:
    """Return the fields of a query as parameters of a request, those of its path first."""
    hints = get_type_hints(question, include_extras=True)
    in_path, others = [], []
    for name, field in inspect.signature(question).parameters.items():
        named = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
        if f"{{{name}}}" in path:
            in_path.append(named.replace(annotation=_bounded(hints[name], Path)))
        elif field.kind is not inspect.Parameter.KEYWORD_ONLY:
            others.append(named.replace(annotation=_bounded(hints[name], Query), default=field.default))
    return [*in_path, *others]


def _bounded(kind: Any, place: Callable[..., Any]) -> Any:
    """Return a type with its bounds as FastAPI reads them; the description of an option is for the command's help."""
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        names = (*_BOUNDS, "description") if place is Path else _BOUNDS
        metas = [note for note in notes if isinstance(note, Meta)]
        bounds = {name: value for note in metas for name in names if (value := getattr(note, name)) is not None}
        return Annotated[_bounded(inner, place), place(**bounds)] if bounds else _bounded(inner, place)
    if get_origin(kind) in {None, Literal}:
        return kind
    first, *others = (_bounded(one, place) for one in get_args(kind))
    for other in others:
        first = first | other
    return first
