"""LivePrecision: how often a rule's steps were right, by how the runs that it hit went on.

It is measured on what the rule recorded, mailed or did since its file was last changed, in the last 90 days. A run
counts once. Unknown is not right: runs that have not ended, or are not measured to their end, are left out. The
interval is Wilson's, and takes runs as independent; those of one user are alike, so the true one is wider.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpuwaste.act.actions.action_kind import actions
from gpuwaste.act.rules.rule_definition import Rule
from gpuwaste.core.proportion import wilson
from gpuwaste.core.units import DAY_S
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

LIVE_DAYS: Final = 90
APPEAL_S: Final = 7 * DAY_S
"""How long the owner of a run that a rule ended has to appeal before the step counts as right."""


@dataclass(frozen=True, slots=True)
class LivePrecision:
    """Runs that a rule hit: `wrong_kept` are the wrong ones whose owner asked for a keep.

    `unappealed` are those right only in that the rule ended them and nobody appealed.
    """

    judged: int = 0
    wrong: int = 0
    wrong_kept: int = 0
    unappealed: int = 0
    unknown: int = 0

    @property
    def precision(self) -> float | None:
        """The share that was right; None: none is judged."""
        return 1 - self.wrong / self.judged if self.judged else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its 95 % interval."""
        return wilson(self.judged - self.wrong, self.judged)

    def below(self, rule: Rule) -> bool:
        """Return whether a rule must go back to notify."""
        found, head = self.precision, rule.head
        return found is not None and self.judged >= head.precision_steps and found < head.precision_floor.value


NONE_JUDGED: Final = LivePrecision()


def live_precisions(
    store: HubStore, rules: Sequence[Rule], restored: Mapping[tuple[str, str], int], now: int
) -> dict[str, LivePrecision]:
    """Return the precision of each rule by its name; after a restoration only later steps count. Raises StoreError."""
    since = now - LIVE_DAYS * DAY_S
    rows = [
        {"rule": rule.name, "hash": rule.hash, "since": max(since, restored.get((rule.name, rule.hash), 0))}
        for rule in rules
    ]
    enders = sorted(kind.name for kind in actions().values() if kind.ends_runs and kind.name != "signal")
    values = {"rows": to_json(rows), "now": now, "appeal_s": APPEAL_S, "enders": enders}
    with store.reader() as db:
        found = db.rows("rule_outcomes", values)
    return {row.pop("rule"): LivePrecision(**{name: n for name, n in row.items() if name != "hash"}) for row in found}
