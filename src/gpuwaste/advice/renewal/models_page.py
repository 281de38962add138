"""/models: which model predicts, and for operators how its probabilities held."""

from dataclasses import replace

from gpuwaste.advice.verdicts.verdict_score import ScoreDocument
from gpuwaste.net.health import PredictionHealth
from gpuwaste.show.environment import Frame, page


def models_page(health: PredictionHealth, score: ScoreDocument | None, frame: Frame) -> str:
    """Return the page of the model in use; `score` is None for a reader who may not see it."""
    return page("models", replace(frame, links={"json": "/models.json"}), health=health, score=score)
