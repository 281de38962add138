"""Rungs: what each step of a ladder would have freed on history, and what it would have cost where it was wrong.

A run was hit wrongly if a GPU of it was active again before its end (of a shrink: a GPU of a released node). For a step
at the instant t of a run that began at s, ended at e and held G GPUs, in GPU-seconds:

    step           frees, if right   costs, if wrong, at most   at least
    notify, ...    0                 0                          0
    checkpoint     0                 not known                  0
    shrink         g (e - t)         G (t - s)                  0
    requeue        G (e - t)         G (t - s)                  G (t - c)
    cancel         G (e - t)         G (t - s)                  G (t - c)

g are the GPUs on all nodes of the run but its first. c is the instant of a checkpoint step before this one, else s: at
least where every job saves its state when it is asked to, at most where none does; at least where a program goes on
with fewer nodes, at most where it ends. What a requeued job does when it runs again is not in the history: what it
frees is counted until then. What a signal ends, and what a request that is lowered frees, is not known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.rules.rule_definition import Rule
from gpuwaste.act.rules.rule_types import ReplayLadder, ReplayRung
from gpuwaste.core.units import HOUR_S
from gpuwaste.store.database import Database
from gpuwaste.store.hub.json_rows import to_json

SHORTEST_S: Final = 300  # the least delay of a replay
_ENDS: Final = frozenset({"shrink", "requeue", "cancel"})
_OWN: Final = "this rule"


@dataclass(frozen=True, slots=True)
class Rung:
    """A step of a ladder at its delay, seconds."""

    after_s: int
    action: str


@dataclass(frozen=True, slots=True)
class LadderPlan:
    """A ladder to replay, with its name."""

    name: str
    rungs: Sequence[Rung]


def plans_of(rule: Rule) -> list[LadderPlan]:
    """Return the rule's own ladder and the usual ones, which end at the delay of its hardest step."""
    own = [Rung(max(int(step.after_s), SHORTEST_S), step.action) for step in rule.steps]
    hardest = max(own, key=lambda rung: (actions()[rung.action].severity, rung.after_s))
    at, soft = hardest.after_s, max(hardest.after_s // 2, SHORTEST_S)
    return [
        LadderPlan(_OWN, own),
        LadderPlan("cancel", [Rung(at, "cancel")]),
        LadderPlan("requeue, cancel", [Rung(at, "requeue"), Rung(at, "cancel")]),
        LadderPlan("checkpoint, cancel", [Rung(soft, "checkpoint"), Rung(at, "cancel")]),
        LadderPlan(
            "checkpoint, shrink, requeue, cancel",
            [Rung(soft, "checkpoint"), Rung(at, "shrink"), Rung(at, "requeue"), Rung(at, "cancel")],
        ),
    ]


def delays_of(plans: Sequence[LadderPlan]) -> set[int]:
    """Return the delays at which a replay has to look at each stretch, seconds."""
    return {rung.after_s for plan in plans for rung in plan.rungs}


def replayed_ladders(db: Database, plans: Sequence[LadderPlan]) -> list[ReplayLadder]:
    """Return what each ladder would have done; needs the temp tables of a replay. Raises StoreError."""
    rungs = [
        {"ladder": place, "number": number, "action": rung.action, "after_s": rung.after_s}
        for place, plan in enumerate(plans)
        for number, rung in enumerate(plan.rungs)
    ]
    found = {(row["ladder"], row["number"]): row for row in db.rows("replay_ladders", {"rungs": to_json(rungs)})}
    return [
        _ladder(plan, [_rung(rung, found.get((place, number), {})) for number, rung in enumerate(plan.rungs)])
        for place, plan in enumerate(plans)
    ]


def _rung(rung: Rung, row: Mapping[str, Any]) -> ReplayRung:
    kind, wrong = actions()[rung.action], int(row.get("wrong", 0))
    known = rung.action in _ENDS or not kind.severity
    freed = row.get("freed_s", 0.0) / HOUR_S if known or rung.action == "checkpoint" else None
    return ReplayRung(
        after_s=rung.after_s,
        action=rung.action,
        jobs=int(row.get("jobs", 0)),
        judged=int(row.get("judged", 0)),
        wrong=wrong,
        freed_gpu_h=freed,
        cost_gpu_h=row.get("cost_s", 0.0) / HOUR_S if known else None,
        cost_low_gpu_h=row.get("cost_low_s", 0.0) / HOUR_S if known or rung.action == "checkpoint" else None,
        resubmitted=wrong if rung.action == "cancel" else 0,
        freed_per_wrong_gpu_h=freed / wrong if wrong and freed is not None and rung.action in _ENDS else None,
    )


def _ladder(plan: LadderPlan, rungs: Sequence[ReplayRung]) -> ReplayLadder:
    """Add up the steps that end or shrink a run: each run has one of them at most."""
    hard = [rung for rung in rungs if rung.action in _ENDS]
    wrong, freed = sum(rung.wrong for rung in hard), sum(rung.freed_gpu_h or 0.0 for rung in hard)
    return ReplayLadder(
        name=plan.name,
        jobs=sum(rung.jobs for rung in hard),
        judged=sum(rung.judged for rung in hard),
        wrong=wrong,
        freed_gpu_h=freed,
        cost_gpu_h=sum(rung.cost_gpu_h or 0.0 for rung in hard),
        cost_low_gpu_h=sum(rung.cost_low_gpu_h or 0.0 for rung in hard),
        resubmitted=sum(rung.resubmitted for rung in hard),
        freed_per_wrong_gpu_h=freed / wrong if wrong else None,
        rungs=list(rungs),
    )


def order_notes(rule: Rule) -> list[str]:
    """Return notes on a ladder that does not begin with the least regret, one line each."""
    notes, hardest = [], 0
    about = rule.head.about
    for number, step in enumerate(rule.steps, start=1):
        severity = actions()[step.action].severity
        if 0 < severity < hardest:
            harder = next(one.action for one in rule.steps if actions()[one.action].severity == hardest)
            notes.append(f"step {number}, {step.action}, is softer than {harder} before it: put it first")
        hardest = max(hardest, severity)
        if step.action == "lower_request" and about != "waiting":
            notes.append(f'step {number}, lower_request, needs a waiting job: set about = "waiting"')
        if step.action in {"checkpoint", "shrink"} and about == "waiting":
            notes.append(f'step {number}, {step.action}, needs a running job: set about = "running"')
    steps = {step.action for step in rule.steps}
    softer = [name for name in ("checkpoint", "shrink", "requeue") if name not in steps]
    if "cancel" in steps and about == "running" and not any(1 < actions()[name].severity < hardest for name in steps):
        notes.append(f"cancel is its only hard step; softer ones are {', '.join(softer)}")
    return notes
