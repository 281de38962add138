"""Quantiles as probabilities, and what may go wrong."""

import pytest

from gpuwaste.advice.predict.prediction_types import TargetPrediction
from gpuwaste.plan.outlook import above, quantile, risk_of
from gpuwaste.slurm.submit.job_request import JobRequest

LEVELS = {"0.5": 100.0, "0.9": 200.0}


def test_a_quantile_lies_on_the_line_between_its_neighbours() -> None:
    """Below the first and above the last level it is that level's."""
    assert [quantile(LEVELS, level) for level in (0.1, 0.5, 0.7, 0.9, 0.99)] == [100, 100, 150, 200, 200]
    assert quantile({}, 0.5) is None


@pytest.mark.parametrize(("value", "p"), [(50, 0.75), (100, 0.5), (150, 0.3), (200, 0.05), (1e9, 0.05)])
def test_more_than_a_value(value: float, p: float) -> None:
    """The inverse: half of what is left beyond the highest level, since nobody knows how long the tail is."""
    assert above(LEVELS, value) == pytest.approx(p)
    assert above({}, value) is None


def test_the_likeliest_way_to_fail_is_named() -> None:
    """Of failure, timeout and out of memory; what is not known is none of them."""
    request = JobRequest(user="a", submit=1, time_limit_s=150, mem_b=50)
    walltime = TargetPrediction("walltime", "history", 9, quantiles=LEVELS)
    memory = TargetPrediction("memory", "history", 9, quantiles=LEVELS)
    assert risk_of(request, [TargetPrediction("failure", "history", 9, p=0.1)]) == (0.1, "failure")
    p, name = risk_of(request, [walltime])
    assert (round(p or 0, 6), name) == (0.3, "timeout")
    assert risk_of(request, [walltime, memory]) == (0.75, "out of memory")
    assert risk_of(request, []) == (None, "")
