"""Which campaigns hold advice back, to measure its effect by users who do not get it.

There is none here: the room that has campaigns has a part that is a subclass, which the parts of hub and advisor find.
"""

from typing import Self

from gpuwaste.core.parts import Part, Parts


class HoldOut(Part):
    """Everybody gets all advice."""

    @classmethod
    def part_of(cls, _: Parts) -> Self:
        """Return the part of a daemon."""
        return cls()

    def holding_back(self, _sort: str, _name: str, _user: str, _account: str, _at: int) -> str:
        """Return the campaign that holds back a policy, a rule or the digest (`sort`, with its name) from a user's job.

        `at` is in UTC seconds; "" for none. Raises nothing.
        """
        return ""
