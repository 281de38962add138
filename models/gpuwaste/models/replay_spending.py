"""What users have spent and how good policies are, at a moment of a replay: only ended jobs count."""

import heapq
from collections import Counter
from datetime import date

from gpuwaste.advice.policy.facts import Spent as Kind
from gpuwaste.jobs.verdict import TOLD
from gpuwaste.models.replay_score import ReplayedSubmission, ReplayScore


class ReplaySpending:
    """Spending (policy.facts) of a replay."""

    def __init__(self) -> None:
        self._day = date.min
        self._had: Counter[tuple[Kind, str]] = Counter()
        self._open: list[tuple[int, int, str, bool]] = []
        self._judged: Counter[str] = Counter()
        self._right: Counter[str] = Counter()
        self._number = 0

    def now(self, at: int, day: date) -> None:
        """Let time pass: a new day begins, jobs have ended."""
        if day != self._day:
            self._day = day
            self._had.clear()
        while self._open and self._open[0][0] <= at:
            _, _, policy, right = heapq.heappop(self._open)
            self._judged[policy] += 1
            self._right[policy] += right

    def charge(self, submission: ReplayedSubmission, tally: ReplayScore) -> None:
        """Count a reject, and what becomes of what was said."""
        decision = submission.decision
        if decision.action == "reject":
            self._had["reject", submission.user] += 1
        if decision.action in TOLD or decision.sampled:
            found = tally.came_true(submission)
            if found is not None:
                self._number += 1
                heapq.heappush(self._open, (tally.known_at(submission), self._number, decision.policy, found))

    def spent(self, kind: Kind, user: str) -> int:
        """Return how many of a kind the user has had today."""
        return self._had["reject" if kind == "reject" else "override", user]

    def precision(self, policy: str) -> tuple[float, int] | None:
        """Return the precision of what was said and has ended by now."""
        judged = self._judged[policy]
        return (self._right[policy] / judged, judged) if judged else None
