"""What users have had of a policy's budgets today, and how good the policies have been: policy.facts.Spending."""

import time
from collections import Counter
from collections.abc import Mapping

from gpuwaste.advice.policy.facts import PolicyOutcome, Spent


class BudgetCounts:
    """Counts in memory, on the loop's thread; the outbox keeps them across a restart."""

    def __init__(self) -> None:
        self.standing: Mapping[str, tuple[float, int]] = {}  # policy -> precision and what it rests on
        self.day = ""
        self._spent: Counter[tuple[Spent, str]] = Counter()
        self._checked_s = 0

    def restore(self, day: str, spent: Mapping[tuple[Spent, str], int]) -> None:
        """Go on with what was spent on a local date, YYYY-MM-DD."""
        self.day, self._spent = day, Counter(spent)

    def today(self, now_s: int) -> None:
        """Note the time of a submission: at local midnight everything begins anew."""
        if now_s == self._checked_s:
            return
        self._checked_s = now_s
        day = time.strftime("%Y-%m-%d", time.localtime(now_s))
        if day != self.day:
            self.day = day
            self._spent.clear()

    def charge(self, user: str, decision: PolicyOutcome) -> None:
        """Count what a decision spends: the same rule as wire.verdict_outbox's."""
        if decision.action == "reject":
            self._spent["reject", user] += 1
        if decision.override and decision.held == "override":
            self._spent["override", user] += 1

    def spent(self, kind: Spent, user: str) -> int:
        """Return how many of a kind the user has had today."""
        return self._spent[kind, user]

    def precision(self, policy: str) -> tuple[float, int] | None:
        """Return the precision of a policy as the hub scored it last, None where it is not known."""
        return self.standing.get(policy)
