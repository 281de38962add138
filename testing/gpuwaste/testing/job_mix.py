"""A few hundred real short jobs of every kind on a loopback cluster, run to their end in well under a minute.

    mix = run_job_mix(cluster, jobs=300, seed=7)

Kinds: good ones, exit codes, signals, arrays, het jobs, srun steps, srun without a script, cancelled while waiting and
while running, time limits, a requeue, a suspension, names with newlines and UTF-8; GPUs, exclusive use, memory; alice,
bob and carol in proj1 and proj2. Bob's jobs named "unstable" fail two times in three, alice's "sweep" never do, so
that a history of them has something to learn.
"""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_commands import ENDED
from gpuwaste.testing.cluster_process import SLURM_POLL_S, wait_until

ODD_NAMES = ("näher 🚀", "two\nlines", "a|b\tc", 'q"uote\\', "-leading", "JobId=1 JobName=x", "%j %u 100%")
_CODES = (0, 1, 2, 3, 77, 255)
_ARRAY = 5
_SPECIAL_RUNS = 14
_SUBMITTERS = 4


@dataclass(frozen=True, slots=True)
class JobMix:
    """What ran: raw ids (those of array tasks and het components among them), from `start` to `end`, UTC seconds.

    `submitted_s` and `finished_s` are seconds from the call to the last submission and to the last end in accounting.
    """

    ids: tuple[int, ...]
    start: int
    end: int
    submitted_s: float
    finished_s: float


@dataclass(slots=True)
class _Run:
    cluster: LoopbackCluster
    ids: list[int] = field(default_factory=list)

    def submit(self, script: str, user: str = "alice", **options: str | int | bool) -> int:
        job = self.cluster.sbatch(script, user, output="/dev/null", **options)
        self.ids.append(job)
        return job

    def running(self, **options: str | int | bool) -> int:
        """Submit a long job of alice and return once it runs."""
        job = self.submit("sleep 300", "alice", **options)
        self.cluster.wait_job(job, "RUNNING")
        return job

    def control(self, *argv: str) -> None:
        self.cluster.run(argv)


_Job = Callable[[_Run], object]


def run_job_mix(cluster: LoopbackCluster, jobs: int = 300, seed: int = 0, timeout_s: float = 120.0) -> JobMix:
    """Submit about `jobs` runs drawn from `seed` and wait until accounting has the end of each.

    Raises ClusterError where that takes longer than `timeout_s`. The cluster may have a history of its own.
    """
    start, began = int(time.time()), time.monotonic()
    run = _Run(cluster)
    plain = _drawn(random.Random(seed), max(0, jobs - _SPECIAL_RUNS))  # noqa: S311 - a test's input, no secret
    with ThreadPoolExecutor(_SUBMITTERS) as pool:
        for done in [pool.submit(job, run) for job in (*_SPECIALS, *plain)]:
            done.result()
    submitted_s = time.monotonic() - began
    ids = _wait_ended(run, timeout_s - submitted_s)
    return JobMix(ids, start, int(time.time()), submitted_s, time.monotonic() - began)


def _wait_ended(run: _Run, timeout_s: float) -> tuple[int, ...]:
    wanted, found = {str(job) for job in run.ids}, set[str]()
    open_jobs: list[str] = []

    def ended() -> bool:
        rows = run.cluster.sacct("-D", "-j", ",".join(sorted(wanted)))
        open_jobs[:] = [row["JobID"] for row in rows if row["State"].split()[0] not in {*ENDED, "REQUEUED"}]
        found.update(row["JobIDRaw"] for row in rows)
        return not open_jobs and wanted <= found

    wait_until(
        ended, timeout_s, "the mix of jobs to end in accounting", lambda: str(open_jobs[:20]), poll_s=5 * SLURM_POLL_S
    )
    return tuple(sorted(map(int, found)))


def _drawn(draw: random.Random, runs: int) -> list[_Job]:
    """Draw plain jobs, one of each kind first, until they make `runs` runs."""
    made: list[_Job] = []
    while runs > 0:
        kind = _KINDS[len(made)] if len(made) < len(_KINDS) else draw.choices(_KINDS, _WEIGHTS)[0]
        made.append(kind(draw))
        runs -= _ARRAY if kind is _array else 1
    return made


def _good(draw: random.Random) -> _Job:
    user, script = draw.choice(("alice", "bob", "carol")), f"sleep {draw.choice((0, 0, 0.2, 0.5, 1))}"
    gpus, minutes, mem = draw.choice((0, 0, 1, 2)), draw.choice((5, 10, 60)), draw.choice(("100M", "1G", "1500M"))
    gres = {"gres": f"gpu:{draw.choice(('', 'a100:'))}{gpus}"} if gpus else {}
    return lambda run: run.submit(script, user, time=minutes, mem=mem, job_name="sweep", **gres)


