"""The demo's run: submit, kill an agent for a while, wait until the hub has every end."""

import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gpuwaste.testing.cluster_process import SLURM_POLL_S, wait_until
from gpuwaste.testing.demo.jobs import FIRST, NEAR, SECOND, DemoJob
from gpuwaste.testing.running_site import Site

OUTAGE_S = 8.0
_SETTLE_S = 7.0  # both waves sample for a while before the agent dies
_IDLE_S = 60.0
_ADVICE_S = 60.0  # until the advisor has what the hub learnt last


@dataclass(slots=True)
class Outage:
    """The time for which a node had no agent, UTC seconds."""

    node: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class ShownAdvice:
    """What the terminals of the owner of a job and of another user showed when each submitted it again."""

    name: str
    command: str
    owner: str
    other: str
    told: str
    control: str


@dataclass(slots=True)
class Story:
    """What was run: job ids by name, the outage, and what sbatch said in the end (a recording has none of it)."""

    started: float
    jobs: dict[str, int] = field(default_factory=dict)
    plan: dict[str, DemoJob] = field(default_factory=dict)
    outage: Outage | None = None
    top: str = ""
    top_at: float = 0.0
    advice: ShownAdvice | None = None
    without_hub_s: float | None = None


def play(site: Site, say: Callable[[str], None], look: Callable[[], None] = lambda: None) -> Story:
    """Run the demo's jobs on `site`, saying what happens; return when accounting and hub know all of it.

    `look` is called when the hub knows GPUs that are held and idle while other jobs wait.
    """
    story = Story(time.time())
    shells: list[threading.Thread] = []
    say("three users submit their first jobs; their GPUs are drawn at random")
    _submit(site, story, FIRST, shells)
    _wait_running(site, story, FIRST)
    _pause(_SETTLE_S)
    story.outage = _kill_agent(site, say)
    if site.spare is not None:
        _kill_hub(site, story, say)
    _pause(8)
    story.top_at = time.time()
    story.top = site.gpuwaste("top", user="root", check=False).stdout
    say("the next jobs wait for GPUs that are held")
    _submit(site, story, SECOND, shells)
    _submit(site, story, NEAR, shells)
    _wait_idle(site)
    look()
    for name, job_id in story.jobs.items():
        rows = site.cluster.wait_accounted(job_id, 170)
        say(f"ended: {name} (job {job_id}, {rows[0]['State']})")
    for shell in shells:
        shell.join(20)
    say("waiting until the hub has the last hours and accounting's ends")
    for name, job_id in story.jobs.items():
        site.wait_reported(job_id, story.plan[name].devices)
    story.advice = _submit_again(site, FIRST[0], SECOND[4].user, say)
    return story


def questions(story: Story) -> list[tuple[str, list[str]]]:
    """Return who asks what when the run is over; carol coordinates proj1."""
    first = str(story.jobs[FIRST[0].name])
    return [
        ("alice", ["report", "--user", "alice"]),
        ("bob", ["report"]),
        ("carol", ["report", "--accounts", "proj1"]),
        ("alice", ["job", first]),
        ("bob", ["job", first]),
        ("root", ["report", "--allusers"]),
    ]


def _pause(seconds: float) -> None:
    """Let the cluster run: the demo's jobs need time to do what is then reported."""
    time.sleep(seconds)


def _submit(site: Site, story: Story, jobs: Sequence[DemoJob], shells: list[threading.Thread]) -> None:
    for job in jobs:
        gres = f"gpu:a100:{job.gpus}"
        if job.interactive:
            story.jobs[job.name] = _open_shell(site, job, gres, shells)
        else:
            options: dict[str, str | int | bool] = {"gres": gres, "job_name": job.name, **job.options}
            story.jobs[job.name] = site.submit(job.user, job.load, **options)
        story.plan[job.name] = job


def _open_shell(site: Site, job: DemoJob, gres: str, shells: list[threading.Thread]) -> int:
    """Start an interactive job (srun without a batch script) and return its id as soon as Slurm has one."""
    command = ["srun", f"--gres={gres}", f"--job-name={job.name}", *shlex.split(site.load(job.load))]

    def run() -> subprocess.CompletedProcess[str]:
        return site.cluster.run(command, job.user, timeout_s=200)

    thread = threading.Thread(target=run, name=job.name, daemon=True)
    thread.start()
    shells.append(thread)
    found: list[str] = []

    def queued() -> bool:
        found[:] = site.cluster.run(["squeue", "-h", "-n", job.name, "-o", "%A"]).stdout.split()
        return bool(found)

    wait_until(queued, 60, f"{job.name} in the queue", poll_s=SLURM_POLL_S)
    return int(found[0])


def _wait_running(site: Site, story: Story, jobs: Sequence[DemoJob]) -> None:
    for job in jobs:
        site.cluster.wait_job(story.jobs[job.name], "RUNNING", 40)


def _wait_idle(site: Site) -> None:
    """Wait until a GPU is known to be idle now, which takes a minute of zeros; no longer than the first jobs run."""
    until = time.monotonic() + _IDLE_S
    while time.monotonic() < until and not site.json("now", user="root")["idle"]:
        _pause(1)


def _submit_again(site: Site, job: DemoJob, other: str, say: Callable[[str], None]) -> ShownAdvice:
    """Submit a job again, as its owner and as a user without such a history, and return what both were told."""
    options = [f"--gres=gpu:a100:{job.gpus}", f"--job-name={job.name}"]
    script = f"#!/bin/bash\n{site.load(job.load)}\n"
    told = ""

    def sbatch(user: str) -> str:
        argv = ["sbatch", "--parsable", "--hold", "--output=/dev/null", *options]
        done = site.cluster.run(argv, user, stdin=script)
        site.cluster.run(["scancel", done.stdout.strip()], user)
        return done.stderr.strip()

    def is_told() -> bool:
        nonlocal told
        told = sbatch(job.user)
        return bool(told)

    command = f"sbatch {' '.join(options)} {job.name}.sh"
    say(f"{job.user} submits {job.name} again, {other} the same request for the first time")
    wait_until(is_told, _ADVICE_S, f"sbatch to tell {job.user} something", poll_s=1.0)
    advice = ShownAdvice(job.name, command, job.user, other, told, sbatch(other))
    for line in told.splitlines():
        say(f"{job.user}$ {command}: {line}")
    return advice


def _kill_agent(site: Site, say: Callable[[str], None]) -> Outage:
    """Kill -9 the agent of a node that runs one of the first jobs, and start it again later."""
    node = "gpu2"
    say(f"kill -9 of the agent on {node}; it comes back after {OUTAGE_S:.0f} s")
    began = time.time()
    site.agents[node].kill()
    _pause(OUTAGE_S)
    site.start_agent(node)
    return Outage(node, began, time.time())


def _kill_hub(site: Site, story: Story, say: Callable[[str], None]) -> None:
    """Kill -9 the hub, and wait until the one that stands by has taken its lake over."""
    say("kill -9 of the hub; agents and commands turn to the one that stands by")
    began = time.monotonic()
    site.lose_hub()
    story.without_hub_s = time.monotonic() - began
    say(f"the other hub answers after {story.without_hub_s:.0f} s")
