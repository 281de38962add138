"""Mounts what subjects declare (show/resource.py) in the application: routes of /v1, orders, pages and their forms."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from fastapi import FastAPI, Query, Request, Response
from msgspec import Meta
from starlette.responses import RedirectResponse

from gpuwaste.core.clock import Clock
from gpuwaste.core.parts import Parts
from gpuwaste.core.scope import Scope
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.openapi import answers, body
from gpuwaste.hub.pages.answers import SEE_OTHER, Pages
from gpuwaste.hub.pages.forms import in_form, split_form
from gpuwaste.show.environment import Frame
from gpuwaste.show.resource import Order, Page, PageOrder, PageRequest, Resource, Rows, declared
from gpuwaste.store.hub.hub_store import HubStore

_T = TypeVar("_T")
_BOUNDS: Final = ("ge", "le", "gt", "lt", "min_length", "max_length", "pattern")


class HubReading:
    """What resources read from."""

    def __init__(self, parts: Parts, store: HubStore, clock: Clock) -> None:
        self._parts = parts
        self._store = store
        self._clock = clock

    def cursor(self) -> AbstractContextManager[Rows]:
        """Lend a cursor of the store to the calling thread."""
        return self._store.reader()

    def now(self) -> int:
        """Return UTC seconds."""
        return self._clock.utc_us() // 1_000_000

    def get(self, kind: type[_T]) -> _T:
        """Return a part of the hub."""
        return self._parts.get(kind)


class Mount:
    """Gives an application the routes of declarations."""

    def __init__(self, app: FastAPI, exchange: Exchange, reading: HubReading) -> None:
        self._app = app
        self._exchange = exchange
        self._reading = reading

    def all(self) -> None:
        """Mount what all subjects declare."""
        ways: dict[type, Callable[[Any], None]] = {
            Resource: self.resource,
            Order: self.order,
            Page: self.page,
            PageOrder: self.page_order,
        }
        for one in declared():
            ways[type(one)](one)

    def resource(self, one: Resource[Any, Any]) -> None:
        """Mount GET of a document."""
        exchange, pool = self._exchange, getattr(self._exchange.threads, one.pool)

        async def answer(request: Request, **asked: Any) -> Response:
            question = one.question(**asked)
            return await exchange.document(request, lambda scope: one.read(self._reading, scope, question), pool)

        _describe(answer, one.read, _parameters(one.question))
        self._app.add_api_route(one.path, answer, methods=["GET"], responses=answers(one.document))

    def order(self, one: Order[Any]) -> None:
        """Mount POST of an order."""

        async def answer(request: Request) -> Response:
            names: Mapping[str, str] = request.path_params
            do = one.do
            return await self._exchange.order(request, lambda scope, sent: do(self._reading, scope, sent, names))

        _describe(answer, one.do, [])
        extra = None if one.body is None else body(one.body)
        self._app.add_api_route(
            one.path, answer, methods=["POST"], responses=answers(one.document), openapi_extra=extra
        )

    def page(self, one: Page[Any]) -> None:
        """Mount a page and its forms: these are long documents, of which few are made at once."""
        threads, path = self._exchange.threads, one.path.partition("{")[0]
        short, long = Pages(self._exchange, threads.readers), Pages(self._exchange, threads.reports)

        async def answer(request: Request) -> Response:
            name, form = split_form(request.scope["path"].removeprefix(path))

            def build(scope: Scope, frame: Frame) -> Response:
                asked = PageRequest(self._reading, scope, frame, request.query_params, name, form)
                document = one.document(asked)
                return in_form(form, lambda: one.html(asked, document), lambda: document)

            return await (long if form else short).answer(request, build)

        for form in ("",) if one.path.endswith("}") else ("", *one.forms):
            self._app.add_api_route(f"{one.path}{form}", answer, methods=["GET"], include_in_schema=False)

    def page_order(self, one: PageOrder) -> None:
        """Mount POST of a page's form."""
        pages = Pages(self._exchange, self._exchange.threads.reports)

        async def answer(request: Request) -> Response:
            name = next(iter(request.path_params.values()), "")

            def do(scope: Scope, frame: Frame, sent: bytes) -> Response:
                asked = PageRequest(self._reading, scope, frame, request.query_params, name)
                return RedirectResponse(one.do(asked, sent), SEE_OTHER)

            return await pages.order(request, do)

        self._app.add_api_route(one.path, answer, methods=["POST"], include_in_schema=False)


def _describe(route: Callable[..., Any], function: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
    """Give a route what FastAPI reads of it: its name, its docstring, its parameters."""
    request = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
    route.__name__, route.__doc__ = function.__name__, function.__doc__
    route.__signature__ = inspect.Signature([request, *parameters])  # type: ignore[attr-defined]


def _parameters(question: type[Any]) -> list[inspect.Parameter]:
    """Return the fields of a question as parameters of a request."""
    fields = inspect.signature(question).parameters
    hints = get_type_hints(question, include_extras=True)
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=_bounded(hints[name]))
        for name, field in fields.items()
    ]


def _bounded(kind: Any) -> Any:
    """Return a type with its bounds as FastAPI reads them; its description is for the command's help."""
    if get_origin(kind) is Annotated:
        inner, *notes = get_args(kind)
        metas = [note for note in notes if isinstance(note, Meta)]
        bounds = {name: value for note in metas for name in _BOUNDS if (value := getattr(note, name)) is not None}
        return Annotated[_bounded(inner), Query(**bounds)] if bounds else _bounded(inner)
    if get_origin(kind) is None:
        return kind
    first, *others = map(_bounded, get_args(kind))
    for other in others:
        first = first | other
    return first
