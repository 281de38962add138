"""Which requests are proposed for a job."""

from dataclasses import replace

import pytest
from tests.unit.plan.facts import CONFIG, NODES, PARTITIONS, fewer, shorter, site, submission

from gpuwaste.advice.predict.prediction_types import RequestChange, TargetPrediction
from gpuwaste.ledger.reports.report_types import FindingRow, FindingRun
from gpuwaste.plan.builder import _asked
from gpuwaste.plan.candidates import MAX_CANDIDATES, RequestCandidate, all_candidates, proposers
from gpuwaste.plan.plan_request import PlanRequest
from gpuwaste.plan.user_site import QueuedJobs


def asked(
    *options: str, changes: tuple[RequestChange, ...] = (), targets: tuple[TargetPrediction, ...] = (), **texts: str
) -> PlanRequest:
    """Return what alice asks for, and what is expected of it."""
    ((request, given),) = submission(*options).read()
    found = _asked(request, site(**texts), given)
    return PlanRequest(found.request, given, found.site, changes, targets)


def size(kind: str, *lines: str, **evidence: object) -> FindingRow:
    """Return what the hub found about the size of such jobs' requests."""
    runs = [FindingRun(cluster="gw", job_id=1, start=1, printed_id="1")]
    return FindingRow(
        kind=kind, title="would be enough", runs=runs, evidence=evidence, fix=list(lines), wasted_gpu_s=0.0,
        provisional=False,
    )  # fmt: skip


def by_kind(found: PlanRequest) -> dict[str, RequestCandidate]:
    """Return the candidates, the last of each kind."""
    return {one.kind: one for one in all_candidates(found)}


def test_as_asked_is_first() -> None:
    """The plain request is candidate 1, whatever else is proposed."""
    assert all_candidates(asked())[0] == RequestCandidate("as_asked", "as requested")
    assert next(iter(proposers())) == "as_asked"


def test_what_a_prediction_proposes_is_a_candidate() -> None:
    """Fewer GPUs and a shorter limit, each by the option that the prediction names, and both together."""
    found = by_kind(asked(changes=(fewer(), shorter())))
    assert found["fewer_gpus"].options == ("--gres=gpu:a100:1",)
    assert found["shorter_limit"].options == ("--time=02:00:00",)
    assert found["right_sized"].options == ("--gres=gpu:a100:1", "--time=02:00:00")
    assert {"fewer_gpus", "shorter_limit", "right_sized", "smaller_memory"}.isdisjoint(by_kind(asked()))


def test_memory_per_gpu_is_not_combined_with_fewer_gpus() -> None:
    """Memory for each GPU was worked out for two GPUs: with one it would be half of what is needed."""
    memory = RequestChange("#SBATCH --mem-per-gpu=4096M", "less", {"mem_b": 2.0}, {"mem_b": 1.0})
    found = by_kind(asked(changes=(fewer(), shorter(), memory)))
    assert found["right_sized"].options == ("--gres=gpu:a100:1", "--time=02:00:00")
    assert found["smaller_memory"].options == ("--mem-per-gpu=4096M",)


def test_another_type_names_the_partition_that_has_it() -> None:
    """h100 are in partition big alone; a request without a type has no other type."""
    found = by_kind(asked())["gpu_types"]
    assert found.options == ("--gres=gpu:h100:2", "--partition=big")
    assert "h100" in found.needs
    assert "gpu_types" not in by_kind(asked("--gres=gpu:2"))


def test_partitions_have_the_gpus_that_are_asked_for() -> None:
    """Staff has a100; big has none of them. A partition that is down is not proposed."""
    kinds = [one.options for one in all_candidates(asked()) if one.kind == "partitions"]
    assert kinds == [("--partition=staff",)]
    down = PARTITIONS.replace("OverSubscribe=EXCLUSIVE State=UP", "OverSubscribe=EXCLUSIVE State=DOWN")
    assert "partitions" not in by_kind(asked(partition=down))


def test_the_other_qos_of_the_account() -> None:
    """High is open to alice; normal is what the job has without an option."""
    assert by_kind(asked())["qos"].options == ("--qos=high",)
    assert by_kind(asked("--qos=high"))["qos"].options == ("--qos=normal",)


def test_a_long_job_can_be_a_cascade() -> None:
    """12 h are three jobs of 4 h with a signal; an array and a job with a dependency are left as they are."""
    found = by_kind(asked())["cascade"]
    assert (found.jobs, found.options) == (3, ("--time=04:00:00", "--signal=B:USR1@300"))
    assert found.needs
    for options in (("--array=1-9",), ("--dependency=afterok:7",), ("--time=8:00:00",), ("--time=365-0",)):
        assert "cascade" not in by_kind(asked(*options)), options


