"""A prediction as every place prints it: probabilities, quantiles, reasons in the user's numbers, what to change."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Source = Literal["site model", "baseline", "history"]


@dataclass(frozen=True, slots=True)
class Reason:
    """One feature's part in a probability: `effect` is p with its value minus p with the value usual at the site.

    `text` says it in the user's own words and numbers ("6 of your last 8 jobs named train failed").
    """

    feature: str
    value: float | None
    usual: float | None
    effect: float
    text: str


@dataclass(frozen=True, slots=True)
class TargetPrediction:
    """What is said of one target; a probability or quantiles in the target's unit, the other one empty.

    `level` is the highest operating point that p reaches (warn, reject), "" for none. `basis` is how many past jobs
    stand behind it where `source` is history, else the rows that the model was trained on.
    """

    target: str
    source: Source
    basis: int
    p: float | None = None
    level: str = ""
    quantiles: Mapping[str, float] = field(default_factory=dict)  # "0.5" -> value
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Another request and what it would change: the exact option, and the predictions before and after by target."""

    option: str
    text: str
    before: Mapping[str, float]
    after: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The whole answer; `model` and `model_hash` are "" where history alone speaks, and `notes` say so."""

    request: Mapping[str, Any]
    model: str
    model_hash: str
    targets: tuple[TargetPrediction, ...]
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the document of GET and POST /v1/predict."""
        return asdict(self)
