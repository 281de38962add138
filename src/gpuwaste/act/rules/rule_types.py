"""The types of the hub's answers on rules: the list, how a rule applies to a job, a replay."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document, MaybeRatio, MaybeUtc, Ratio, Utc


class RuleQuestion(Struct, kw_only=True, frozen=True):
    """A rule in the form of its file, and the job or node to check."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    text: Annotated[str, Meta(max_length=65536, description="The file.")]
    job: Annotated[str, Meta(max_length=256, description="Job id as Slurm prints it, or a node's name.")] = ""
    start: Annotated[int, Meta(ge=0, le=2**40, description="UTC seconds; for a replay.")] = 0
    end: Annotated[int, Meta(ge=0, le=2**40, description="UTC seconds; for a replay.")] = 0


class LiveShare(Struct, kw_only=True, frozen=True):
    """How often a rule was right, by how the runs that it hit went on; a run counts once."""

    judged: Annotated[int, Meta(description="Runs whose outcome is known.")]
    wrong: Annotated[int, Meta(description="Judged runs of which a GPU worked again, or whose appeal was upheld.")]
    wrong_kept: Annotated[int, Meta(description="Runs of `wrong` that had been kept.")]
    unappealed: Annotated[int, Meta(description="Judged runs that the rule ended, and nobody appealed.")]
    unknown: Annotated[int, Meta(description="Runs whose outcome is not known, or not yet.")]
    precision: MaybeRatio
    precision_low: MaybeRatio
    precision_high: MaybeRatio


class ReplayedShare(Struct, kw_only=True, frozen=True):
    """The precision of a rule at its last step, by the last replay since the start of the hub."""

    start: Utc
    end: Utc
    judged: int
    precision: MaybeRatio
    precision_low: MaybeRatio
    precision_high: MaybeRatio


class RuleStanding(Struct, kw_only=True, frozen=True):
    """A rule in use."""

    name: str
    mode: Literal["observe", "notify", "act"]
    about: Literal["running", "waiting", "node", "model"]
    where: str
    steps: Annotated[list[str], Meta(description="Each step's delay and action.")]
    matching: Annotated[int | None, Meta(description="Jobs or nodes that matched at the last pass; null: no pass yet.")]
    left: Annotated[dict[str, int], Meta(description="Jobs or nodes skipped at the last pass, by reason.")]
    steps_30d: Annotated[int, Meta(description="Steps of the last 30 days.")]
    recorded_30d: Annotated[int, Meta(description="Steps of these that were only recorded.")]
    subjects_30d: Annotated[int, Meta(description="Different jobs or nodes of these steps.")]
    users_30d: Annotated[int, Meta(description="Different users of these steps.")]
    last: MaybeUtc
    live: Annotated[LiveShare | None, Meta(description="Of the last 90 days; null: the rule has hit no run.")] = None
    replayed: Annotated[ReplayedShare | None, Meta(description="null: not replayed since the start of the hub.")] = None
    precision_floor: Annotated[float, Meta(description="Below it the rule goes back to mode notify; 0: never.")] = 0.0
    demoted: Annotated[MaybeUtc, Meta(description="Since when it is in mode notify, though its file has act.")] = None
    demoted_why: str = ""


class RulesDocument(Document, kw_only=True, frozen=True):
    """The rules of the hub."""

    document: Literal["rules"] = "rules"
    schema: int = 1
    generated: Utc
    passed: MaybeUtc
    pass_s: Annotated[float, Meta(description="Duration of the last pass, seconds.")]
    rules: list[RuleStanding]
    errors: Annotated[list[str], Meta(description="Files that are not in use, and why.")]


class PartValue(Struct, kw_only=True, frozen=True):
    """A part of a condition, of those that && joins."""

    text: str
    value: Annotated[bool | None, Meta(description="null: not known; the rule does not match then.")]
    facts: dict[str, Any]


class SubjectLook(Struct, kw_only=True, frozen=True):
    """How a rule applies to one job or node now."""

    subject: str
    printed_id: str
    matches: bool
    exempt: Annotated[str, Meta(description="Why the rule skips this subject; empty: not skipped.")]
    kept: Annotated[str, Meta(description="Until when the rule waits, for whom and why; empty: not kept.")] = ""
    held_s: Annotated[
        float | None, Meta(description="Seconds for which the condition has held; null: it does not hold.")
    ]
    steps_done: int
    due: Annotated[str, Meta(description="The step that is due now; empty: none.")]
    parts: list[PartValue]


class LookDocument(Document, kw_only=True, frozen=True):
    """How a rule applies to a job or node now."""

    document: Literal["rule-look"] = "rule-look"
    schema: int = 1
    generated: Utc
    name: str
    mode: Literal["observe", "notify", "act"]
    matching: Annotated[int, Meta(description="Jobs or nodes that match now.")]
    candidates: Annotated[int, Meta(description="Jobs or nodes that were checked.")]
    found: list[SubjectLook]
    demoted: Annotated[str, Meta(description="Why the rule is in mode notify, though its file has act.")] = ""


class RuleRestored(Document, kw_only=True, frozen=True):
    """A rule that has the mode of its file again."""

    document: Literal["rule-restored"] = "rule-restored"
    schema: int = 1
    name: str
    mode: Literal["observe", "notify", "act"]


