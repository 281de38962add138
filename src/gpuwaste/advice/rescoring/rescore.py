"""Rescore: what was said of a running job at a moment after its submission."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.run import RunKey

Moment = Literal["start", "early", "limit"]


@dataclass(frozen=True, slots=True)
class Rescore:
    """One moment of one run: its start, ten minutes later (early), or before its time limit (limit)."""

    run: RunKey
    moment: Moment
    at_utc: Annotated[int, Meta(description="When it was predicted, UTC seconds.")]
    p: Annotated[Mapping[str, float], Meta(description="Probability by target.")] = field(default_factory=dict)
    limit_p: Annotated[float | None, Meta(description="Of reaching the time limit, given how long the run lasts.")] = (
        None
    )
    limit_at: Annotated[int | None, Meta(description="When the time limit is reached, UTC seconds.")] = None
    usual: Annotated[bool, Meta(description="Whether the user's jobs like it all reach their time limit.")] = False
    model_hash: Annotated[str, Meta(description="Empty: by job history only.")] = ""


class LimitForecast(NamedTuple):
    """A running job and what was said of it."""

    job: JobRecord
    said: Rescore
