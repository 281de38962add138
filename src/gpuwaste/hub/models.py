"""The shapes of the hub's answers, as /openapi.json describes them."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, defstruct

from gpuwaste.core.codec import annotated
from gpuwaste.core.history import EVENT_CODEC
from gpuwaste.core.underuse import UnderUse
from gpuwaste.core.verdict import Verdict
from gpuwaste.hub.verdict_reads import FOR_USERS
from gpuwaste.predict.prediction import Prediction

_EVENT: Final[Any] = EVENT_CODEC.struct


class ErrorAnswer(Struct):
    """Any answer that is not 200."""

    error: Annotated[str, Meta(description="What is wrong and what to do, one line.")]


class RejectedRow(Struct):
    """A row that will never be taken."""

    line: Annotated[int, Meta(description="Line in the body; the envelope is 1.")]
    reason: str


class AckAnswer(Struct):
    """The acknowledgement of a batch, signed in the header Gpuwaste-Ack."""

    protocol: int
    batch_id: str
    accepted: int
    rejected: list[RejectedRow]


class Held(Struct):
    """What a run holds on one node."""

    positions: Annotated[
        list[int], Meta(description="Positions in the node's GPU list (IDX); empty for a run that has ended.")
    ]
    shards: int


class MapRun(Struct):
    """One run in the cluster-wide map."""

    job_id: int
    start: Annotated[int, Meta(description="UTC seconds.")]
    restarts: int | None
    state: str
    suspended: bool
    nodes: dict[str, Held]


class MapAnswer(Struct):
    """The runs asked for; none where Slurm knows no such run, or it has not started yet."""

    jobs: list[MapRun]


HistoryAnswer: Final = defstruct("HistoryAnswer", [("events", list[_EVENT]), ("next", int), ("under_use", UnderUse)])
HistoryAnswer.__doc__ = "Events in order, the use of GPUs counted by a rule; ask again with `next` as `after`."


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedVerdict(Verdict):
    """A verdict and how its job ended, as an operator sees it."""

    node: Annotated[str, Meta(description="The advisor's host.")]
    taken_utc: Annotated[int, Meta(description="When the hub took it, UTC seconds.")]
    week: Annotated[str, Meta(description="The ISO week of the submission, UTC.")]
    runs: Annotated[int, Meta(description="Runs that carry the token.")]
    hit: Annotated[bool | None, Meta(description="Whether a target that it named came true; null without an outcome.")]
    job_ids: Annotated[list[str], Meta(description="The jobs that carry the token, as Slurm prints them.")]
    states: Annotated[list[str], Meta(description="The states of their runs.")]
    stands: Literal["rejected", "ended", "open", "no job"]


VerdictRun: Final = defstruct(
    "VerdictRun",
    [(part.name, kind, *(() if part.name in FOR_USERS else (UNSET,))) for part, kind, _ in annotated(JudgedVerdict)],
    kw_only=True,
)
VerdictRun.__doc__ = "A verdict and how its job ended; operators see every field, users what was said to them."
_VERDICT: Final[Any] = VerdictRun
VerdictsAnswer: Final = defstruct(
    "VerdictsAnswer",
    [
        ("document", Literal["verdicts"]),
        ("schema", int),
        ("recorded", bool),
        ("generated", Annotated[int, Meta(description="UTC seconds.")]),
        ("start", Annotated[int, Meta(description="UTC seconds.")]),
        ("end", Annotated[int, Meta(description="UTC seconds.")]),
        ("verdicts", list[_VERDICT]),
    ],
)
VerdictsAnswer.__doc__ = "Verdicts, the newest first."


class PredictPolicy(Struct):
    """What the site's policies would say at sbatch. To others than operators: what they would be told themselves."""

    policy: Annotated[str, Meta(description="The policy that judges; empty where the caller is told nothing of it.")]
    mode: Literal["", "off", "shadow", "annotate", "warn", "reject"]
    action: Literal["pass", "annotate", "warn", "reject"]
    would_be: Annotated[
        Literal["pass", "annotate", "warn", "reject"],
        Meta(description="The action without the policy's mode; to others than operators the action."),
    ]
    lines: Annotated[list[str], Meta(description="What the user would read, at most three lines.")]


class PredictFacts(Struct):
    """What policies judge besides the prediction."""

    own: Annotated[
        dict[str, list[str]], Meta(description="Sentences in exact numbers of the user's own last runs, by target.")
    ]
    script: Annotated[
        Literal["same", "changed", "unknown"],
        Meta(description="Whether the script is one with which jobs of this user and name failed."),
    ]
    whole_node: Annotated[bool, Meta(description="Whether the partition gives whole nodes.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictDocument(Prediction):
    """The prediction of one request."""

    facts: PredictFacts
    policy: PredictPolicy


class PredictAnswer(Struct):
    """One prediction for each request, or for each component of the job asked for."""

    predictions: list[PredictDocument]


class PredictionHealth(Struct):
    """How prediction stands."""

    state: Literal["starting", "ready", "not installed"]
    model: Annotated[str, Meta(description="The name of the bundle in use; empty: none.")]
    model_hash: str
    created: Annotated[int | None, Meta(description="When the bundle was made, UTC seconds.")]
    event: Annotated[int | None, Meta(description="The last event of the history that is known.")]
    note: Annotated[str, Meta(description="How the bundle differs from the site's settings; empty: nothing.")]
    error: Annotated[
        str, Meta(description="Why the champion, or what is new in the history, is not in use; empty: nothing.")
    ]


class AccountingHealth(Struct):
    """How the import from accounting stands."""

    ok: bool
    lag_s: float | None
    failures: int
    error: str


class HealthAnswer(Struct):
    """The hub's health."""

    status: Literal["ok", "degraded"]
    version: str
    cluster: str
    now: Annotated[float, Meta(description="The hub's clock, UTC seconds.")]
    protocol: list[int]
    accounting: AccountingHealth
    prediction: PredictionHealth
    under_use: Annotated[UnderUse, Meta(description="The rule by which the history counts the use of GPUs.")]
    nodes_reporting: Annotated[int, Meta(description="Nodes whose last batch is younger than an hour.")]


class Document(Struct):
    """A report, a job or who is wasting now; see the reference of documents for its further fields."""

    document: Literal["report", "job", "top"]
    schema: int


class NoticeAnswer(Struct):
    """Who was told or would be, what a user would read, or what was noted; further fields by document."""

    document: Literal["notices", "notice-preview", "notice-replay", "notice-run", "notice-wish"]
    schema: int
    generated: int
    start: Annotated[int, Meta(description="UTC seconds; of one period, or of all that is told.")]
    end: int


class BackupAnswer(Struct):
    """How a backup stands; one that is ready also has what its member backup.json says."""

    state: Literal["none", "copying", "ready", "failed"]
    error: Annotated[str, Meta(description="Why it failed.")] = ""
    bytes: Annotated[int, Meta(description="Size of the files in it.")] = 0
