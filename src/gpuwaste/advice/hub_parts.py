"""The parts of this package that run in the hub, in the order in which their threads start."""

from typing import Final

from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.advice.renewal.renewal import Renewal
from gpuwaste.advice.verdicts.verdict_reads import AdviceOfRuns, VerdictReads
from gpuwaste.advice.verdicts.verdict_store import VerdictCounts

PARTS: Final = (
    Predictions,
    VerdictCounts,
    VerdictReads,
    AdviceOfRuns,
    Renewal,
)