def _unstable(draw: random.Random) -> _Job:
    script, cores = f"exit {draw.choice(_CODES)}", draw.choice((1, 2))
    return lambda run: run.submit(script, "bob", n=cores, job_name="unstable")


def _signalled(draw: random.Random) -> _Job:
    script, user = f"kill -{draw.choice(('KILL', 'TERM', 'SEGV'))} $$", draw.choice(("alice", "bob"))
    return lambda run: run.submit(script, user, job_name="crash")


def _array(draw: random.Random) -> _Job:
    tasks, user = f"0-{_ARRAY - 1}{draw.choice(('', '%2'))}", draw.choice(("alice", "carol"))
    return lambda run: run.submit("exit $((SLURM_ARRAY_TASK_ID % 3))", user, array=tasks, job_name="array")


def _steps(draw: random.Random) -> _Job:
    nodes, script = draw.choice((1, 2)), f"srun true; srun {draw.choice(('true', 'false'))}"
    return lambda run: run.submit(script, N=nodes, n=2 * nodes, job_name="steps")


def _whole_nodes(_draw: random.Random) -> _Job:
    return lambda run: run.submit("true", "carol", partition="whole", mem=0, gres="gpu:4", time="1-0:00:00")


def _processors(_draw: random.Random) -> _Job:
    return lambda run: run.submit("true", partition="cpu", mem_per_cpu="300M", n=3, time="3-0:00:00")


def _odd_name(draw: random.Random) -> _Job:
    name = draw.choice(ODD_NAMES)
    return lambda run: run.submit("exit 3", job_name=name, comment=name)


def _without_script(draw: random.Random) -> _Job:
    argv = ["srun", "-n1", "bash", "-c", f"echo $SLURM_JOB_ID; exit {draw.choice((0, 0, 9))}"]
    return lambda run: run.ids.append(int(run.cluster.run(argv, "bob", timeout_s=60, check=False).stdout))


def _time_limit(run: _Run) -> None:
    """Move the end of a limit, which cannot be shorter than a minute: slurmctld looks every half minute.

    An end in the second of the start, or in one that is over when slurmctld reads it, is refused.
    """
    run.control("scontrol", "update", f"JobId={run.running(time=1)}", "EndTime=now+3")


def _cancelled_running(run: _Run) -> None:
    run.control("scancel", str(run.running(gres="gpu:1")))


def _cancelled_waiting(run: _Run) -> None:
    _cancel_eligible(run, run.submit("true", time="9-0:00:00"))  # longer than the partition takes: it never starts


def _cancelled_array(run: _Run) -> None:
    _cancel_eligible(run, run.submit("true", array="1,3-5,9%2", time="9-0:00:00"))


def _cancel_eligible(run: _Run, job: int) -> None:
    """Cancel a waiting job once accounting knows since when it could start: without that no window shows it."""

    def eligible() -> bool:
        rows = run.cluster.sacct("-j", str(job), fields="JobIDRaw,Eligible")
        return any(row["Eligible"].isdigit() for row in rows)

    wait_until(eligible, 60, f"job {job} to be eligible in accounting", poll_s=5 * SLURM_POLL_S)
    run.control("scancel", str(job))


def _requeued(run: _Run) -> None:
    job = run.running(requeue=True)
    time.sleep(1.1)  # keys have whole seconds: requeued in the second of its start, both its runs would have one
    run.control("scontrol", "requeue", str(job))
    run.cluster.wait_job(job, "PENDING")
    run.control("scancel", str(job))  # its next start would wait for the credential's lifetime


def _suspended(run: _Run) -> None:
    job = run.running()
    run.control("scontrol", "suspend", str(job))
    time.sleep(2.1)  # what is suspended is counted in whole seconds
    run.control("scontrol", "resume", str(job))
    run.control("scancel", str(job))


def _with_memory(run: _Run) -> None:
    script = "srun python3 -c 'b = bytearray(200 * 1024**2); import time; time.sleep(6)'"  # a sample every 5 s
    run.submit(script, "carol", mem="1G", job_name="memory")


def _two_nodes(run: _Run) -> None:
    run.submit("srun true", N=2, n=4, gres="gpu:a100:1", job_name="steps")


def _het(run: _Run) -> None:
    argv = ["sbatch", "--parsable", "-o", "/dev/null", "-n1", "--gres=gpu:1", ":", "-n2", "-pcpu"]
    done = run.cluster.run(argv, "alice", stdin="#!/bin/bash\nsrun --het-group=0,1 true\n")
    run.ids.append(int(done.stdout))


_SPECIALS: tuple[_Job, ...] = (
    _time_limit, _requeued, _suspended, _with_memory, _cancelled_running, _cancelled_waiting, _cancelled_array,
    _two_nodes, _het, _het,
)  # fmt: skip
_KINDS = (_good, _unstable, _signalled, _array, _steps, _whole_nodes, _processors, _odd_name, _without_script)
_WEIGHTS = (40, 20, 5, 4, 6, 2, 5, 6, 2)