class ReplayRow(Struct, kw_only=True, frozen=True):
    """What the rule would have done with one delay."""

    after_s: int
    step: Annotated[str, Meta(description="The rule's own action at this delay; empty: none.")]
    jobs: Annotated[int, Meta(description="Runs that would have been hit.")]
    users: int
    judged: Annotated[int, Meta(description="Runs of these that have ended.")]
    wrong: Annotated[int, Meta(description="Judged runs of which a GPU was active again before the end.")]
    precision: MaybeRatio
    precision_low: MaybeRatio
    precision_high: MaybeRatio
    recall: Annotated[float | None, Meta(description="Share of the runs that stayed idle to their end, 0 to 1.")]
    recall_low: MaybeRatio
    recall_high: MaybeRatio
    freed_gpu_h: Annotated[float, Meta(description="GPU-hours from the hit to the end of the runs that stayed idle.")]
    lost_gpu_h: Annotated[float, Meta(description="GPU-hours from the hit to the end of the runs that woke up.")]


class ReplayKept(Struct, kw_only=True, frozen=True):
    """What recorded keeps changed of the hits with one delay."""

    after_s: int
    step: Annotated[str, Meta(description="The rule's own action at this delay; empty: none.")]
    hits: Annotated[int, Meta(description="Runs that would have been hit while they were kept.")]
    avoided: Annotated[int, Meta(description="Runs of these that were not hit after the keep either.")]
    right: Annotated[int, Meta(description="Ended runs of `hits` that stayed idle: the hit would have been right.")]
    wrong: Annotated[int, Meta(description="Ended runs of `hits` of which a GPU was active again.")]
    not_freed_gpu_h: Annotated[float, Meta(description="GPU-hours that keeps of the runs in `right` cost.")]
    spared_gpu_h: Annotated[float, Meta(description="GPU-hours that keeps of the runs in `wrong` left to them.")]


class ReplayAsked(Struct, kw_only=True, frozen=True):
    """The last step, had a share of the owners of wrongly hit runs requested a keep."""

    share: Annotated[Ratio, Meta(description="Share of the owners who requested a keep.")]
    measured: Annotated[bool, Meta(description="Whether the shares are the site's own: the share and its 95 % ends.")]
    after_s: int
    wrong: Annotated[float, Meta(description="Wrong hits that would be left.")]
    precision: MaybeRatio
    freed_gpu_h: float
    lost_gpu_h: float


class ReplayUser(Struct, kw_only=True, frozen=True):
    """The effect that the rule would have had on a user, at its last step."""

    user: str
    jobs: int
    wrong: int
    freed_gpu_h: float


class ReplayRung(Struct, kw_only=True, frozen=True):
    """What one step of a ladder would have done to the runs that reached it; null: not known from the history."""

    after_s: int
    action: str
    jobs: Annotated[int, Meta(description="Runs on which the step would have acted.")]
    judged: Annotated[int, Meta(description="Runs of these that have ended.")]
    wrong: Annotated[
        int,
        Meta(
            description="Judged runs of which a GPU was active again before the end; of a shrink: a GPU of a released"
            " node."
        ),
    ]
    freed_gpu_h: Annotated[
        float | None, Meta(description="GPU-hours that it frees to the end of the runs that were hit rightly.")
    ]
    cost_gpu_h: Annotated[
        float | None,
        Meta(description="GPU-hours lost in the runs hit wrongly, at most: no job has saved its state."),
    ]
    cost_low_gpu_h: Annotated[
        float | None,
        Meta(
            description="The same at least: each job saved its state at the checkpoint step, and goes on with fewer"
            " nodes."
        ),
    ]
    resubmitted: Annotated[int, Meta(description="Runs hit wrongly that their users have to submit again.")]
    freed_per_wrong_gpu_h: Annotated[
        float | None, Meta(description="freed_gpu_h / wrong; null: none was wrong, or not known.")
    ]


class ReplayLadder(Struct, kw_only=True, frozen=True):
    """What a ladder would have done: the sums of its steps that end or shrink a run."""

    name: str
    jobs: int
    judged: int
    wrong: int
    freed_gpu_h: float
    cost_gpu_h: float
    cost_low_gpu_h: float
    resubmitted: int
    freed_per_wrong_gpu_h: Annotated[float | None, Meta(description="null: none was wrong.")]
    rungs: list[ReplayRung]


class ReplayDocument(Document, kw_only=True, frozen=True):
    """What a rule would have done in a window of the history."""

    document: Literal["rule-replay"] = "rule-replay"
    schema: int = 1
    name: str
    start: Utc
    end: Utc
    runs: Annotated[int, Meta(description="Runs with GPUs in the window.")]
    idle_to_end: Annotated[int, Meta(description="Ended runs whose GPUs were idle to the end, for 5 minutes and more.")]
    by_day_ratio: Annotated[Ratio, Meta(description="Share of the GPU time that is stored only by day.")]
    interval: Annotated[str, Meta(description="How the intervals were made.")] = "bootstrap over users, 95 %"
    rows: list[ReplayRow]
    keeps: Annotated[
        list[ReplayKept], Meta(description="What recorded keeps changed; delays without any left out.")
    ] = []  # noqa: RUF012 copied
    asked: Annotated[
        list[ReplayAsked], Meta(description="By share of the owners who had requested a keep, 0 first.")
    ] = []  # noqa: RUF012 copied
    users: Annotated[list[ReplayUser], Meta(description="The 20 with the most hits at the last step.")]
    ladders: Annotated[
        tuple[ReplayLadder, ...],
        Meta(description="The rule's own ladder, then the usual ones with its hardest delay."),
    ] = ()
