"""Two parts of demo-all: the same jobs simulated with the GPUs that they used, and a plan that is made and submitted.

One GPU of each node is held when the script of four GPUs is planned, so that it would have to wait without a change.
"""

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.testing.demo.checks import DemoCheck
from gpuwaste.testing.demo.jobs import FIRST, DemoJob
from gpuwaste.testing.demo.story import Story
from gpuwaste.testing.running_site import Site

_HOLDER: Final = "carol"
_HELD_FOR: Final = "--phase 580:90"  # longer than a busy host compiles at the first plan; they are cancelled in the end
_START_S: Final = 60.0
_SIMULATED_S: Final = 90.0
_REACTION_S: Final = 10  # a plan is read and submitted after it was made, and slurmctld takes seconds to start a job
_FREED: Final = 0.8  # of what the idle GPUs of the first job held: runs are whole seconds


@dataclass(frozen=True, slots=True)
class Ending:
    """What was shown, by the command and its user, and what it is held against."""

    shown: Mapping[str, str]
    checks: tuple[DemoCheck, ...]


def replay(site: Site, story: Story) -> Ending:
    """Simulate the demo's own jobs with the GPUs that each of them used."""
    gpus = sum(len(node.minors) for node in site.cluster.nodes.values())
    words = ["simulate", "what-if", "gpus", "--processors", str(gpus)]
    text = _simulated(site, words)
    document = json.loads(_simulated(site, [*words, "--json"]))
    figures = document["differences"][0]["figures"]
    waits, held = figures["mean_wait_s"], figures["held_h"]
    first = FIRST[0]
    idle_h = _idle_gpu_hours(site.json("job", str(story.jobs[first.name]), user="root"))
    said = f"wait {waits['changed']:.0f} s instead of {waits['base']:.0f} s; {-held['difference']:.2f} GPU-hours freed"
    fits = held["difference"] <= -_FREED * idle_h and waits["changed"] <= waits["base"]
    truth = f"{first.name}: {idle_h:.2f} idle GPU-hours"
    return Ending(
        {f"root$ gpuwaste {shlex.join(words)}": text}, (DemoCheck("simulated with the GPUs used", truth, said, fits),)
    )


def plan_and_submit(site: Site, say: Callable[[str], None]) -> Ending:
    """Plan the first job's script while GPUs are held, submit what the plan chose, and see when it starts."""
    job = FIRST[0]
    holders = [
        site.submit(_HOLDER, _HELD_FOR, w=node, gres="gpu:a100:1", job_name="holder", time=10)
        for node, simulated in site.cluster.nodes.items()
        if simulated.minors
    ]
    for holder in holders:
        site.cluster.wait_job(holder, "RUNNING")
    script = _script(site, job)
    say(f"a job holds one GPU of each node; {job.user} plans {script}")
    made = site.gpuwaste("plan", "-o", "train.plan", script, user=job.user)
    document = json.loads(site.gpuwaste("plan", "--json", script, user=job.user).stdout)
    submitted = json.loads(site.gpuwaste("plan", "--submit", "train.plan", "--json", user=job.user).stdout)
    (job_id,) = submitted["jobs"]
    at = time.time()
    site.cluster.wait_job(job_id, ("RUNNING", "COMPLETED"), _START_S)
    started = _started(site, job_id)
    say(f"{job.user} submits candidate {submitted['candidate']} of the plan: job {job_id} starts")
    site.cluster.run(["scancel", *map(str, [job_id, *holders])])
    shown = {
        f"{job.user}$ gpuwaste plan -o train.plan {script}": made.stdout,
        f"{job.user}$ gpuwaste plan --submit train.plan": f"job {job_id}\n",
    }
    return Ending(shown, tuple(_checks(document, submitted["candidate"], started, at)))


def _simulated(site: Site, words: Sequence[str]) -> str:
    """Run the simulator as it is written: to compile it takes longer than the demo's few jobs."""
    argv = site.runtime.command(*words, "--config", str(site.config_path("hub")))
    env = {**site.runtime.env, "NUMBA_DISABLE_JIT": "1"}
    return site.cluster.run(argv, "root", env=env, timeout_s=_SIMULATED_S).stdout


def _checks(document: Mapping[str, Any], taken: int, started: int, submitted_at: float) -> list[DemoCheck]:
    candidates = {one["number"]: one for one in document["candidates"]}
    chosen = candidates[taken]
    asked = next(one for one in candidates.values() if one["kind"] == "as_asked")
    earlier = (_begin(asked) or 0) - (_begin(chosen) or 0)
    quicker = DemoCheck(
        "plan of the 4-GPU script",
        "1 GPU is free, 4 are not",
        f"{chosen['title']}: {earlier} s earlier than as requested",
        chosen["gpus"] < asked["gpus"] and earlier > 0,
    )
    interval = chosen.get("start") or {"p10": chosen["slurm_start"], "p90": chosen["slurm_start"]}
    late = max(interval["p90"], int(submitted_at)) + _REACTION_S
    within = DemoCheck(
        "start of the planned job",
        f"started {started - document['at']:+d} s after the plan",
        f"{interval['p10'] - document['at']:+d} to {interval['p90'] - document['at']:+d} s",
        interval["p10"] <= started + 1 and started <= late,
    )
    return [quicker, within]


def _begin(candidate: Mapping[str, Any]) -> int | None:
    start = candidate.get("start")
    found: int | None = start["p50"] if start else candidate.get("slurm_start")
    return found


def _script(site: Site, job: DemoJob) -> str:
    """Write the job's script into its user's home; returns its name there."""
    text = f"#!/bin/bash\n#SBATCH --gres=gpu:a100:{job.gpus}\n#SBATCH --job-name={job.name}\n#SBATCH --time=10\n"
    text += f"#SBATCH --output=/dev/null\n{site.load(job.load)}\n"
    name = f"{job.name}.sbatch"
    site.cluster.run(["tee", name], job.user, stdin=text)
    return name


def _started(site: Site, job_id: int) -> int:
    row = site.cluster.run(
        ["squeue", "-h", "-t", "all", "-j", str(job_id), "-o", "%S"], env={"SLURM_TIME_FORMAT": "%s"}
    )
    return int(row.stdout.split()[0])


def _idle_gpu_hours(document: Mapping[str, Any]) -> float:
    """Return the GPU-hours of the devices of a job that did nothing at all."""
    devices = document["runs"][-1]["devices"]
    held: float = sum(device["gpu_s"] for device in devices if device["level"] == "none" or device["untouched"])
    return held / 3600
