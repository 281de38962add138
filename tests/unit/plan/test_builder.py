"""A plan from its parts: what is valid, what is not and why, what each costs, and who could not be asked."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.plan.facts import NOW, accepted, fewer, options_of, shorter, site, submission, targets

from gpuwaste.core.errors import ParseError, SlurmError, WireError
from gpuwaste.core.fields import Interval
from gpuwaste.plan.builder import Expected, Predicted, Sources, build_plan
from gpuwaste.plan.plan_document import PlanDocument
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch_run import DryRun


def probe(words: Sequence[str]) -> DryRun:
    """One GPU is free now, two only in four hours; nobody may use big."""
    options = options_of(words)
    if "--partition=big" in options:
        return DryRun(rejected="User's group not permitted to use this partition")
    return accepted(NOW + 60 if "gpu:a100:1" in options else NOW + 4 * 3600)


def predict(requests: Sequence[JobRequest]) -> list[Predicted]:
    """Give a shorter limit a higher risk."""
    return [Predicted(targets(0.1 if (r.time_limit_s or 0) > 7200 else 0.2), (fewer(), shorter())) for r in requests]


def expect(requests: Sequence[JobRequest]) -> list[Expected]:
    """Jobs of one GPU start in a minute or three, others within the day."""
    found = []
    for request in requests:
        begin = NOW + (60 if request.gpus == 1 else 36_000)
        start = Interval(p10=begin, p50=begin + 60, p90=begin + 120)
        found.append((start, Interval(p10=begin + 5000, p50=begin + 5460, p90=begin + 7000)))
    return found


ALL = Sources(probe, predict, expect)


def kinds(plan: PlanDocument) -> dict[str, int]:
    """Return the number of the candidate of each kind."""
    return {one.kind: one.number for one in plan.candidates}


def test_the_fastest_valid_request_is_named() -> None:
    """One GPU is free: the request for it ends first, and invalid ones come last with the reason."""
    plan = build_plan(submission(), site(), ALL, "fastest")
    by_number = {one.number: one for one in plan.candidates}
    assert [one.number for one in plan.candidates] == list(range(1, len(plan.candidates) + 1))
    assert by_number[plan.chosen or 0].kind in {"right_sized", "fewer_gpus"}
    statuses = [one.status for one in plan.candidates]
    assert statuses == sorted(statuses, key=["valid", "advice", "invalid"].index)
    big = by_number[kinds(plan)["gpu_types"]]
    assert (big.status, big.reasons[-1]) == ("invalid", "Slurm: User's group not permitted to use this partition")
    assert big.start is None


def test_costs_are_of_the_run_time_that_is_expected() -> None:
    """1.5 h of two GPUs are 3 GPU-hours; billing weighs GPUs with 16, memory with 0.25 for each GiB and CPUs with 1."""
    plan = build_plan(submission(), site(), ALL, "cheapest")
    first = plan.candidates[0]
    assert first.kind == "as_asked"
    assert (first.run_s, first.gpu_hours) == (5400, 3.0)
    assert first.billing_hours == pytest.approx(1.5 * (1 + 32 * 0.25 + 2 * 16))
    chosen = plan.candidates[(plan.chosen or 0) - 1]
    assert chosen.gpu_hours == 1.5


def test_nothing_starts_before_it_is_asked_for() -> None:
    """The hub's queue is half a minute old: what it could have started then starts now, and ends after that."""

    def earlier(requests: Sequence[JobRequest]) -> list[Expected]:
        return [
            (Interval(p10=NOW - 30, p50=NOW - 30, p90=NOW + 5), Interval(p10=NOW - 1, p50=NOW + 9, p90=NOW + 40))
        ] * (len(requests))

    first = build_plan(submission(), site(), Sources(probe, predict, earlier), "fastest").candidates[0]
    assert first.start == Interval(p10=NOW, p50=NOW, p90=NOW + 5)
    assert first.end == Interval(p10=NOW, p50=NOW + 9, p90=NOW + 40)


def test_the_safest_keeps_the_limit() -> None:
    """The shorter limit has twice the risk: the safest request is one with the limit as it was asked for."""
    plan = build_plan(submission(), site(), ALL, "safest")
    chosen = plan.candidates[(plan.chosen or 0) - 1]
    assert (chosen.risk, chosen.risk_of, chosen.time_limit_s) == (0.1, "failure", 43200)


def test_a_deadline_leaves_out_what_ends_too_late() -> None:
    """By 90 of 100 cases: in two hours only one GPU; in one minute nothing, and the plan says so."""
    plan = build_plan(submission(), site(), ALL, "safest", NOW + 7200)
    chosen = plan.candidates[(plan.chosen or 0) - 1]
    assert (chosen.gpus, plan.meets_deadline) == (1, True)
    assert build_plan(submission(), site(), ALL, "safest", NOW + 60).meets_deadline is False


def test_what_needs_its_user_is_never_chosen() -> None:
    """A cascade needs a script that writes checkpoints: it is valid, and nobody takes it without being told."""
    for goal in ("fastest", "cheapest", "safest"):
        plan = build_plan(submission(), site(), replace(ALL, probe=lambda _: accepted()), goal)
        assert not plan.candidates[(plan.chosen or 0) - 1].needs
    assert "cascade" in kinds(plan)


def test_slurm_s_start_stands_in_for_the_queue() -> None:
    """Without a hub the end is Slurm's start and the expected run time, and the plan has no interval."""
    plan = build_plan(submission(), site(), Sources(probe, predict), "fastest")
    first = plan.candidates[0]
    assert (first.start, first.slurm_start, first.expected_end) == (None, NOW + 14400, NOW + 14400 + 5400)


def test_who_cannot_be_asked_is_a_note() -> None:
    """No hub, no queue, no slurmctld: the plan has its candidates, unchecked, and says what is missing."""

    def fails(*_: object) -> list[Predicted]:
        raise WireError("hub: no answer")

    def silent(_: Sequence[str]) -> DryRun:
        raise SlurmError("sbatch: no answer after 1 s")

    plan = build_plan(submission(), site(), Sources(silent, fails, fails), "fastest")  # type: ignore[arg-type]
    assert plan.candidates[0].status == "unchecked"
    assert plan.notes == ["no prediction: hub: no answer", "no expected start from the queue: hub: no answer"]
    assert plan.chosen == 1


def test_a_het_job_is_checked_as_asked() -> None:
    """A candidate changes one component; of a job with two only the request as it is can be checked."""
    script = "#!/bin/bash\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\ntrue\n"
    plan = build_plan(submission(script=script), site(), ALL, "fastest")
    assert [one.kind for one in plan.candidates] == ["as_asked"]
    assert "het job of 2 components" in plan.notes[0]


@pytest.mark.parametrize("script", ["", "echo\n", "#!/bin/sh\n#SBATCH --time=never\n", "#!/bin/sh\n\0"])
def test_a_script_that_sbatch_refuses_is_one_line(script: str) -> None:
    """What sbatch would not read is no plan, but the error that sbatch would print."""
    with pytest.raises(ParseError):
        build_plan(submission(script=script), site(), ALL, "fastest")
