"""Keeps in a replay: recorded ones are honoured and counted, and what would be if a share of the owners had asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.act.rules.live_precision import LivePrecision
from gpuwaste.act.rules.rule_definition import Rule
from gpuwaste.act.rules.rule_types import ReplayAsked, ReplayKept, ReplayRow
from gpuwaste.core.proportion import wilson
from gpuwaste.core.units import HOUR_S
from gpuwaste.store.database import Database

USUAL_ASKED: Final = 0.12
"""The share of the owners of wrongly hit jobs that is assumed where the site has too few of its own."""
FEWEST_WRONG: Final = 20  # misjudged runs of which the site's own share is taken


@dataclass(frozen=True, slots=True)
class AskedShare:
    """The share of the owners of wrongly hit runs who asked for a keep, with its interval where it was measured."""

    share: float = USUAL_ASKED
    low: float | None = None
    high: float | None = None
    of: int = 0


def asked_share(live: LivePrecision | None) -> AskedShare:
    """Return the site's own share, where the rule was wrong often enough, else the usual one."""
    if live is None or live.wrong < FEWEST_WRONG:
        return AskedShare()
    low, high = wilson(live.wrong_kept, live.wrong) or (None, None)
    return AskedShare(live.wrong_kept / live.wrong, low, high, live.wrong)


def honour_keeps(db: Database, afters: Sequence[int], rule: Rule) -> list[ReplayKept]:
    """Take the instants at which runs were kept out of table matched; return what that changed, by delay."""
    if not rule.head.keep:
        return []
    db.run("replay_unkept", {"afters": afters})
    db.run("replay_keep_out")
    steps = {step.after_s: step.action for step in rule.steps}
    return [_kept(row, steps) for row in db.rows("replay_keeps", {"afters": afters})]


def asked_rows(rows: Sequence[ReplayRow], rule: Rule, asked: AskedShare) -> list[ReplayAsked]:
    """Return what the last step would give if a share of the owners of wrongly hit runs had kept them.

    Only these ask, and each is kept until its GPUs work again; so the runs that were rightly hit stay.
    """
    last = max(step.after_s for step in rule.steps)
    row = next((one for one in rows if one.after_s >= last), None)
    if row is None or not row.judged:
        return []
    shares = [asked.share, *(share for share in (asked.low, asked.high) if share is not None)]
    return [_asked(row, share, measured=bool(asked.of)) for share in dict.fromkeys((0.0, *sorted(shares)))]


def _asked(row: ReplayRow, share: float, *, measured: bool) -> ReplayAsked:
    wrong = row.wrong * (1 - share)
    right = row.judged - row.wrong
    return ReplayAsked(
        share=share,
        measured=measured,
        after_s=row.after_s,
        wrong=wrong,
        precision=right / (right + wrong) if right + wrong else None,
        freed_gpu_h=row.freed_gpu_h,
        lost_gpu_h=row.lost_gpu_h * (1 - share),
    )


def _kept(row: Mapping[str, float], steps: Mapping[int, str]) -> ReplayKept:
    return ReplayKept(
        after_s=int(row["threshold_s"]),
        step=steps.get(int(row["threshold_s"]), ""),
        hits=int(row["hits"]),
        avoided=int(row["avoided"]),
        right=int(row["correct"]),
        wrong=int(row["wrong"]),
        not_freed_gpu_h=row["not_freed_s"] / HOUR_S,
        spared_gpu_h=row["spared_s"] / HOUR_S,
    )
