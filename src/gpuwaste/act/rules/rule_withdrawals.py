"""Withdrawals: whose waiting actions are dropped, because the rule's condition holds no more for them."""

from collections.abc import Collection, Mapping, Sequence

from gpuwaste.act.rules.engine import Ladders, PassInstant, RulePass
from gpuwaste.act.rules.ladder import GAP_S

RuleSubject = tuple[str, str]
"""A rule's name and a subject."""


class Withdrawals:
    """One thread asks after each pass.

    After a time without passes agents send first what they measured meanwhile. Until they have had as long as that for
    it, what is not known says nothing: a restart of the hub drops no action for which the condition still holds.
    """

    def __init__(self) -> None:
        """Start without a gap."""
        self._gap_utc: int | None = None
        self._doubtful: set[RuleSubject] = set()

    def due(
        self, passes: Sequence[RulePass], ladders: Mapping[str, Ladders], at: PassInstant
    ) -> Collection[RuleSubject]:
        """Return whose actions are to be dropped now."""
        found = {(one.rule.name, key) for one in passes if one.rule.head.mode != "observe" for key in one.over}
        if at.gap:
            self._gap_utc = at.now
        if self._gap_utc is not None and 0 <= at.now - self._gap_utc < GAP_S:
            self._doubtful |= found
            return ()
        doubtful, self._doubtful = self._doubtful, set()
        return found | {one for one in doubtful if not _holds(ladders, *one)}


def _holds(ladders: Mapping[str, Ladders], rule: str, key: str) -> bool:
    ladder = ladders.get(rule, {}).get(key)
    return ladder is not None and ladder.began is not None
