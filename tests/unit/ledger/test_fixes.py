"""What findings propose: it works as it stands, loses nobody's results, and excludes nothing else that is proposed."""

import re
from functools import cache

import pytest
from tests.unit.ledger.builders import job, judged, untouched, use
from tests.unit.ledger.fix_cases import USES, findings, runs, small_jobs

from gpuwaste.ledger.finding import DIRECTIVE, Finding, Fix, processes
from gpuwaste.ledger.findings import FINDINGS
from gpuwaste.ledger.ledger import JobLedger
from gpuwaste.slurm.submit.sbatch import read_submission

TERMINAL = re.compile(
    r"sinfo -o '%P %G'|srun --jobid=\d+ --overlap -N1 -n1 -w [\w.-]+ ps -u \$USER -o pid,etime,time,args", re.ASCII
)


@cache
def cases() -> list[tuple[str, JobLedger, list[Finding]]]:
    """Return each run with what is found."""
    return [(name, ledger, findings(ledger)) for name, ledger in runs()]


@cache
def everything() -> list[Finding]:
    """Return all findings of the cases."""
    return [finding for _, _, found in cases() for finding in found] + findings(*small_jobs())


def fixes(name: str) -> set[Fix]:
    """Return all that is proposed for one of the cases."""
    return {fix for case, _, found in cases() if case == name for finding in found for fix in finding.fixes}


def test_every_finding_is_among_the_cases_and_proposes_something() -> None:
    """Each finding occurs, and each but the exempt one proposes a change."""
    assert {finding.kind for finding in everything()} >= set(FINDINGS) - {"memory_resident"}
    assert {name.partition(",")[0] for name in USES} <= {finding.kind for finding in everything()}
    assert all(finding.fixes for finding in everything())


def test_a_line_is_for_the_script_or_for_a_terminal() -> None:
    """Every line is a directive that sbatch's rules take, or a known command; nothing in it is to be filled in."""
    for line in {line for finding in everything() for fix in finding.fixes for line in fix.lines}:
        if line.startswith(DIRECTIVE):
            read_submission(f"#!/bin/bash\n{line}\n")
        else:
            assert TERMINAL.fullmatch(line), line
        assert "..." not in line


@pytest.mark.parametrize("word", ["scancel", "kill", "--time", "train.py", "run.sh", ".py", "..."])
def test_no_proposal_ends_a_job_or_invents_a_file(word: str) -> None:
    """Results of work after that of the GPUs would be lost, and the name of the program is not known."""
    assert not [fix for finding in everything() for fix in finding.fixes if word in f"{fix.text} {fix.lines}"]


def gpus_asked(fix: Fix) -> int | None:
    """Return how many GPUs on a node a change asks for; None: it does not say."""
    script = "".join(f"{line}\n" for line in fix.lines if line.startswith(DIRECTIVE))
    (request,) = read_submission(f"#!/bin/bash\n{script}").requests
    return request.gpus if "gres" in script or "gpus" in script or " -G" in script else None


def test_what_is_to_be_done_together_asks_for_gpus_once() -> None:
    """One change has at most one line that asks for GPUs; another number of them is another change."""
    for finding in everything():
        for fix in finding.fixes:
            assert sum("gres=" in line or "gpus" in line or " -G " in line for line in fix.lines) <= 1
            assert not (fix.lines and "use all" in fix.text)


def test_all_findings_of_a_run_ask_for_the_same_gpus() -> None:
    """Two findings of one run never propose two numbers of GPUs: one of two lines would undo the other."""
    for name, ledger, found in cases():
        numbers = {gpus_asked(fix) for finding in found for fix in finding.fixes} - {None}
        assert len(numbers) <= 1, (name, ledger.job.submit_line, found)


def test_a_gpu_that_was_opened_only_is_not_asked_for_because_another_was_never_touched() -> None:
    """Two at work, one opened, one never touched: both findings ask for two."""
    assert {f.lines for f in fixes("gpus_untouched, one opened") if "--gres=gpu:a100" in str(f.lines)} == {
        ("#SBATCH --gres=gpu:a100:2",)
    }


def one_of_four(submitted: str, gpus: int = 4) -> Finding:
    """Return the finding of a run whose work is all on one GPU."""
    uses = [use(0), *(untouched(g) for g in range(1, gpus))]
    (finding,) = findings(judged(job(gpus=gpus, submit_line=submitted), *uses))
    return finding


def test_fewer_gpus_and_all_gpus_are_alternatives() -> None:
    """To ask for one GPU and to start four processes are two changes of which one is chosen."""
    less, every = one_of_four("sbatch job.sh").fixes
    assert (less.text, less.lines) == ("request 1 GPU instead of 4", ("#SBATCH --gres=gpu:a100:1",))
    assert every.text == "use all 4 GPUs: start a process for each (torchrun --nproc_per_node=4)"


def test_an_option_of_the_command_line_is_changed_there() -> None:
    """A line in the script is overridden by the command line, so the text names the option that was given there."""
    less, _ = one_of_four("sbatch --gpus=4 job.sh").fixes
    assert less.text.endswith("(change --gpus on the command line: it overrides the script)")


@pytest.mark.parametrize(
    ("submitted", "line"),
    [
        ("sbatch -n 4 --gpus-per-task=1 job.sh", "#SBATCH --ntasks=1 --gpus-per-task=1"),
        ("sbatch -n 1 --gpus-per-task=4 job.sh", "#SBATCH --ntasks=1 --gpus-per-task=1"),
        ("sbatch --gpus-per-socket=2 --sockets-per-node=2 job.sh", "#SBATCH --gpus-per-node=1"),
    ],
)
def test_gpus_of_tasks_and_sockets_come_to_the_number(submitted: str, line: str) -> None:
    """The tasks of the job stay where they can; sockets are not multiplied with the number of a node."""
    assert one_of_four(submitted).fixes[0].lines == (line,)


def test_two_gpus_of_one_task_stay_with_it() -> None:
    """One task with four GPUs of which two work is one task with two, not two tasks with one."""
    uses = (use(0), use(1), untouched(2), untouched(3))
    ledger = judged(job(gpus=4, submit_line="sbatch -n1 --gpus-per-task=4 job.sh"), *uses)
    (finding,) = findings(ledger)
    assert finding.fixes[0].lines == ("#SBATCH --ntasks=1 --gpus-per-task=2",)


def test_cpus_for_each_task_are_doubled_only_where_they_are_known() -> None:
    """With -c8 on the command line the line is --cpus-per-task=16; else the number of tasks is not known: no line."""
    lines = {fix.lines for fix in fixes("cpu_starved")}
    assert lines == {("#SBATCH --cpus-per-task=16",), ()}


def test_a_node_of_a_strange_name_is_in_no_command() -> None:
    """A node's name that a shell would read as more than a word is left out of the command."""
    ledger = judged(job(), use())
    assert processes(ledger, "gpu1; reboot") == ()
    assert processes(ledger, "gpu1")
