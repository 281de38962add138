"""Family appeal: what owners of jobs contest, and the replies."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from gpuwaste.core.codec import Whole
from gpuwaste.jobs.events.event_kind import EventKind


class AppealStep(Struct, kw_only=True, frozen=True):
    """An appeal as it is then."""

    appeal: Annotated[str, Meta(description="The appeal's id.")]
    kind: Annotated[
        Literal["judgement", "verdict", "action"],
        Meta(description="The figures of a job, advice at sbatch, or an action of a rule."),
    ]
    about: Annotated[str, Meta(description="Id of the verdict or action; empty: the figures of the job.")]
    printed_id: Annotated[str, Meta(description="The job as Slurm prints it; empty: it was rejected at sbatch.")]
    user: str
    runs: Annotated[Whole, Meta(description="Number of runs.")]
    words: str
    status: Literal["open", "closed"]
    outcome: Annotated[Literal["", "upheld", "dismissed"], Meta(description="Empty: open.")]
    reply: str
    replied_by: str


KINDS: Final = (
    EventKind("appeal.opened", "The owner of a job says that figures, advice or an action are wrong.", AppealStep),
    EventKind("appeal.closed", "An operator has replied to an appeal.", AppealStep),
)
