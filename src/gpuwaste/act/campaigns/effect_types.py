"""The types of the hub's answers on the effect of campaigns."""

from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import DatedDocument, Recorded, Utc

State = Literal["planned", "running", "ended", "stopped"]
_MAYBE: Final = "null: not known yet."


class EffectFigure(Struct, kw_only=True, frozen=True):
    """An effect with its interval of 95 %, which may be read at any time while the campaign runs."""

    value: Annotated[float | None, Meta(description=_MAYBE)] = None
    low: Annotated[float | None, Meta(description="Lower end; null: not bounded yet.")] = None
    high: Annotated[float | None, Meta(description="Upper end; null: not bounded yet.")] = None


class RecordLine(Struct, kw_only=True, frozen=True):
    """A line of a campaign's record."""

    at: Utc
    what: Annotated[str, Meta(description="found, changed, removed, returned, key changed, measured, ended.")]
    words: str


class CampaignEffect(Struct, kw_only=True, frozen=True):
    """A campaign and what it has shown."""

    name: str
    state: State
    what: Annotated[list[str], Meta(description='What a part of the units does not get: "policy:NAME" and so on.')]
    unit: Literal["user", "account"]
    start: Utc
    end: Utc
    weeks: Annotated[int, Meta(description="Planned weeks.")]
    complete: Annotated[int, Meta(description="Weeks of these that have ended and are in the figures.")]
    without_data: Annotated[int, Meta(description="Complete weeks that are left out: too many GPU-hours are unknown.")]
    notified: Annotated[int, Meta(description="Units that are notified in the last complete week, or at the start.")]
    held_back: Annotated[int, Meta(description="Units that are not.")]
    sentence: Annotated[str, Meta(description="The answer in one sentence.")]
    saved_gpu_h: Annotated[EffectFigure, Meta(description="Saved idle GPU-hours; below 0: more were idle.")]
    saved_ratio: Annotated[EffectFigure, Meta(description="Saved share of idle GPU-hours of those notified, up to 1.")]
    held_ratio: Annotated[EffectFigure, Meta(description="By how much GPU-hours held are fewer, as a share.")]
    jobs_ratio: Annotated[EffectFigure, Meta(description="By how much jobs that ended are fewer, as a share.")]
    failed_more: Annotated[EffectFigure, Meta(description="Larger share of failed jobs where notified, -1 to 1.")]
    timed_out_more: Annotated[EffectFigure, Meta(description="The same of jobs at their time limit.")]
    spill_over_ratio: Annotated[
        float | None, Meta(description="saved_ratio if those held back saved half as much; null: no effect is shown.")
    ] = None
    worth: Annotated[EffectFigure, Meta(description="Saved GPU-hours x [energy] price_per_gpu_hour.")] = EffectFigure()
    currency: str = ""
    notified_held_gpu_h: Annotated[float, Meta(description="GPU-hours that those notified held.")] = 0.0
    notified_idle_gpu_h: Annotated[float, Meta(description="GPU-hours of these idle without a known reason.")] = 0.0
    other_held_gpu_h: Annotated[float, Meta(description="GPU-hours that those held back held.")] = 0.0
    other_idle_gpu_h: Annotated[
        float, Meta(description="GPU-hours of these that were idle without a known reason.")
    ] = 0
    notified_unknown_ratio: Annotated[float | None, Meta(description="Unknown share of notified_held_gpu_h.")] = None
    other_unknown_ratio: Annotated[float | None, Meta(description="Unknown share of other_held_gpu_h.")] = None
    smallest_ratio: Annotated[
        float | None, Meta(description="Smallest saved share that the planned weeks show in 80 of 100 cases.")
    ] = None
    largest_unit_ratio: Annotated[
        float | None, Meta(description="Share of all GPU-hours held that the largest unit has.")
    ] = None
    notices: Annotated[int, Meta(description="Verdicts, steps of rules and digests that reached those notified.")] = 0
    withheld: Annotated[int, Meta(description="Those that were held back.")] = 0
    leaked: Annotated[int, Meta(description="Those that reached somebody who was held back: should be 0.")] = 0
    problems: Annotated[list[str], Meta(description="What weakens the answer.")] = []
    record: Annotated[list[RecordLine], Meta(description="What happened to the campaign.")] = []


class EffectsDocument(DatedDocument, kw_only=True, frozen=True):
    """The campaigns of the site, the newest first."""

    ROWS: ClassVar[str] = "campaigns"
    HIDDEN: ClassVar[tuple[str, ...]] = (
        *("what", "problems", "record", "saved_gpu_h", "saved_ratio", "held_ratio", "jobs_ratio", "failed_more"),
        *("timed_out_more", "worth"),
    )
    document: Literal["effects"] = "effects"
    recorded: Recorded = False
    campaigns: list[CampaignEffect]
    errors: Annotated[list[str], Meta(description="Files that are not in use, and why.")]


class SplitSide(Struct, kw_only=True, frozen=True):
    """One side of a comparison without a campaign."""

    start: Utc
    end: Utc
    held_gpu_h: float
    idle_gpu_h: Annotated[float, Meta(description="GPU-hours that were idle without a known reason.")]
    unknown_gpu_h: float
    jobs: int
    failed: int
    timed_out: int


class SplitDocument(DatedDocument, kw_only=True, frozen=True):
    """Before and after an instant: a difference, and no effect."""

    document: Literal["split"] = "split"
    recorded: Recorded = False
    warning: Annotated[str, Meta(description="Why the difference is no saving.")]
    before: SplitSide
    after: SplitSide
