"""What can be read of the hub, declared once: a file `NAME_resource.py` of a subject, found by being there.

From a declaration derive the route of /v1 with its description, the options and the output of the command, the page
with its forms. A file has RESOURCES, any of the kinds below.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, Protocol, TypeVar

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document
from gpuwaste.core.resource_files import resource_files
from gpuwaste.core.scope import Scope

if TYPE_CHECKING:
    from gpuwaste.show.environment import Frame
    from gpuwaste.show.layout import Look

Q = TypeVar("Q")
D = TypeVar("D", bound=Document)
S = TypeVar("S", bound=Struct)
P = TypeVar("P")
Name = Annotated[str, Meta(min_length=1, max_length=256)]


class Reading(Protocol):
    """What a resource reads from: the hub."""

    def now(self) -> int:
        """Return UTC seconds."""

    def get(self, kind: type[P]) -> P:
        """Return a part of the hub."""


@dataclass(frozen=True, kw_only=True)
class ReadCommand(Generic[D]):
    """The command that prints a document. Its options are the fields of the question, with their descriptions.

    `start` and `end` are -S and -E, with `since` as the default; `user` is -u. `nothing` is what is said of a document
    without rows, which are those of the field that the document's type names as ROWS.
    """

    text: "Callable[[D, Look], str]"
    examples: Sequence[tuple[str, str]]
    nothing: str
    since: str = "now-7days"


@dataclass(frozen=True, kw_only=True)
class Resource(Generic[Q, S]):
    """GET `path`: a question, whose fields are the parameters, and the document that `read` answers with.

    `read` is called in a thread, within what the caller may see; it raises Refusal. `command` is a command of the
    file's name.
    """

    path: str
    question: type[Q]
    document: type[S]
    read: Callable[[Reading, Scope, Q], S]
    command: "ReadCommand[Any] | None" = None


@dataclass(frozen=True)
class PageRequest:
    """A page that is asked for: by whom, with which parameters, the name in its path, and the form, "" for a page."""

    reading: Reading
    scope: Scope
    frame: "Frame"
    query: Mapping[str, str]
    name: str = ""
    form: str = ""


@dataclass(frozen=True, kw_only=True)
class Page(Generic[D]):
    """GET `path` for browsers, with {name} for a name; each of `forms` (".json", ".csv") is the document instead."""

    path: str
    document: Callable[[PageRequest], D]
    html: Callable[[PageRequest, D], str]
    forms: Sequence[str] = ()


Declared = Resource[Any, Any] | Page[Any]


def declared() -> Iterator[Declared]:
    """Yield what all files declare."""
    for file in resource_files():
        found: tuple[Declared, ...] = file.module().RESOURCES
        yield from found
