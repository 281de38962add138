"""A log that is learnt once for the tests that only look at it."""

import pytest
from tests.integration.models.evaluate.logs import mixed_jobs, table

from gpuwaste.advice.predict.vectors import replay_vectors
from gpuwaste.models.evaluate.log_evaluation import Evaluation, evaluate


@pytest.fixture(scope="session")
def evaluated() -> Evaluation:
    """Return the evaluation of a log whose failures follow from the run time alone, both protocols."""
    jobs = table(mixed_jobs(by_run=True))
    return evaluate("small", jobs, replay_vectors(jobs).vectors, threads=1, jfp=True)
