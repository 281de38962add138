"""What `gpuwaste plan` prints and writes to a file: candidates with start, end, cost and risk, and the choice by goal.

A goal orders by its own measure first; candidates that are equal in it are ordered by the next one. Unknown values are
ordered last, so that a plan never prefers a candidate about which nothing is known.
"""

from collections.abc import Callable, Sequence
from math import inf
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gpuwaste.advice.policy.expected_waits import MAX_ROWS, WaitRow
from gpuwaste.core.fields import Document, Interval, MaybeRatio, MaybeUtc, Recorded, Utc
from gpuwaste.jobs.program_estimate import ProgramEstimate

PlanGoal = Literal["fastest", "cheapest", "safest"]
GOALS: tuple[PlanGoal, ...] = ("fastest", "cheapest", "safest")
Status = Literal["valid", "invalid", "unchecked", "advice"]
MAX_PLAN: int = 16
_Text = Annotated[str, Meta(max_length=4096)]
_Amount = Annotated[int, Meta(ge=0, le=1 << 62)]
_Cost = Annotated[float, Meta(ge=0, le=1e18)]


class PlanCandidate(Struct, kw_only=True, frozen=True):
    """One request; times count from now."""

    number: Annotated[int, Meta(ge=1, le=MAX_PLAN)]
    kind: _Text
    title: _Text
    options: Annotated[
        list[_Text],
        Meta(max_length=64, description="Options of sbatch in addition to those of the script and command line."),
    ]
    text: Annotated[_Text, Meta(description="Reason, or what differs from the request; empty: nothing.")] = ""
    needs: Annotated[_Text, Meta(description="What the user must do first; such a candidate is never chosen.")] = ""
    status: Status = "valid"
    reasons: Annotated[list[_Text], Meta(max_length=64, description="Why it is invalid or could not be checked.")] = []
    waits: Annotated[
        list[_Text], Meta(max_length=64, description="Used-up limits of accounts and QOS that the job waits for.")
    ] = []
    jobs: Annotated[int, Meta(ge=1, le=64, description="Number of jobs; above 1 each runs after the previous one.")] = 1
    partition: _Text = ""
    qos: _Text = ""
    gpus: _Amount = 0
    gpu_type: _Text = ""
    cpus: _Amount | None = None
    mem_b: _Amount | None = None
    time_limit_s: _Amount | None = None
    slurm_start: Annotated[MaybeUtc, Meta(description="The start that sbatch --test-only prints.")] = None
    start: Annotated[Interval | None, Meta(description="The expected start; null: no hub or no queue.")] = None
    end: Annotated[Interval | None, Meta(description="The expected end.")] = None
    run_s: Annotated[_Amount | None, Meta(description="Median run time that is expected, at most the limit.")] = None
    gpu_hours: Annotated[_Cost | None, Meta(description="GPU-hours for that run time.")] = None
    billing_hours: Annotated[_Cost | None, Meta(description="Billing TRES times hours, for that run time.")] = None
    risk: Annotated[
        MaybeRatio, Meta(description="Highest of the probabilities of failure, timeout and out of memory.")
    ] = None
    risk_of: Annotated[_Text, Meta(description="Which of the three it is.")] = ""
    program: Annotated[
        ProgramEstimate | None, Meta(description="Estimate for the job's program; null: no program given.")
    ] = None

    @property
    def ready(self) -> bool:
        """Whether it can be chosen automatically."""
        return self.status in {"valid", "unchecked"} and not self.needs

    @property
    def expected_start(self) -> int | None:
        """The middle of the interval, else Slurm's start."""
        return self.start.p50 if self.start else self.slurm_start

    @property
    def expected_end(self) -> int | None:
        """The middle of the interval, else Slurm's start plus the run time."""
        if self.end:
            return self.end.p50
        return None if self.slurm_start is None or self.run_s is None else self.slurm_start + self.run_s * self.jobs

    @property
    def sure_end(self) -> int | None:
        """When it ends in 90 of 100 cases; without an interval Slurm's start plus the time limit."""
        if self.end:
            return self.end.p90
        known = self.slurm_start is not None and self.time_limit_s is not None
        return (self.slurm_start or 0) + (self.time_limit_s or 0) * self.jobs if known else None


Order = Callable[[PlanCandidate], tuple[float, ...]]


