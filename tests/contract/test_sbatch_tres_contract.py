"""Amounts of requests drawn at random: ours from the script, Slurm's own from the held job (TRES of `scontrol show`).

What differs for a reason is in test_sbatch_contract's text: memory that nobody named is a default of the site there.
Combinations that only slurmctld refuses are none of ours.
"""

import random
import re

import pytest

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.accounting.tres_amounts import gpu_count, memory_b, parse_tres
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch import read_submission
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_commands import tres_of

pytestmark = pytest.mark.cluster
CASES = 500  # components that Slurm took
MOST = 1500  # submissions
SHAPES = (
    ("--nodes", ("1", "2", "1-2", "2-3", "3")),
    ("--ntasks", ("1", "2", "3", "4", "6")),
    ("--cpus-per-task", ("1", "2", "3")),
    ("--ntasks-per-node", ("1", "2", "3")),
    ("--exclusive", ("", "user")),
    ("--overcommit", ("",)),
    ("--sockets-per-node", ("1", "2")),
    ("--cores-per-socket", ("2", "4")),
    ("--extra-node-info", ("1:2", "2:2", "2:1:1")),
    ("--cpus-per-gpu", ("2",)),
    ("--mincpus", ("2", "4")),
    ("--nodelist", ("gpu1", "gpu[1-2]", "gpu1,gpu1")),
)
GPUS = (
    ("--gres", ("gpu", "gpu:1", "gpu:2", "gpu:a100", "gpu:a100:3", "none", "gpu:0")),
    ("--gpus", ("1", "2", "3", "4", "a100:2")),
    ("--gpus-per-node", ("1", "2", "a100:2")),
    ("--gpus-per-task", ("1", "2", "a100:1")),
    ("--gpus-per-socket", ("1", "2")),
    ("--ntasks-per-gpu", ("1", "2")),
)
MEMORY = (("--mem", ("100", "1G", "300K")), ("--mem-per-cpu", ("100", "1G")), ("--mem-per-gpu", ("100", "2G")))


# What Slurm refuses to go together, and what it wants to go with what.
APART: dict[str, tuple[str, ...]] = {
    "--ntasks-per-gpu": ("--ntasks-per-node", "--gpus-per-task", "--gpus-per-socket"),
    "--cpus-per-gpu": ("--cpus-per-task",),
}
TOGETHER: dict[str, tuple[str, ...]] = {
    "--gpus-per-socket": ("--sockets-per-node", "--extra-node-info"),
    "--gpus-per-task": ("--ntasks", "--nodes"),
    "--cpus-per-gpu": ("--gpus", "--gres", "--gpus-per-node"),
    "--mem-per-gpu": ("--gpus", "--gpus-per-node"),
}


def _component(draw: random.Random) -> str:
    values = dict(SHAPES + GPUS + MEMORY)
    names = draw.sample([name for name, _ in SHAPES], draw.choice((0, 1, 2, 2, 3, 4)))
    names += draw.sample([name for name, _ in GPUS], draw.choice((0, 1, 1, 1, 2)))
    names += draw.sample([name for name, _ in MEMORY], draw.choice((0, 1, 1)))
    for name, others in APART.items():
        if name in names:
            names = [other for other in names if other not in others]
    for name, others in TOGETHER.items():
        if name in names and not set(others) & set(names):
            names.append(draw.choice(others))
    draw.shuffle(names)
    words = ((name, draw.choice(values[name])) for name in names)
    return " ".join(f"{name}={value}" if value else name for name, value in words)


def _script(draw: random.Random) -> str:
    components = [_component(draw) for _ in range(draw.choice((1, 1, 1, 2)))]
    return "#!/bin/sh\n" + "\n#SBATCH hetjob\n".join(f"#SBATCH {words}" for words in components) + "\nsleep 1\n"


def _held(cluster: LoopbackCluster, script: str) -> str | None:
    """Submit a held job and return its id, None where Slurm refuses it."""
    done = cluster.run(["sbatch", "--parsable", "-H"], "alice", stdin=script, check=False)
    return done.stdout.split(";")[0].strip() if done.returncode == 0 else None


def _records(cluster: LoopbackCluster) -> dict[tuple[str, int], dict[str, str]]:
    """Return all jobs of slurmctld's memory by id and het offset, with one question."""
    text = cluster.run(["scontrol", "-o", "show", "job"], check=False).stdout
    rows: list[dict[str, str]] = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in text.splitlines()]
    return {(row.get("HetJobId", row["JobId"]), int(row.get("HetJobOffset", 0))): row for row in rows if "JobId" in row}


def counted_later(words: str, release: tuple[int, int]) -> set[str]:
    """Return the amounts that slurmctld of later releases counts, before a job is scheduled, as those it will get.

    The reader has the request alone, and says what 22.05 says of it.
    """
    if release <= (22, 5):
        return set()
    every = {"nodes", "cpus", "gpus", "memory"}
    if sum(f"{name}=" in words for name, _ in GPUS) > 1:
        return every
    both = [
        ("--ntasks=", "--ntasks-per-node=", every),
        ("--nodes=", "--nodelist=", every),
        ("--cpus-per-gpu=", "", {"cpus", "memory"}),
    ]
    if release >= (26, 5):
        both += [
            ("--overcommit", "", {"cpus", "memory"}),
            ("--ntasks-per-gpu=", "", {"cpus", "memory"}),
            ("--nodes=", "--ntasks-per-node=", {"cpus", "memory"}),
        ]
    return {amount for first, second, amounts in both if first in words and second in words for amount in amounts}


def _difference(record: dict[str, str], request: JobRequest, words: str, later: set[str]) -> list[str]:
    tres = parse_tres(tres_of(record))
    seen = {"nodes": int(tres["node"]), "cpus": int(tres["cpu"]), "gpus": gpu_count(tres).total}
    ours = {"nodes": request.nodes, "cpus": request.cpus, "gpus": request.gpus}
    # --mem-per-gpu of GPUs that are asked for in two ways is by one of the two, not by the larger.
    odd = "--mem-per-gpu" in words and sum(f"{name}=" in words for name, _ in GPUS) > 1
    if request.mem_b is not None and not odd:
        seen["memory"], ours["memory"] = memory_b(tres) or 0, request.mem_b
    return [f"{name}: Slurm {seen[name]}, we {ours[name]}" for name in seen.keys() - later if seen[name] != ours[name]]


def test_drawn_requests_come_to_slurm_s_own_amounts(cluster: LoopbackCluster, draw: random.Random) -> None:
    """Hundreds of held jobs: nodes, CPUs, GPUs and memory of each component are those that slurmctld counts."""
    cluster.reset()
    jobs: dict[str, str] = {}
    wrong, taken, asked = [], 0, 0
    try:
        while taken < CASES and asked < MOST:
            script = _script(draw)
            asked += 1
            if (job := _held(cluster, script)) is not None:
                jobs[job] = script
                taken += 1 + script.count("#SBATCH hetjob\n")
        records = _records(cluster)
    finally:
        cluster.run(["scancel", "-u", "alice"])
    for job, script in jobs.items():
        try:
            requests = read_submission(script).requests
        except GpuwasteError as error:
            wrong.append(f"{script}: we refuse: {error}")
            continue
        for offset, request in enumerate(requests):
            words = script.split("#SBATCH hetjob\n")[offset]
            later = counted_later(words, cluster.release)
            found = _difference(records[job, offset], request, words, later)
            wrong += [f"{script} +{offset}: {text}" for text in found]
    assert taken >= CASES
    assert not wrong, f"{len(wrong)} of {taken}:\n" + "\n".join(wrong[:12])
