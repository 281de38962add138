"""AdvisorModels: the model in use and the one on trial, with the corrections that the history has taught them."""

from pathlib import Path
from typing import Final, Self

from gpuwaste.advice.predict.champion import Champion
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.advice.predict.trial import ModelTrial
from gpuwaste.advisor.advisor_history import AdvisorHistory, Saving
from gpuwaste.advisor.shadow_scoring import ShadowScoring
from gpuwaste.advisor.slurm_facts import AdvisorPorts
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.worker import Bus

CORRECTIONS: Final = "corrections.npz"
TRIAL: Final = "challenger-corrections.npz"


class AdvisorModels(Part):
    """Both follow the history of the advisor."""

    def __init__(self, champion: Champion, trial: ModelTrial, history: AdvisorHistory) -> None:
        self.champion = champion
        self.trial = trial
        self._history = history

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor."""
        config, state_dir = parts.get(Config), parts.get(AdvisorPorts).state_dir
        models_dir = Path(config.common.models_dir)
        champion = Champion(models_dir, state_dir / CORRECTIONS, state_dir / TRIAL)
        trial = ModelTrial(models_dir, state_dir / TRIAL, baseline=config.models.renew)
        parts.get(Bus).subscribe(Saving, lambda _: champion.save())
        parts.get(Bus).subscribe(Saving, lambda _: trial.save())
        return cls(champion, trial, parts.get(AdvisorHistory))

    def predictor(self) -> Predictor:
        """Return what predicts by the model in use."""
        return self.champion.predictor(self._history.follower)

    def try_out(self, shadow: ShadowScoring) -> None:
        """Score what is on trial from now on, on the loop's thread."""
        self.trial.follow(self._history.follower)
        shadow.models = self.trial.models(self.champion.hash)
