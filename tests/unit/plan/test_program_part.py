"""A plan with the program's own estimates: run times, ends and risks by who speaks, and types that cannot hold it."""

from collections.abc import Sequence

from tests.unit.plan.facts import NOW, accepted, shorter, site, submission, targets

from gpuwaste.core.errors import WireError
from gpuwaste.core.fields import Interval
from gpuwaste.jobs.program_estimate import Estimator, ProgramEstimate
from gpuwaste.plan.builder import Predicted, Sources, build_plan
from gpuwaste.plan.plan_document import PlanCandidate, PlanDocument
from gpuwaste.plan.plan_request import PlanRequest
from gpuwaste.slurm.submit.job_request import JobRequest

GIB = 1 << 30


def planned(found: ProgramEstimate, *, hub: bool = True) -> PlanDocument:
    """Return the plan where the program's estimate on every type but h100 is the one given."""

    def programs(asked: Sequence[PlanRequest]) -> list[ProgramEstimate | None]:
        small = ProgramEstimate(
            program="a" * 64, gpu="h100", fits="does not fit", memory_low_b=90 * GIB, capacity_b=80 * GIB, refused="no"
        )
        return [small if one.request.gpu_type == "h100" else found for one in asked]

    def predict(requests: Sequence[JobRequest]) -> list[Predicted]:
        if not hub:
            raise WireError("hub: no answer")
        return [Predicted(targets(), (shorter(),)) for _ in requests]

    start = Interval(p10=NOW + 10, p50=NOW + 60, p90=NOW + 600)
    ends = Interval(p10=NOW + 5000, p50=NOW + 6000, p90=NOW + 7000)
    sources = Sources(lambda _: accepted(), predict, lambda asked: [(start, ends)] * len(asked), program=programs)
    return build_plan(submission(), site(), sources, "fastest")


def estimate(estimator: Estimator = "own runs", run_s: float = 3600.0) -> ProgramEstimate:
    """Return an hour and its interval."""
    return ProgramEstimate(
        program="a" * 64, estimator=estimator, run_s=run_s, run_low_s=3000.0, run_high_s=4000.0, coverage=0.8, runs=9
    )


def first(plan: PlanDocument) -> PlanCandidate:
    return plan.candidates[0]


def test_the_run_time_of_who_speaks_is_in_costs_ends_and_risk() -> None:
    """An hour in place of the model's hour and a half: 2 GPU-hours, the end is start and run, level by level."""
    found = first(planned(estimate()))
    assert (found.kind, found.run_s, found.gpu_hours) == ("as_asked", 3600, 2.0)
    assert found.end == Interval(p10=NOW + 3010, p50=NOW + 3660, p90=NOW + 4600)
    assert found.program is not None
    assert found.program.estimator == "own runs"


def test_where_the_history_speaks_the_model_s_answer_stays() -> None:
    """Run time and end are those of the model and of the queue."""
    found = first(planned(estimate("history", 99.0)))
    assert (found.run_s, found.end) == (5400, Interval(p10=NOW + 5000, p50=NOW + 6000, p90=NOW + 7000))


def test_a_limit_ends_a_run() -> None:
    """No end is later than the start and the time limit of 12 h."""
    found = first(planned(estimate(run_s=10**6)))
    assert found.end is not None
    assert found.end.p50 == NOW + 60 + 43200


def test_a_type_that_cannot_hold_it_is_invalid() -> None:
    """The candidate of another type is shown with the reason, and the others stay valid."""
    plan = planned(estimate())
    (h100,) = [one for one in plan.candidates if one.kind == "gpu_types"]
    assert h100.status == "invalid"
    assert h100.reasons[-1] == "the program needs at least 90.0 GiB of GPU memory, 2 GPUs of h100 have 160.0 GiB"
    assert first(plan).status == "valid"


def test_without_a_hub_the_program_s_estimate_is_there() -> None:
    """No prediction is a note, said once, and the run time of the program is used all the same."""
    plan = planned(estimate("white box"), hub=False)
    assert first(plan).run_s == 3600
    assert sum("no prediction" in note for note in plan.notes) == 1
