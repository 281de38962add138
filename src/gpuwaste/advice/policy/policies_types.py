"""The types of what `gpuwaste policy` prints: one decision step by step, and policies replayed on a history."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta, Struct, to_builtins

from gpuwaste.advice.policy.policy_case import PolicyOutcome
from gpuwaste.core.fields import Document, MaybeRatio, Recorded, Utc
from gpuwaste.jobs.verdict import Action, Mode
from gpuwaste.slurm.submit.job_request import JobRequest

_SHOWN: Final = (
    *("policy", "mode", "action", "would_be", "held", "sampled", "override", "lines", "reasons", "triggers"),
    *("time_min_s", "steps"),
)
"""The fields of an outcome that `policy explain` prints: the expected start and the notes are of the hub."""


class PolicyDecision(Struct, kw_only=True, frozen=True):
    """What is decided on one request, step by step."""

    request: JobRequest
    file: Annotated[str, Meta(description="The policy's file; empty: the built-in one.")]
    outcome: PolicyOutcome

    def to_json(self) -> dict[str, Any]:
        """Return the decision as a JSON object, with what the rules decide in it."""
        outcome = to_builtins(self.outcome)
        return {"request": to_builtins(self.request), "file": self.file, **{name: outcome[name] for name in _SHOWN}}


class ExplainDocument(Document, kw_only=True, frozen=True):
    """What `gpuwaste policy explain` prints."""

    document: Literal["policy-explain"] = "policy-explain"
    recorded: Recorded = False
    decisions: list[PolicyDecision]
    notes: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return the document as a JSON object."""
        return {**super().to_json(), "decisions": [decision.to_json() for decision in self.decisions]}


class PolicyInForce(Struct, kw_only=True, frozen=True):
    """A policy of those replayed."""

    name: str
    mode: Mode
    file: Annotated[str, Meta(description="Its file; empty: the built-in one.")]


class PolicyReplayRow(Struct, kw_only=True, frozen=True):
    """What one policy would have decided about one target."""

    policy: str
    target: Annotated[str, Meta(description="all: each submission once.")]
    would_be: Action
    jobs: int
    said: Annotated[int, Meta(description="Advice shown at the terminal.")]
    right: Annotated[int, Meta(description="Advice that was right.")]
    wrong: int
    unknown: Annotated[int, Meta(description="Advice whose outcome is not known.")]
    gpu_hours: Annotated[float, Meta(description="GPU-hours of the jobs whose advice was right.")]
    users: int


class PolicyReplayDocument(Document, kw_only=True, frozen=True):
    """What policies would have done on a history."""

    ROWS: ClassVar[str] = "rows"
    document: Literal["policy-replay"] = "policy-replay"
    recorded: Recorded = False
    source: Annotated[str, Meta(description="Source of the job history.")]
    cluster: str
    start: Utc
    end: Utc
    policies: list[PolicyInForce]
    policies_hash: str
    model: Annotated[str, Meta(description="The bundle's name; empty: none.")]
    submissions: int
    by_model: Annotated[int, Meta(description="Submissions predicted by the model.")]
    by_history: Annotated[int, Meta(description="Submissions predicted from history.")]
    rows: list[PolicyReplayRow]
    held: Annotated[Mapping[str, int], Meta(description="Advice that was held back, by reason.")]
    users: Annotated[int, Meta(description="Users who would have got advice, or whose advice was held back.")]
    false_reject_ratio: MaybeRatio
    notes: list[str]
