"""The budget of keeps: hours and number per person and week, and the longest one; the site sets each."""

from dataclasses import dataclass

from gpuwaste.core.units import HOUR_S, say_duration


@dataclass(frozen=True, slots=True)
class KeepsSpent:
    """What a person has used in the last seven days: seconds over all runs, and orders."""

    seconds: int = 0
    keeps: int = 0


@dataclass(frozen=True, slots=True)
class KeepBudget:
    """[hub] keep_hours_per_week, keep_max_hours and keeps_per_week."""

    hours_per_week: float
    max_hours: float
    keeps_per_week: int

    def left_s(self, spent: KeepsSpent) -> int:
        """Return the seconds left."""
        return max(0, int(self.hours_per_week * HOUR_S) - spent.seconds)

    def left_keeps(self, spent: KeepsSpent) -> int:
        """Return the number of orders left."""
        return max(0, self.keeps_per_week - spent.keeps)

    def too_long(self, seconds: int) -> str:
        """Return why a keep is too long for anybody, "" if it is not."""
        most_s = int(self.max_hours * HOUR_S)
        if seconds <= most_s:
            return ""
        return f"a keep of {say_duration(seconds)}: at most {say_duration(most_s)} ([hub] keep_max_hours)"

    def refusal(self, spent: KeepsSpent, cost_s: int, runs: int) -> str:
        """Return why an order is beyond the budget, with what is left of it; "" if it is within."""
        left_s, left = self.left_s(spent), self.left_keeps(spent)
        if self.hours_per_week <= 0 or self.keeps_per_week <= 0:
            return "this site permits no keeps ([hub] keep_hours_per_week)"
        if left < 1:
            return f"all {self.keeps_per_week} keeps of the last 7 days are used"
        if cost_s <= left_s:
            return ""
        cost = say_duration(cost_s) + (f" for {runs} runs" if runs > 1 else "")
        return f"this keep costs {cost}; {say_duration(left_s)} and {left} keeps are left of the last 7 days"
