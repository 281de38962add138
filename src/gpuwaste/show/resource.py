"""The hub's resources, each declared once: in a file `NAME_resource.py` per subject, found without registration.

A declaration defines the route of /v1 with its description, the options and the output of the command, and the page
with its other formats. A file has RESOURCES, any of the kinds below.
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
"""The thread pool that answers: the one for reports is small, since each report takes tens of MB."""


class Reading(Protocol):
    """The hub, as the source that a resource reads from."""

    def now(self) -> int:
        """Return UTC seconds."""

    def get(self, kind: type[P]) -> P:
        """Return a part of the hub."""


@dataclass(frozen=True)
class NoQuestion:
    """A question without parameters."""


@dataclass(frozen=True)
class Share(Generic[D]):
    """The value that --fail-above compares: as text, and as a share of a document, 0 to 1 or None for not known."""

    about: str
    of: Callable[[D], float | None]


@dataclass(frozen=True, kw_only=True)
class ReadCommand(Generic[D]):
    """The command that prints a document. Its options are the fields of the question, with their descriptions.

    It is the command of the file's name, or with `action` an action of it: a file in cli/commands adds actions that do
    more than read. `start` and `end` are -S and -E, with `since` as the default; `user` is -u, `whose` without it;
    `defaults` are those of other options. With `limits`, the rows of a text and of other formats, there is no option
    `limit`. `long`: the hub may have to add up much first. Without rows in the field `rows` the exit code is 3, and
    instead of a text the error `nothing` is printed if there is one. Without `forms` it prints only text and JSON.
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
    """GET `path`: a question, whose fields are the parameters, and the document that `read` returns, or its JSON.

    Fields of the question in braces in `path` are parts of the path; other keyword-only fields are not parameters.
    `read` is called in a thread of a pool, within the caller's scope; it raises Refusal. With `standby` a standby hub
    answers, too, with stored data. A `signed` answer has a header by which the caller verifies that the hub made it for
    this credential. `commands` print the document.
    """

    path: str
    question: type[Q]
    document: type[S]
    read: Callable[[Reading, Scope, Q], S | dict[str, Any] | bytes]
    pool: Pool = "questions"
    standby: bool = False
    signed: bool = False
    commands: "Sequence[ReadCommand[Any]]" = ()


@dataclass(frozen=True, kw_only=True)
class Order(Generic[Q, S]):
    """POST `path`: a body of type `body`, None for one that is not read, and the answer of `do`; it raises Refusal."""

    path: str
    body: type[Struct] | None = None
    question: type[Q]
    document: type[S]
    do: Callable[[Reading, Scope, Q, bytes], S | dict[str, Any]]


@dataclass(frozen=True)
class PageRequest:
    """A request for a page: by whom, with which parameters, the name in its path, and the format, "" for a page.

    `url` is the base URL of the hub's pages, "" for not known.
    """

    reading: Reading
    scope: Scope
    frame: "Frame"
    query: Mapping[str, str]
    name: str = ""
    form: str = ""
    url: str = ""


class Renewing(Protocol):
    """Data of a page that is refreshed at intervals."""

    def due_s(self) -> float:
        """Return the seconds until it may be refreshed again."""

    def renew(self) -> None:
        """Refresh it; blocks."""


@dataclass(frozen=True, kw_only=True)
class Follow:
    """How an open page is refreshed: on news of `jobs`, None for all that its reader may see.

    Without news it is refreshed every `every_s` seconds, after its data is renewed.
    """

    every_s: float
    jobs: Callable[[Reading, Scope, str], frozenset[int] | None]
    renewing: Callable[[Reading], Renewing] | None = None


@dataclass(frozen=True, kw_only=True)
class Page(Generic[D]):
    """GET `path` for browsers, with {name} for a name; each of `forms` (".json", ".csv") is the document as text.

    `charts` are drawn as files: .svg, .2.svg and so on. A `long` page runs in the pool of reports, as forms do.
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
    """POST `path` of a form: `do` processes its body, and returns the path of the next page."""

    path: str
    do: Callable[[PageRequest, bytes], str]


Declared = Resource[Any, Any] | Order[Any, Any] | Page[Any] | PageOrder


def declared() -> Iterator[Declared]:
    """Yield the declarations of all files."""
    for file in resource_files():
        found: tuple[Declared, ...] = file.module().RESOURCES
        yield from found


def _json(document: Document) -> str:
    return to_json(document.to_json())


FORMS: Final[Mapping[str, Callable[[Any], str]]] = {".json": _json, ".csv": to_csv}
"""The formats of a document that is a table."""


def chart_form(index: int) -> str:
    """Return the suffix of a page's chart as a file: .svg, .2.svg and so on; `index` is from 0."""
    return ".svg" if index == 0 else f".{index + 1}.svg"
