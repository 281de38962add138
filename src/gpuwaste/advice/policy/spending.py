"""For who only asks what would be said: nothing is spent, no precision is known, nothing is left to chance."""

from gpuwaste.advice.policy.facts import Spent


class NothingSpent:
    """A user's day before the first reject."""

    def spent(self, kind: Spent, user: str) -> int:  # noqa: ARG002 the protocol's
        """Return 0."""
        return 0

    def precision(self, policy: str) -> tuple[float, int] | None:  # noqa: ARG002 the protocol's
        """Return None: not known."""
        return None


def no_chance() -> float:
    """Draw the highest number: no would-be reject passes at random."""
    return 1.0
