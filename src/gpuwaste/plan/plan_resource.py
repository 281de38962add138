"""When jobs would start: /v1/plan."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuwaste.advice.predict.request_json import PredictQuestion
from gpuwaste.core.fields import Name
from gpuwaste.core.scope import Scope
from gpuwaste.plan.plan_document import ExpectAnswer, PlansRecorded, SubmittedPlan, WaitTableAnswer
from gpuwaste.show.resource import NoQuestion, Order, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.plan.expectations import Expectations


@dataclass(frozen=True)
class ExpectedJob:
    """Which job, as Slurm prints its id."""

    job: Name


def _expectations(reading: Reading) -> "Expectations":
    from gpuwaste.plan.expectations import Expectations

    return reading.get(Expectations)


def expect_job(reading: Reading, scope: Scope, question: ExpectedJob) -> ExpectAnswer:
    """Return when a job that waits is expected to start and end: 7, 3_1 or 4+1."""
    return _expectations(reading).for_job(scope, question.job)


def expect(reading: Reading, scope: Scope, _: NoQuestion, body: bytes) -> ExpectAnswer:
    """Return when requests would start and end if they were submitted now: the caller's own."""
    return _expectations(reading).for_requests(scope, body)


def submitted(reading: Reading, scope: Scope, _: NoQuestion, body: bytes) -> PlansRecorded:
    """Record the plan of the caller's own jobs as their verdict: once for each job."""
    from gpuwaste.plan.recorded_plans import RecordedPlans

    return reading.get(RecordedPlans).record(scope, body)


def waits(reading: Reading, scope: Scope, _: NoQuestion) -> WaitTableAnswer:
    """Return how long jobs of each shape would wait; for operators and advisors."""
    return _expectations(reading).waits(scope)


RESOURCES = (
    Resource(path="/v1/plan", question=ExpectedJob, document=ExpectAnswer, read=expect_job),
    Order(path="/v1/plan", body=PredictQuestion, question=NoQuestion, document=ExpectAnswer, do=expect),
    Order(path="/v1/plan/submitted", body=SubmittedPlan, question=NoQuestion, document=PlansRecorded, do=submitted),
    Resource(path="/v1/plan/waits", question=NoQuestion, document=WaitTableAnswer, read=waits),
)
