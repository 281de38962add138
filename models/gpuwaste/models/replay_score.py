"""Whether what would have been said came true, and which GPU-hours heeding it would have saved."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.advice.policy.policies_types import PolicyReplayRow
from gpuwaste.advice.policy.policy_case import PolicyOutcome
from gpuwaste.advice.policy.policy_file import PROBABILITIES, QUANTITIES
from gpuwaste.advice.predict.targets import labels, request_cap
from gpuwaste.advice.verdicts.hits import HIT_SHARE
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.history.table import ABSENT, Floats, JobTable
from gpuwaste.jobs.verdict import TOLD, Action

ALL: Final = "all"


_COUNTED: Final = ("jobs", "said", "right", "wrong", "unknown")


@dataclass(slots=True)
class ReplayedSubmission:
    """One submission with its decision; `rows` are its runs, several of an array; `saves` by kind of suggestion."""

    decision: PolicyOutcome
    rows: list[int]
    user: str
    saves: dict[str, float]


class ReplayScore:
    """Collects submissions; their runs are judged at the end, when an array is whole."""

    def __init__(self, table: JobTable) -> None:
        self._table = table
        self._labels = {target: labels(target, table) for target in PROBABILITIES}
        self._taken = {target: labels(target, table) for target in QUANTITIES}
        self._judged = (table.gpus > 0) & (table.gpu_coverage >= table.under_use.min_coverage)
        self._found: list[ReplayedSubmission] = []
        self._held: Counter[str] = Counter()

    def add(self, submission: ReplayedSubmission) -> None:
        """Take a submission of which something would be said, or was held back."""
        decision = submission.decision
        if decision.held and (decision.would_be != "pass" or decision.held == "exempt"):
            self._held[decision.held] += 1
        if decision.would_be != "pass":
            self._found.append(submission)

    def came_true(self, submission: ReplayedSubmission) -> bool | None:
        """Tell whether one of its targets came true, None where that is not known of any."""
        found = [self._right(submission, target) for target in submission.decision.triggers]
        return True if True in found else False if False in found else None

    def known_at(self, submission: ReplayedSubmission) -> int:
        """Return the UTC second at which the first run's outcome was known."""
        row = submission.rows[0]
        return int(max(self._table.end[row], self._table.ledger_at[row]))

    def document(self) -> dict[str, Any]:
        """Return the rows, and what held back."""
        sums: defaultdict[tuple[str, str, Action], Counter[str]] = defaultdict(Counter)
        saved_h: defaultdict[tuple[str, str, Action], float] = defaultdict(float)
        users: defaultdict[tuple[str, str, Action], set[str]] = defaultdict(set)
        for submission in self._found:
            decision = submission.decision
            hours = {target: self._gpu_hours(submission, target) for target in decision.triggers}
            for target in (ALL, *decision.triggers):
                right = self.came_true(submission) if target == ALL else self._right(submission, target)
                saved = max(hours.values(), default=0.0) if target == ALL else hours[target]
                key = decision.policy, target, decision.would_be
                outcome = {True: "right", False: "wrong", None: "unknown"}[right]
                sums[key].update(jobs=1, said=decision.action in TOLD, **{outcome: 1})
                saved_h[key] += saved
                users[key].add(submission.user)
        rows = [
            PolicyReplayRow(
                policy=key[0], target=key[1], would_be=key[2], **{name: count[name] for name in _COUNTED},
                gpu_hours=round(saved_h[key], 3), users=len(users[key]),
            )
            for key, count in sorted(sums.items())
        ]  # fmt: skip
        everybody = {submission.user for submission in self._found}
        return {"rows": rows, "held": dict(self._held), "users": len(everybody)}

    def _right(self, submission: ReplayedSubmission, target: str) -> bool | None:
        """Tell whether enough of the runs that are known of came out as said (advice/verdicts/hits.py)."""
        values = [self._came_out(submission, target, row) for row in submission.rows]
        known = [value for value in values if not math.isnan(value)]
        return None if not known else sum(known) >= HIT_SHARE * len(known)

    def _came_out(self, submission: ReplayedSubmission, target: str, row: int) -> float:
        """Return 1 where a run came out as said, 0 where not, NaN where that is not known."""
        if target in self._labels:
            return float(self._labels[target][row])
        t = self._table
        if target in QUANTITIES:
            enough = float(request_cap(target, t)[row]) - submission.saves.get(QUANTITIES[target], 0.0)
            known = _known(self._taken[target], row) and t.end[row] != ABSENT
            return float(self._taken[target][row] <= enough) if known else math.nan
        return float(t.gpus_active[row] < t.gpus[row]) if self._judged[row] else math.nan

    def _gpu_hours(self, submission: ReplayedSubmission, target: str) -> float:
        """Return the GPU-hours of the runs that came out as said: of jobs that failed all, else of idle GPUs."""
        if target in QUANTITIES:
            return 0.0
        total, t = 0.0, self._table
        for row in submission.rows:
            if self._came_out(submission, target, row) == 1.0 and _known(t.run_s, row) and t.gpus[row] > 0:
                gpus = t.gpus[row] if target in self._labels else t.gpus[row] - t.gpus_active[row]
                total += float(gpus * t.run_s[row]) / HOUR_S
        return total


def _known(column: Floats, row: int) -> bool:
    return not math.isnan(float(column[row]))
