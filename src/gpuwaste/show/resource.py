"""What can be read of the hub, declared once: a file `NAME_resource.py` of a subject, found by being there.

From a declaration derive the route of /v1 with its description, the options and the output of the command, the page
with its forms. A file has RESOURCES, any of the kinds below.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar

from msgspec import Struct

from gpuwaste.core.fields import Document
from gpuwaste.core.registry import resource_files
from gpuwaste.core.scope import Scope
from gpuwaste.show.machine_formats import to_csv, to_json

if TYPE_CHECKING:
    from gpuwaste.show.environment import Frame
    from gpuwaste.show.layout import Look

Q = TypeVar("Q")
D = TypeVar("D")
S = TypeVar("S", bound=Struct)
P = TypeVar("P")
Pool = Literal["questions", "reports"]
"""The threads that answer: those of reports are few, as each report takes tens of MB."""


class Reading(Protocol):
    """What a resource reads from: the hub."""

    def now(self) -> int:
        """Return UTC seconds."""

    def get(self, kind: type[P]) -> P:
        """Return a part of the hub."""


@dataclass(frozen=True)
class NoQuestion:
    """What is asked without parameters."""


@dataclass(frozen=True)
class Share(Generic[D]):
    """What --fail-above compares: in words, and as a share of a document, 0 to 1 or None for not known."""

    about: str
    of: Callable[[D], float | None]


@dataclass(frozen=True, kw_only=True)
class ReadCommand(Generic[D]):
    """The command that prints a document. Its options are the fields of the question, with their descriptions.

    It is the command of the file's name, or with `action` an action of it: a file in cli/commands adds those that do
    more than read. `start` and `end` are -S and -E, with `since` as the default; `user` is -u, `whose` without it;
    `defaults` are of other options. `limit` is no option where `limits` has it: rows of a text, rows of other forms.
    `long`: the hub may have to add up much first. Without rows in the field `rows` the exit code is 3, and a text is
    the error `nothing` where there is one. Without `forms` it prints text and JSON alone.
    """

    text: "Callable[[D, Look], str]"
    action: str = ""
    about: str = ""
    examples: Sequence[tuple[str, str]] = ()
    since: str = "now-7days"
    whose: str = ""
    defaults: Mapping[str, int] = field(default_factory=dict)
    limits: tuple[int, int] | None = None
    long: bool = False
    rows: str = ""
    nothing: str = ""
    forms: bool = True
    share: Share[D] | None = None


@dataclass(frozen=True, kw_only=True)
class Resource(Generic[Q, S]):
    """GET `path`: a question, whose fields are the parameters, and the document that `read` answers with, or its JSON.

    Fields of the question that `path` has in braces are parts of the path; others that are keyword-only are no
    parameters. `read` is called in a thread of a pool, within what the caller may see; it raises Refusal. A hub that
    stands by answers where `standby` says so: with what is stored. `commands` print it.
    """

    path: str
    question: type[Q]
    document: type[S]
    read: Callable[[Reading, Scope, Q], S | dict[str, Any] | bytes]
    pool: Pool = "questions"
    standby: bool = False
    commands: "Sequence[ReadCommand[Any]]" = ()


@dataclass(frozen=True, kw_only=True)
class Order(Generic[Q, S]):
    """POST `path`: a body of type `body`, None for one that is not read, and what `do` answers; it raises Refusal."""

    path: str
    body: type[Struct] | None = None
    question: type[Q]
    document: type[S]
    do: Callable[[Reading, Scope, Q, bytes], S | dict[str, Any]]


@dataclass(frozen=True)
class PageRequest:
    """A page that is asked for: by whom, with which parameters, the name in its path, and the form, "" for a page.

    `url` is where the hub's pages are, "" for not known.
    """

    reading: Reading
    scope: Scope
    frame: "Frame"
    query: Mapping[str, str]
    name: str = ""
    form: str = ""
    url: str = ""


class Renewing(Protocol):
    """What a page shows that is taken from time to time."""

    def due_s(self) -> float:
        """Return how long it is until it may be taken again."""

    def renew(self) -> None:
        """Take it; blocks."""


@dataclass(frozen=True, kw_only=True)
class Follow:
    """How a page is refreshed while it is looked at: on news of `jobs`, None for all that its reader may see.

    It is refreshed every `every_s` seconds without news, after what it shows is renewed.
    """

    every_s: float
    jobs: Callable[[Reading, Scope, str], frozenset[int] | None]
    renewing: Callable[[Reading], Renewing] | None = None


@dataclass(frozen=True, kw_only=True)
class Page(Generic[D]):
    """GET `path` for browsers, with {name} for a name; each of `forms` (".json", ".csv") is the document as a text.

    `charts` are drawn as files: .svg, .2.svg and so on. A `long` page takes a place among reports, as forms do.
    """

    path: str
    document: Callable[[PageRequest], D]
    html: Callable[[PageRequest, D], str]
    forms: Mapping[str, Callable[[D], str]] = field(default_factory=dict)
    charts: Callable[[D], Sequence[Callable[[], str]]] | None = None
    long: bool = False
    standby: bool = False
    follow: Follow | None = None


@dataclass(frozen=True, kw_only=True)
class PageOrder:
    """POST `path` of a form: what `do` does with its body, and the path of the page that it leads to."""

    path: str
    do: Callable[[PageRequest, bytes], str]


Declared = Resource[Any, Any] | Order[Any, Any] | Page[Any] | PageOrder


def declared() -> Iterator[Declared]:
    """Yield what all files declare."""
    for file in resource_files():
        found: tuple[Declared, ...] = file.module().RESOURCES
        yield from found


def _json(document: Document) -> str:
    return to_json(document.to_json())


FORMS: Final[Mapping[str, Callable[[Any], str]]] = {".json": _json, ".csv": to_csv}
"""The forms of a document that is a table."""


def chart_form(index: int) -> str:
    """Return the form by which a page's chart is a file: .svg, .2.svg and so on; `index` is from 0."""
    return ".svg" if index == 0 else f".{index + 1}.svg"
