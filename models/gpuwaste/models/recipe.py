"""How trees are grown: one recipe for every log, which a search may refine for a site."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

# Shallow trees that see few columns each: history features repeat each other, and a deep tree learns single users. Few
# of them, since every one is walked at each submission: more and slower ones ranked no better in folds by time.
_PROBABILITY: Final = {
    "learning_rate": 0.06,
    "max_depth": 5,
    "min_child_weight": 20.0,
    "subsample": 0.8,
    "colsample_bytree": 0.15,
    "reg_lambda": 5.0,
    "max_bin": 256,  # fewer are faster, and lose where failures are rare
}
_QUANTILES: Final = {
    "learning_rate": 0.1,
    "max_depth": 6,
    "min_child_weight": 20.0,
    "subsample": 0.7,
    "colsample_bytree": 0.3,
    "reg_lambda": 1.0,
    "max_bin": 128,
}
_ROWS_OF_A_WEIGHT: Final = 500


@dataclass(frozen=True, slots=True)
class Recipe:
    """Parameters of xgboost.train for one kind of target; `rounds` trees (for each quantile).

    The newest `max_rows` labelled jobs are learnt from: old ones help a classification and cost only time and memory,
    while how long jobs run changes with the codes.
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    rounds: int = 150
    max_rows: int = 200_000

    def on(self, rows: int) -> dict[str, Any]:
        """Return the parameters for that many rows: in a short history a leaf may stand on fewer of them."""
        params = dict(self.params)
        if "min_child_weight" in params:
            params["min_child_weight"] = min(params["min_child_weight"], max(1.0, rows / _ROWS_OF_A_WEIGHT))
        return params


DEFAULTS: Final = MappingProxyType(
    {
        "probability": Recipe(MappingProxyType(_PROBABILITY), 150),
        "quantiles": Recipe(MappingProxyType(_QUANTILES), 100, 60_000),
    }
)
