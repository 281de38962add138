"""AdvisorModels: the model in use and the one on trial with their corrections, and the scoring of the trial.

Scoring runs after the decisions of a batch, on the same vectors. A request that has used half of its time gets its
answer without it, and so do all requests while the share of the core is used up.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from gpuwaste.advice.predict.champion import Champion, ModelTrial
from gpuwaste.advice.predict.predictor import Predictor, Vector
from gpuwaste.advisor.advisor_history import AdvisorHistory, Saving
from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.worker import Bus

if TYPE_CHECKING:
    from gpuwaste.advice.predict.champion import ShadowModel

SHARE: Final = 0.05  # of a core
_SAVED_S: Final = 1.0  # of CPU that quiet times save for busy ones, at most
_IN_TIME: Final = 0.5  # share of the time until the answer is due
_FAILED: Final = log_event.warning(
    "shadow-not-scored: model on trial not scored, repeats are only counted: {error}",
    "Answers are not affected. `gpuwaste model trial --end` ends the trial.",
)
Shadow = Mapping[str, Mapping[str, float]]  # bundle hash -> target -> probability
_NOTHING: Final[Shadow] = {}
CORRECTIONS: Final = "corrections.npz"
TRIAL: Final = "challenger-corrections.npz"


@dataclass(frozen=True, slots=True)
class Question:
    """A submission's vector (None: nothing was scored), the targets that were scored, and its time (steady clock)."""

    vector: Vector | None
    wanted: frozenset[str]
    arrived_us: int
    until_us: int


class ShadowScoring:
    """Scores models on trial, on the loop's thread, where `models` is replaced too; `counts`: verdicts by outcome."""

    def __init__(
        self,
        clock: Clock,
        counts: Counter[str] | None = None,
        *,
        share: float = SHARE,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self.models: tuple[ShadowModel, ...] = ()
        self.counts: Counter[str] = Counter() if counts is None else counts
        self._clock = clock
        self._share = share
        self._cpu_s = cpu_s
        self._left_s = _SAVED_S if share > 0 else 0.0
        self._at_us = clock.mono_us()

    def scores(self, asked: Sequence[Question]) -> list[Shadow]:
        """Return each model's probabilities for each submission, by its hash; none without time. Raises nothing."""
        if not self.models or not any(one.wanted for one in asked):
            return [_NOTHING] * len(asked)
        now_us = self._clock.mono_us()
        self._left_s = min(_SAVED_S, self._left_s + self._share * (now_us - self._at_us) / 1e6)
        self._at_us = now_us
        due = [place for place, one in enumerate(asked) if one.wanted and one.vector is not None]
        taken = [place for place in due if _in_time(asked[place], now_us)] if self._left_s > 0 else []
        self.counts["budget" if self._left_s <= 0 else "late"] += len(due) - len(taken)
        found: list[dict[str, Mapping[str, float]]] = [{} for _ in asked]
        if taken:
            began = self._cpu_s()
            self._score(asked, taken, found)
            self._left_s -= self._cpu_s() - began
        return list(found)

    def _score(
        self, asked: Sequence[Question], taken: Sequence[int], found: list[dict[str, Mapping[str, float]]]
    ) -> None:
        vectors = np.stack([vector for place in taken if (vector := asked[place].vector) is not None])
        wanted = frozenset[str]().union(*(asked[place].wanted for place in taken))
        try:
            for model in self.models:
                said = model.probabilities(vectors, wanted)
                for row, place in enumerate(taken):
                    own = {target: values[row] for target, values in said.items() if target in asked[place].wanted}
                    if own:
                        found[place][model.bundle.hash] = own
        except Exception as error:  # noqa: BLE001 a model on trial must not prevent an answer
            self._failed(error, len(taken))
        else:
            self.counts["scored"] += len(taken)

    def _failed(self, error: Exception, count: int) -> None:
        first = not self.counts["failed"]
        self.counts["failed"] += count
        if not first:
            return
        if isinstance(error, GpuwasteError):
            _FAILED.log(error=error)
        else:
            BUG.log(error, what="model on trial")


def _in_time(one: Question, now_us: int) -> bool:
    return now_us - one.arrived_us <= _IN_TIME * (one.until_us - one.arrived_us)


class AdvisorModels(Part):
    """The model in use and the one on trial; both follow the history of the advisor."""

    def __init__(self, parts: Parts) -> None:
        config, state_dir, bus = parts.get(Config), parts.get(AdvisorPorts).state_dir, parts.get(Bus)
        models_dir = Path(config.common.models_dir)
        self.champion = Champion(models_dir, state_dir / CORRECTIONS, state_dir / TRIAL)
        self.trial = ModelTrial(models_dir, state_dir / TRIAL, baseline=config.models.renew)
        self._history = parts.get(AdvisorHistory)
        bus.subscribe(Saving, lambda _: self.champion.save())
        bus.subscribe(Saving, lambda _: self.trial.save())

    def predictor(self) -> Predictor:
        """Return the predictor of the model in use."""
        return self.champion.predictor(self._history.follower)

    def try_out(self, shadow: ShadowScoring) -> None:
        """Score the model on trial from now on, on the loop's thread."""
        self.trial.follow(self._history.follower)
        shadow.models = self.trial.models(self.champion.hash)
