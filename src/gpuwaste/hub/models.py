"""The shapes of the hub's answers, as /openapi.json describes them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class ErrorAnswer(BaseModel):
    """Any answer that is not 200."""

    model_config = ConfigDict(extra="allow")
    error: str = Field(description="What is wrong and what to do, one line.")


class RejectedRow(BaseModel):
    """A row that will never be taken."""

    line: int = Field(description="Line in the body; the envelope is 1.")
    reason: str


class AckAnswer(BaseModel):
    """The acknowledgement of a batch, signed in the header Gpuwaste-Ack."""

    protocol: int
    batch_id: str
    accepted: int
    rejected: list[RejectedRow]


class Held(BaseModel):
    """What a run holds on one node."""

    positions: list[int] = Field(description="Positions in the node's GPU list (IDX); empty for a run that has ended.")
    shards: int


class MapRun(BaseModel):
    """One run in the cluster-wide map."""

    job_id: int
    start: int = Field(description="UTC seconds.")
    restarts: int | None
    state: str
    suspended: bool
    nodes: dict[str, Held]


class MapAnswer(BaseModel):
    """The runs asked for; none where Slurm knows no such run, or it has not started yet."""

    jobs: list[MapRun]


class HistoryRun(BaseModel):
    """The run of an event, as accounting tells it now; the fields are JobRecord's."""

    model_config = ConfigDict(extra="allow")


class HistoryUse(BaseModel):
    """What the ledger says of the own GPUs of a run that has ended, as it is known now."""

    used_ratio: float = Field(description="Mean utilization of the run's GPUs over the known time, 0 to 1.")
    gpus_active: int = Field(description="GPUs whose mean utilization is 5 % and more.")
    coverage: float = Field(description="Known share of the allocation without suspension, 0 to 1.")


class HistoryEvent(BaseModel):
    """One entry of the history stream."""

    seq: int
    kind: Literal["submitted", "started", "ended", "ledger"] = Field(
        description="submitted: seen waiting; a run that had started when it was first seen has none."
    )
    cluster: str
    jobid: int
    start: int = Field(description="The last part of the run key, UTC seconds; of submitted the submission.")
    at: int = Field(description="When it happened; for ledger when the hub learned it. UTC seconds.")
    job: HistoryRun | None = Field(description="null where accounting tells this run no more.")
    use: HistoryUse | None = Field(
        description="Of ended and ledger, once the run has ended and something of its GPUs is known; else null."
    )


class HistoryAnswer(BaseModel):
    """Events in order; ask again with `next` as `after`."""

    events: list[HistoryEvent]
    next: int


class VerdictRun(BaseModel):
    """A verdict and how its job ended; an operator sees every field of it, a user what was said to him."""

    model_config = ConfigDict(extra="allow")
    id: str = Field(description="The token gw=ID in the job's AdminComment.")
    at_utc_us: int = Field(description="When the submission came, UTC microseconds.")
    action: Literal["pass", "annotate", "warn", "reject"]
    user: str
    lines: list[str] = Field(description="What the user was told, or would have been.")
    job_ids: list[str] = Field(description="The jobs that carry the token, as Slurm prints them.")
    states: list[str]
    stands: Literal["rejected", "ended", "open", "no job"]


class VerdictsAnswer(BaseModel):
    """Verdicts, the newest first."""

    model_config = ConfigDict(extra="allow")
    document: Literal["verdicts"]
    verdicts: list[VerdictRun]


class Standing(BaseModel):
    """How good a policy's warnings and rejects were over the whole time asked for."""

    precision: float | None = Field(description="Hits over those with an outcome, 0 to 1; null without any.")
    n: int = Field(description="How many it rests on.")


class ScoreAnswer(BaseModel):
    """Precision, recall and calibration of what was said: docs/how-to/audit.md."""

    model_config = ConfigDict(extra="allow")
    document: Literal["score"]
    since: int
    weeks: list[dict[str, Any]] = Field(description="By policy and ISO week.")
    policies: list[dict[str, Any]] = Field(description="By policy, over all weeks.")
    calibration: list[dict[str, Any]] = Field(description="By target: expected calibration error and its ten bins.")
    standing: dict[str, Standing]


