"""Spending for who only asks what would be said: nothing is spent, and no precision is known."""

from gpuwaste.policy.facts import Spent


class NothingSpent:
    """A user's day before his first reject."""

    def spent(self, kind: Spent, user: str) -> int:  # noqa: ARG002 the protocol's
        """Return 0."""
        return 0

    def precision(self, policy: str) -> tuple[float, int] | None:  # noqa: ARG002 the protocol's
        """Return None: not known."""
        return None
