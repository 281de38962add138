"""What the site's policies would say at sbatch of a prediction: the part "policy" of /v1/predict.

Operators see what would be done in every mode. Others see what they would be told themselves: in shadow nothing.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from gpuwaste.core.groups import unix_groups
from gpuwaste.core.request import JobRequest
from gpuwaste.core.script_hash import script_hash
from gpuwaste.core.verdict import Expectation, Suggestion
from gpuwaste.hub.roles import Scope
from gpuwaste.policy.facts import Decision, Facts, ScriptSays
from gpuwaste.policy.in_use import PoliciesInUse
from gpuwaste.policy.spending import NothingSpent, no_chance

_LAST: Final = 253_370_764_800  # UTC seconds; what a request says may lie in no year that a date can hold
_SILENT: Final = frozenset({"off", "shadow"})
ScriptOf = Callable[[str, str, str], ScriptSays]  # (user, name, hash) -> whether it is one that failed before


class Sayings:
    """Asks the policies; nobody has been rejected today, and nothing is left to chance."""

    def __init__(
        self,
        in_use: PoliciesInUse,
        whole_partitions: Callable[[], frozenset[str]],
        groups_of: Callable[[str], frozenset[str]] = unix_groups,
    ) -> None:
        self.in_use = in_use
        self._whole_partitions = whole_partitions
        self._groups_of = groups_of

    def facts(
        self,
        request: JobRequest,
        expected: Sequence[Expectation],
        suggested: Sequence[Suggestion],
        script_of: ScriptOf,
    ) -> Facts:
        """Return what policies judge of a request."""
        policies = self.in_use.policies
        script = request.script
        return Facts(
            request,
            datetime.fromtimestamp(min(request.submit, _LAST)),  # noqa: DTZ006 policies speak of the site's own time
            groups=self._groups_of(request.user) if policies.uses_groups else frozenset(),
            whole_node=not self._whole_partitions().isdisjoint(request.partition.split(",")),
            script="unknown" if script is None else script_of(request.user, request.name, script_hash(script)),
            expected=tuple(expected),
            suggestions=tuple(suggested),
        )

    def said(self, scope: Scope, facts: Facts) -> dict[str, Any]:
        """Return the document of what would be said."""
        decision = self.in_use.policies.decide(facts, NothingSpent(), no_chance)
        return _document(decision, everything=scope.everything)


def _document(decision: Decision, *, everything: bool) -> dict[str, Any]:
    silent = decision.mode in _SILENT and not everything
    return {
        "policy": "" if silent else decision.policy,
        "mode": "" if silent else decision.mode,
        "action": decision.action,
        "would_be": decision.would_be if everything else decision.action,
        "lines": list(decision.lines) if everything or decision.action != "pass" else [],
    }