def test_small_array_tasks_are_advised_to_share_a_gpu() -> None:
    """Tasks of one GPU that they mostly leave idle; no option can do that, so it is advice."""
    idle = (TargetPrediction("gpu_underused", "site model", 9, p=0.8),)
    packed = by_kind(asked("--array=1-9", "--gres=gpu:a100:1", targets=idle))["packed"]
    assert packed.advice
    assert packed.options == ()
    assert "packed" not in by_kind(asked("--gres=gpu:a100:1", targets=idle))


FAIR = CONFIG + "PriorityType = priority/multifactor\nPriorityWeightFairShare = 1000\n"
FULL = NODES.replace("State=IDLE", "State=ALLOCATED")


@pytest.mark.parametrize("words", [("--dependency=afterok:7",), ("-d", "singleton"), ("--array=1-9%1",)])
def test_a_short_job_of_a_chain_has_advice_on_wrapping(words: tuple[str, ...]) -> None:
    """On a full machine at a fair share of 0.2 the study's chains ended later as one job; the grounds are named."""
    found = by_kind(asked("--time=30", *words, config=FAIR, node=FULL))["wrapped"]
    assert found.advice
    assert found.text == (
        "keep single jobs: in 12 simulated cases at fair share 0.2, one job instead of 7 jobs of 30 min cost 1.2 % of "
        "their run time on average (-20.3 % to +3.1 %) and ended later in 8 % of the cases; for jobs submitted 30 s "
        "after the previous end, one job saved 1.8 %"
    )


def test_grounds_are_those_of_the_queue_and_of_what_is_known() -> None:
    """An idle node, a site without fair share, and jobs that wait for each other in the queue already."""
    chain = ("--time=30", "--dependency=afterok:7")
    idle = by_kind(asked(*chain, config=FAIR))["wrapped"].text
    assert idle.startswith("wrapping gains nothing: in 8 simulated cases with an idle node, ")
    anywhere = by_kind(asked(*chain, node=FULL))["wrapped"].text
    assert anywhere.startswith("wrapping gains nothing: in 96 simulated cases at any fair share, ")
    queued = replace(asked("--time=30", config=FAIR, node=FULL), queued=lambda: QueuedJobs(after=2))
    assert by_kind(queued)["wrapped"].title == "one job for the chain"


def test_many_jobs_of_one_name_are_kept_single() -> None:
    """Four that may run in parallel, as tasks of an array or in the queue; three are not many."""
    short = asked("--time=30", config=FAIR, node=FULL)
    many = by_kind(replace(short, queued=lambda: QueuedJobs(alone=3)))["wrapped"]
    words = "keep single jobs: in 12 simulated cases at fair share 0.2, one job instead of 4 parallel jobs"
    assert many.text.startswith(words)
    assert "wrapped" in by_kind(asked("--time=30", "--array=1-4", node=FULL))
    for few in (short, replace(short, queued=lambda: QueuedJobs(alone=2)), asked("--time=30", "--array=1-3")):
        assert "wrapped" not in by_kind(few)


def test_long_jobs_are_not_asked_about() -> None:
    """The study's jobs take half an hour: of a job above an hour nothing is said, and squeue is not asked."""

    def never() -> QueuedJobs:
        raise AssertionError

    for words in (("--time=61", "--dependency=afterok:7"), ("--time=61",)):
        assert "wrapped" not in by_kind(replace(asked(*words), queued=never))
    assert "wrapped" not in by_kind(asked("--time=30", "--dependency=expand:7", node=FULL))


def test_a_site_of_many_partitions_is_bounded() -> None:
    """Sixty partitions, types and QOS together come to no more candidates than Slurm is asked about."""
    many = "\n".join(PARTITIONS.replace("PartitionName=", f"PartitionName=p{n}") for n in range(20))
    found = all_candidates(asked(partition=PARTITIONS + "\n" + many, changes=(fewer(), shorter())))
    assert len(found) <= MAX_CANDIDATES


def test_what_past_runs_needed_is_a_candidate_in_the_submission_s_own_options() -> None:
    """A smaller GPU by --gres as the script has it, memory as the hub writes it, CPUs where the script has them."""
    found = replace(
        asked("--cpus-per-task=8"),
        sizes=(
            size("gpu_larger_than_needed", "#SBATCH --gpus=1g.10gb:2", "#SBATCH --partition=mig", gpu_type="1g.10gb"),
            size("memory_more_than_needed", "#SBATCH --mem=6G"),
            size("cpus_more_than_needed", enough_cpus=2),
            size("of_a_newer_hub", "#SBATCH --mem=1G"),
        ),
    )
    options = [one.options for one in all_candidates(found) if one.kind == "past_runs"]
    assert options == [("--gres=gpu:1g.10gb:2", "--partition=mig"), ("--mem=6G",), ("--cpus-per-task=2",)]
