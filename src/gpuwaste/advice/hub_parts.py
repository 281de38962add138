"""What of this room runs in the hub, in the order in which its threads start."""

from typing import Final

from gpuwaste.advice.advice_of_runs import AdviceOfRuns
from gpuwaste.advice.predict.predictions import Predictions
from gpuwaste.advice.renewal.renewal import Renewal
from gpuwaste.advice.verdicts.verdict_counts import VerdictCounts
from gpuwaste.advice.verdicts.verdict_reads import VerdictReads

PARTS: Final = (
    Predictions,
    VerdictCounts,
    VerdictReads,
    AdviceOfRuns,
    Renewal,
)
