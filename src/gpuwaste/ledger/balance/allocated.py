"""What allocated GPU-seconds were used for, by the ledger: the parts of a Tally, and those of a window."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from gpuwaste.ledger.findings import CAUSE_ORDER, cause_name
from gpuwaste.ledger.judged_runs import judged_runs
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.ledger.tally import Tally
from gpuwaste.store.database import Database

USES: Final[Mapping[str, str]] = {
    "high": "high utilization",
    "moderate": "moderate utilization",
    "low": "low utilization",
    "short": "idle under a minute",
    "unexplained": "wasted",
    "exempt": "wasted, exempt",
    "suspended": "suspended",
    "unknown": "use unknown",
}
"""What an allocated GPU-second is counted as, in the order of tables and charts, with its name for readers."""
NO_CAUSE: Final = ""


class WindowUse(NamedTuple):
    """GPU-milliseconds of allocated GPUs by what they are counted as, and of the waste without a reason by finding."""

    uses: Counter[str]
    causes: Counter[str]

    def bounded(self, allocated_ms: int) -> "WindowUse":
        """Return parts that add up to what was allocated: what the ledger has not is unknown, and no part is larger.

        Runs that held more GPUs than their nodes have are cut, from the last part of USES on.
        """
        left = allocated_ms
        uses: Counter[str] = Counter()
        for name in USES:
            if name != "unknown":
                uses[name] = min(self.uses[name], left)
                left -= uses[name]
        uses["unknown"] = left
        causes: Counter[str] = Counter()
        rest = uses["unexplained"]
        for cause in (*CAUSE_ORDER, *sorted(self.causes.keys() - set(CAUSE_ORDER))):
            causes[cause] = min(self.causes[cause], rest)
            rest -= causes[cause]
        causes[NO_CAUSE] = rest
        return WindowUse(uses, +causes)


def use_of(total: Tally) -> dict[str, int]:
    """Return the GPU-milliseconds of a sum by what they are counted as; they add up to what was held."""
    exempt = min(sum(total.exempt.values()), total.wasted_ms)
    known = total.known_ms + total.suspended_ms
    return {
        "high": total.high_ms,
        "moderate": total.moderate_ms,
        "low": total.low_ms,
        "short": max(0, total.idle_ms - total.wasted_ms),
        "unexplained": total.wasted_ms - exempt,
        "exempt": exempt,
        "suspended": total.suspended_ms,
        "unknown": max(0, total.alloc_ms - known),
    }


def window_use(
    db: Database, clusters: Sequence[str], edges: tuple[int, int], settings: LedgerSettings, now: int
) -> WindowUse:
    """Return what GPUs that jobs held in [start, end) were used for; no clusters means all. Raises StoreError."""
    found = WindowUse(Counter(), Counter())
    if not db.rows("balance_use_known")[0]["known"]:  # accounting alone: nothing to judge
        return found
    for cluster in clusters or (None,):
        total = Tally()
        selection = Selection(*edges, clusters=None if cluster is None else (cluster,))
        with judged_runs(db, selection, settings, now) as runs:
            for sums in runs.sums().values():
                total.add_tally(sums.own)
            for causes in runs.account_causes().values():
                found.causes.update({cause: round(gpu_s * 1000) for cause, gpu_s in causes.items()})
        found.uses.update(use_of(total))
    return found


def cause_text(cause: str) -> str:
    """Return the name of a finding as the cause of waste."""
    return cause_name(cause) if cause else "no finding"
