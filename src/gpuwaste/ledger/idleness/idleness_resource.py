"""Whether a job or a node is idle: /v1/jobs/ID/idleness and /v1/nodes/NAME/idleness, signed, for cullers of others."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from gpuwaste.core.fields import Name
from gpuwaste.core.scope import Scope
from gpuwaste.ledger.idleness.idleness_types import IdlenessDocument
from gpuwaste.show.resource import Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.ledger.idleness.idleness_reads import IdlenessReads

LEAST_S: Final = 60  # as long as a run of zeros that counts as idle
MOST_S: Final = 7 * 86_400
MOST_AGE_S: Final = 3600

_For = Annotated[
    int | None,
    Meta(ge=LEAST_S, le=MOST_S, description="idle seconds that make the answer yes; default: [hub] idle_after_s"),
]
_Age = Annotated[
    int | None,
    Meta(
        ge=LEAST_S,
        le=MOST_AGE_S,
        description="largest age of as_of for yes, seconds; default: as old as reports may be",
    ),
]
_Nonce = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_-]{0,64}$", description="random text that the answer repeats, so that no older one fits"
    ),
]


@dataclass(frozen=True)
class JobIdleQuestion:
    """A job as Slurm prints its id, and the limits."""

    for_s: _For = None
    max_age_s: _Age = None
    nonce: _Nonce = ""
    _: KW_ONLY
    job_id: str


@dataclass(frozen=True)
class NodeIdleQuestion:
    """A node by its NodeName, and the limits."""

    for_s: _For = None
    max_age_s: _Age = None
    nonce: _Nonce = ""
    _: KW_ONLY
    node: Name


def _reads(reading: Reading) -> "IdlenessReads":
    from gpuwaste.ledger.idleness.idleness_reads import IdlenessReads

    return reading.get(IdlenessReads)


def job_idleness(reading: Reading, scope: Scope, question: JobIdleQuestion) -> IdlenessDocument:
    """Return whether all running runs of a job are idle: yes, no or unknown, with the evidence; signed.

    `yes` is about the time from `since` to `as_of` only, and must not be used after `valid_until`. The header
    Gpuwaste-Ack signs the body for the credential of the request, with munge or with the caller's token.
    """
    from gpuwaste.ledger.idleness.idleness_reads import IdleQuestion

    asked = IdleQuestion(name=question.job_id, for_s=question.for_s, max_age_s=question.max_age_s, nonce=question.nonce)
    return _reads(reading).job(scope, asked)


def node_idleness(reading: Reading, scope: Scope, question: NodeIdleQuestion) -> IdlenessDocument:
    """Return whether a node is idle: all runs on it hold GPUs and are idle, or none is there; for operators and staff.

    Signed and bounded in time as that of a job.
    """
    from gpuwaste.ledger.idleness.idleness_reads import IdleQuestion

    asked = IdleQuestion(name=question.node, for_s=question.for_s, max_age_s=question.max_age_s, nonce=question.nonce)
    return _reads(reading).node(scope, asked)


RESOURCES: Final = (
    Resource(
        path="/v1/jobs/{job_id}/idleness",
        question=JobIdleQuestion,
        document=IdlenessDocument,
        read=job_idleness,
        signed=True,
    ),
    Resource(
        path="/v1/nodes/{node}/idleness",
        question=NodeIdleQuestion,
        document=IdlenessDocument,
        read=node_idleness,
        signed=True,
    ),
)
