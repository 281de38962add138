"""What the site's policies would do at sbatch, as a reader may see it: the part "policy" of /v1/predict.

Operators see what would be done in every mode. Others see what they would be told themselves: in shadow nothing.
"""

from typing import Final

from gpuwaste.advice.policy.facts import PolicyOutcome
from gpuwaste.advice.predict.prediction_types import PredictPolicy
from gpuwaste.core.scope import Scope

_SILENT: Final = frozenset({"off", "shadow"})


def policy_preview(scope: Scope, decision: PolicyOutcome) -> PredictPolicy:
    """Return the document of what would be done."""
    everything = scope.everything
    silent = decision.mode in _SILENT and not everything
    return PredictPolicy(
        policy="" if silent else decision.policy,
        mode="" if silent else decision.mode,
        action=decision.action,
        would_be=decision.would_be if everything else decision.action,
        held=decision.held if everything else "",
        lines=list(decision.lines if everything else decision.printed),
    )