class PredictReason(BaseModel):
    """One feature's part in a probability, in the user's own words and numbers."""

    feature: str
    value: float | None
    usual: float | None = Field(description="The feature's usual value at the site.")
    effect: float = Field(description="The probability with the value, minus the one with the usual value.")
    text: str


class PredictTarget(BaseModel):
    """What is said of one target: a probability, or quantiles in the target's unit."""

    target: str
    source: Literal["site model", "baseline", "history"]
    basis: int = Field(description="Past jobs behind it where history speaks, else rows that the model learnt from.")
    p: float | None
    level: str = Field(description="The highest operating point that p reaches: warn, reject, or none.")
    quantiles: dict[str, float]
    reasons: list[PredictReason]


class PredictChange(BaseModel):
    """Another request, and what it would change."""

    option: str
    text: str
    before: dict[str, float]
    after: dict[str, float]


class PredictPolicy(BaseModel):
    """What the site's policies would say at sbatch. To others than operators: what they would be told themselves."""

    policy: str = Field(description="The policy that judges; empty where the caller is told nothing of it.")
    mode: Literal["", "off", "shadow", "annotate", "warn", "reject"]
    action: Literal["pass", "annotate", "warn", "reject"]
    would_be: Literal["pass", "annotate", "warn", "reject"] = Field(
        description="The action without the policy's mode; to others than operators the action."
    )
    lines: list[str] = Field(description="What the user would read, at most three lines.")


class PredictFacts(BaseModel):
    """What policies judge besides the prediction."""

    own: dict[str, list[str]] = Field(description="Sentences in exact numbers of the user's own last runs, by target.")
    script: Literal["same", "changed", "unknown"] = Field(
        description="Whether the script is one with which jobs of this user and name failed."
    )
    whole_node: bool = Field(description="Whether the partition gives whole nodes.")


class PredictDocument(BaseModel):
    """The prediction of one request."""

    model_config = ConfigDict(extra="allow")
    request: dict[str, str | int | bool | None]
    model: str = Field(description="The bundle's name; empty where history alone speaks.")
    model_hash: str
    targets: list[PredictTarget]
    changes: list[PredictChange]
    notes: list[str]
    facts: PredictFacts
    policy: PredictPolicy


class PredictAnswer(BaseModel):
    """One prediction for each request, or for each component of the job asked for."""

    predictions: list[PredictDocument]


class PredictionHealth(BaseModel):
    """How prediction stands."""

    state: Literal["starting", "ready", "not installed"]
    model: str = Field(description="The name of the bundle in use; empty: none.")
    model_hash: str
    created: int | None = Field(description="When the bundle was made, UTC seconds.")
    event: int | None = Field(description="The last event of the history that is known.")
    error: str = Field(description="Why the champion, or what is new in the history, is not in use; empty: nothing.")


class AccountingHealth(BaseModel):
    """How the import from accounting stands."""

    ok: bool
    lag_s: float | None
    failures: int
    error: str


class HealthAnswer(BaseModel):
    """The hub's health."""

    status: Literal["ok", "degraded"]
    version: str
    cluster: str
    now: float = Field(description="The hub's clock, UTC seconds.")
    protocol: list[int]
    accounting: AccountingHealth
    prediction: PredictionHealth
    nodes_reporting: int = Field(description="Nodes whose last batch is younger than an hour.")


class Document(BaseModel):
    """A report, a job or who is wasting now; see the reference of documents for its further fields."""

    model_config = ConfigDict(extra="allow")
    document: Literal["report", "job", "top"]
    schema_: int = Field(alias="schema")


class NoticeAnswer(BaseModel):
    """Who was told or would be, what a user would read, or what was noted; further fields by document."""

    model_config = ConfigDict(extra="allow")
    document: Literal["notices", "notice-preview", "notice-replay", "notice-run", "notice-wish"]
    schema_: int = Field(alias="schema")
    generated: int
    start: int = Field(description="UTC seconds; of one period, or of all that is told.")
    end: int


class BackupAnswer(BaseModel):
    """How a backup stands; one that is ready also has what its member backup.json says."""

    model_config = ConfigDict(extra="allow")
    state: Literal["none", "copying", "ready", "failed"]
    error: str = Field("", description="Why it failed.")
    bytes: int = Field(0, description="Size of the files in it.")