class PlanDocument(Document, kw_only=True, frozen=True):
    """The answer of `gpuwaste plan`."""

    document: Literal["plan"] = "plan"
    recorded: Recorded = False
    at: Utc
    user: _Text
    name: Annotated[_Text, Meta(description="The job's name.")]
    script: Annotated[_Text, Meta(description="The script as given; empty: --wrap.")]
    goal: PlanGoal
    deadline: MaybeUtc = None
    chosen: Annotated[int | None, Meta(description="Number of the candidate that is best for the goal; null: none.")]
    meets_deadline: Annotated[bool | None, Meta(description="Whether the choice ends by the deadline.")] = None
    candidates: Annotated[list[PlanCandidate], Meta(max_length=MAX_PLAN)]
    notes: Annotated[list[_Text], Meta(max_length=64)]


class ExpectedRun(Struct, kw_only=True, frozen=True):
    """When one request would start and end, simulated forward from the live queue."""

    start: Interval
    end: Interval
    source: Annotated[str, Meta(description="Method: simulated, or simulated and corrected by past waits.")]


class ExpectAnswer(Document, kw_only=True, frozen=True):
    """One expectation for each request; null for one that no node of its partition can run."""

    at: Annotated[Utc, Meta(description="When the queue was read.")]
    expected: list[ExpectedRun | None]
    running: Annotated[int, Meta(description="Running jobs.")]
    waiting: Annotated[int, Meta(description="Pending jobs; each array task counts.")]
    place: Annotated[int | None, Meta(description="For a pending job: number of jobs ahead of it.")] = None
    reason: Annotated[str, Meta(description="For a pending job: Slurm's reason.")] = ""
    state: Annotated[str, Meta(description="For a job: its state in slurmctld.")] = ""


class SubmittedPlan(Struct, kw_only=True, frozen=True):
    """What `gpuwaste plan --submit` records at the hub of the candidate that it submitted."""

    jobs: Annotated[
        list[Annotated[int, Meta(ge=1, le=1 << 32)]],
        Meta(min_length=1, max_length=64, description="The jobs; each runs after the previous one."),
    ]
    candidate: Annotated[int, Meta(ge=1, le=MAX_PLAN)]
    title: _Text
    name: _Text = ""
    partition: _Text = ""
    qos: _Text = ""
    gpus: Annotated[int, Meta(ge=0, le=1 << 32)] = 0
    time_limit_s: Annotated[int, Meta(ge=0, le=1 << 32)] | None = None
    start: Annotated[Interval | None, Meta(description="The expected start of the first job.")] = None
    end: Annotated[Interval | None, Meta(description="The expected end of the last job.")] = None


class WaitTableAnswer(Document, kw_only=True, frozen=True):
    """How long jobs of each shape would wait if they were submitted at `at`, for advisors."""

    at: Annotated[Utc, Meta(description="When the queue was read.")]
    rows: Annotated[list[WaitRow], Meta(max_length=MAX_ROWS)]


class PlansRecorded(Document, kw_only=True, frozen=True):
    """The jobs whose plan was recorded; those that have one already are left out."""

    jobs: list[int]


def _end(one: PlanCandidate) -> float:
    return inf if one.expected_end is None else one.expected_end


def _cost(one: PlanCandidate) -> float:
    cost = one.billing_hours if one.billing_hours is not None else one.gpu_hours
    return inf if cost is None else cost


def _risk(one: PlanCandidate) -> float:
    return inf if one.risk is None else one.risk


ORDERS: dict[PlanGoal, Order] = {
    "fastest": lambda one: (_end(one), _cost(one), _risk(one), one.number),
    "cheapest": lambda one: (_cost(one), _end(one), _risk(one), one.number),
    "safest": lambda one: (_risk(one), _end(one), _cost(one), one.number),
}


def choose(candidates: Sequence[PlanCandidate], goal: PlanGoal, deadline: int | None = None) -> PlanCandidate | None:
    """Return the best of those that can be chosen; only of those that end by the deadline, where there are any.

    None where none is valid. With a deadline that none meets it is the one that ends first.
    """
    ready = [one for one in candidates if one.ready]
    if deadline is None:
        return min(ready, key=ORDERS[goal], default=None)
    in_time = [one for one in ready if meets(one, deadline)]
    return min(in_time, key=ORDERS[goal]) if in_time else min(ready, key=ORDERS["fastest"], default=None)


def meets(one: PlanCandidate, deadline: int) -> bool:
    """Return whether a candidate ends by the deadline in 90 of 100 cases; one without a known end does not."""
    return one.sure_end is not None and one.sure_end <= deadline
