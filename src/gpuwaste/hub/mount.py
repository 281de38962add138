"""Mounts what subjects declare (show/resource.py) in the application: routes of /v1, pages and their forms."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin, get_type_hints

from fastapi import FastAPI, Query, Request, Response
from msgspec import Meta

from gpuwaste.core.parts import Parts
from gpuwaste.core.scope import Scope
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.openapi import answers
from gpuwaste.hub.pages.answers import Pages
from gpuwaste.hub.pages.forms import in_form, split_form
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.show.environment import Frame
from gpuwaste.show.resource import Page, PageRequest, Resource, declared

_T = TypeVar("_T")
_BOUNDS: Final = ("ge", "le", "gt", "lt", "min_length", "max_length", "pattern")


class HubReading:
    """What resources read from."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def now(self) -> int:
        """Return UTC seconds."""
        return self._parts.get(HostPorts).clock.utc_us() // 1_000_000

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
        for one in declared():
            if isinstance(one, Resource):
                self.resource(one)
            else:
                self.page(one)

    def resource(self, one: Resource[Any, Any]) -> None:
        """Mount GET of a document."""

        async def answer(request: Request, **asked: Any) -> Response:
            question = one.question(**asked)
            return await self._exchange.document(request, lambda scope: one.read(self._reading, scope, question))

        _describe(answer, one.read, _parameters(one.question))
        self._app.add_api_route(one.path, answer, methods=["GET"], responses=answers(one.document))

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
