"""AdvisorModels: the model in use and the one on trial, with the corrections that the history has taught them."""

from pathlib import Path
from typing import Final

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

    def __init__(self, parts: Parts) -> None:
        config, state_dir, bus = parts.get(Config), parts.get(AdvisorPorts).state_dir, parts.get(Bus)
        models_dir = Path(config.common.models_dir)
        self.champion = Champion(models_dir, state_dir / CORRECTIONS, state_dir / TRIAL)
        self.trial = ModelTrial(models_dir, state_dir / TRIAL, baseline=config.models.renew)
        self._history = parts.get(AdvisorHistory)
        bus.subscribe(Saving, lambda _: self.champion.save())
        bus.subscribe(Saving, lambda _: self.trial.save())

    def predictor(self) -> Predictor:
        """Return what predicts by the model in use."""
        return self.champion.predictor(self._history.follower)

    def try_out(self, shadow: ShadowScoring) -> None:
        """Score what is on trial from now on, on the loop's thread."""
        self.trial.follow(self._history.follower)
        shadow.models = self.trial.models(self.champion.hash)
