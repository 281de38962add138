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
NO_ADVICE = "(no advice)"


@dataclass(slots=True)
class Outage:
    """The time for which a node had no agent, UTC seconds."""

    node: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class ShownAdvice:
    """What sbatch printed for the owner of a job and for another user when each submitted it again."""

    name: str
    command: str
    owner: str
    other: str
    told: str
    control: str


@dataclass(slots=True)
class Story:
    """What was run: job ids by name, the outage, and what sbatch printed (None in an older recording)."""

    started: float
    jobs: dict[str, int] = field(default_factory=dict)
    plan: dict[str, DemoJob] = field(default_factory=dict)
    outage: Outage | None = None
    top: str = ""
    top_at: float = 0.0
    advice: ShownAdvice | None = None
    without_hub_s: float | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """What follows the run: `say` gets its progress, `keep` the lines that only a recording has.

    `idle` is called when the hub knows GPUs that are held and idle while other jobs wait, `first` when the first job
    is reported and sbatch has given advice on it.
    """

    say: Callable[[str], None]
    keep: Callable[[str], None] = lambda _line: None
    idle: Callable[[], None] = lambda: None
    first: Callable[[Story], None] = lambda _story: None


def play(site: Site, listener: Listener, *, all_jobs: bool) -> Story:
    """Run the first jobs, or all of them, on `site`; return when accounting and hub have all of them."""
    story = Story(time.time())
    say = listener.say
    shells: list[threading.Thread] = []
    say(f"alice, bob and carol submit {len(FIRST)} jobs; Slurm gives them GPUs in a random order")
    _submit(site, story, FIRST, shells)
    _wait_running(site, story, FIRST)
    _pause(_SETTLE_S)
    story.outage = _kill_agent(site, say)
    if site.spare is not None:
        _kill_hub(site, story, say)
    _pause(8)
    story.top_at = time.time()
    story.top = site.gpuwaste("now", "--hours", "1", user="root", check=False).stdout
    if all_jobs:
        say(f"the users submit {len(SECOND) + len(NEAR)} more jobs, which wait for GPUs")
        _submit(site, story, SECOND, shells)
        _submit(site, story, NEAR, shells)
        _wait_idle(site)
        listener.idle()
    first = FIRST[0]
    say(f"waiting for the end of job {story.jobs[first.name]} ({first.name}), which runs for 70 s")
    _wait_end(site, story, first.name, say)
    site.wait_reported(story.jobs[first.name], first.devices)
    story.advice = _submit_again(site, first, SECOND[4].user, say)
    for line in advice_lines(story.advice):
        listener.keep(line)
    listener.first(story)
    for name in story.jobs:
        if name != first.name:
            _wait_end(site, story, name, say)
    for shell in shells:
        shell.join(20)
    say("waiting until the hub has the last samples and the ends of all jobs")
    for name, job_id in story.jobs.items():
        site.wait_reported(job_id, story.plan[name].devices)
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


def _wait_end(site: Site, story: Story, name: str, say: Callable[[str], None]) -> None:
    job_id = story.jobs[name]
    rows = site.cluster.wait_accounted(job_id, 170)
    say(f"job {job_id} ({name}) ended: {rows[0]['State']}")


def _wait_running(site: Site, story: Story, jobs: Sequence[DemoJob]) -> None:
    for job in jobs:
        site.cluster.wait_job(story.jobs[job.name], "RUNNING", 40)


def _wait_idle(site: Site) -> None:
    """Wait until a GPU is known to be idle now, which takes a minute of zeros; no longer than the first jobs run."""
    until = time.monotonic() + _IDLE_S
    while time.monotonic() < until and not site.json("now", user="root")["idle"]:
        _pause(1)


def _submit_again(site: Site, job: DemoJob, other: str, say: Callable[[str], None]) -> ShownAdvice:
    """Submit a job again, as its owner and as a user who never ran it, and return what sbatch printed for both."""
    options = _sbatch_options(job)
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

    command = _sbatch_command(job)
    say(f"{job.user} submits {job.name} again; {other} submits the same request for the first time")
    wait_until(is_told, _ADVICE_S, f"advice for {job.user} at sbatch", poll_s=1.0)
    return ShownAdvice(job.name, command, job.user, other, told, sbatch(other))


def advice_lines(advice: ShownAdvice) -> list[str]:
    """Return lines of progress from which `advice_of` restores the advice."""
    shown = ((advice.owner, advice.told), (advice.other, advice.control or NO_ADVICE))
    return [f"{user}$ {advice.command}: {line}" for user, text in shown for line in text.splitlines()]


def advice_of(lines: Sequence[str]) -> ShownAdvice | None:
    """Return the advice that is in lines of progress; None where one of the two users is missing."""
    job, other = FIRST[0], SECOND[4].user
    printed: dict[str, list[str]] = {job.user: [], other: []}
    for user, line in filter(None, map(advice_of_line, lines)):
        printed[user].append(line)
    if not all(printed.values()):
        return None
    told, control = ("\n".join(printed[user]) for user in (job.user, other))
    return ShownAdvice(job.name, _sbatch_command(job), job.user, other, told, "" if control == NO_ADVICE else control)


def advice_of_line(line: str) -> tuple[str, str] | None:
    """Return the user and what sbatch printed for them; None for any other line of progress."""
    for user in (FIRST[0].user, SECOND[4].user):
        start = f"{user}$ {_sbatch_command(FIRST[0])}: "
        if line.startswith(start):
            return user, line.removeprefix(start)
    return None


def _sbatch_command(job: DemoJob) -> str:
    return f"sbatch {' '.join(_sbatch_options(job))} {job.name}.sh"


def _sbatch_options(job: DemoJob) -> list[str]:
    return [f"--gres=gpu:a100:{job.gpus}", f"--job-name={job.name}"]


def _kill_agent(site: Site, say: Callable[[str], None]) -> Outage:
    """Kill -9 the agent of a node that runs one of the first jobs, and start it again later."""
    node = "gpu2"
    say(f"the agent on {node} is killed; it starts again in {OUTAGE_S:.0f} s")
    began = time.time()
    site.agents[node].kill()
    _pause(OUTAGE_S)
    site.start_agent(node)
    return Outage(node, began, time.time())


def _kill_hub(site: Site, story: Story, say: Callable[[str], None]) -> None:
    """Kill -9 the hub, and wait until the second one has taken over."""
    say("the hub is killed; agents and commands use the second one")
    began = time.monotonic()
    site.lose_hub()
    story.without_hub_s = time.monotonic() - began
    say(f"the second hub answers after {story.without_hub_s:.0f} s")
