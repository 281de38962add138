"""What users have had of a policy's budgets today, and how good the policies have been: policy.facts.Spending."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Final, Self

from gpuwaste.advice.policy.facts import PolicyOutcome, Spent
from gpuwaste.advisor.journal import VerdictJournal
from gpuwaste.advisor.slurm_facts import AdvisorPorts
from gpuwaste.advisor.verdict_outbox import VerdictOutbox
from gpuwaste.advisor.writer import Writer
from gpuwaste.core import log_event
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts

_RECOVERED: Final = log_event.info("spool-recovered: {verdicts} verdicts recovered from the spool")
_SPENT_UNKNOWN: Final = log_event.error(
    "budgets-unknown: cannot read what was spent today, budgets of policies begin at zero: {error}",
    "Check `[advisor] state_dir` and its disk.",
)


class BudgetCounts(Part):
    """Counts in memory, on the loop's thread; the outbox keeps them across a restart."""

    def __init__(self) -> None:
        self.standing: Mapping[str, tuple[float, int]] = {}  # policy -> precision and what it rests on
        self.day = ""
        self._spent: Counter[tuple[Spent, str]] = Counter()
        self._checked_s = 0

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return what was spent today, what a killed advisor left in the spool included. Raises nothing."""
        outbox, clock, counts = parts.get(VerdictOutbox), parts.get(AdvisorPorts).clock, cls()
        spool = Writer(parts.get(VerdictJournal), outbox, lambda work: work(), clock, every_s=1.0)
        day = outbox.day_of(clock.utc_us())
        try:
            if moved := spool.move():
                _RECOVERED.log(verdicts=moved)
            counts.restore(day, outbox.spent_on(day))
        except StoreError as error:
            _SPENT_UNKNOWN.log(error=error)
        return counts

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
