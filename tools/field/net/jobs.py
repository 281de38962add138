"""Jobs on one or both nodes, and what the ledger must have of them: all of their time, once, confirmed."""

from collections.abc import Sequence
from typing import Any, Final

from tools.field import site
from tools.field.lab import JOB_MEMORY, expect
from tools.field.net.hosts import NODES, Hosts

_PROGRAM: Final = "gpuwaste-load --gpus ${SLURM_STEP_GPUS:-$SLURM_JOB_GPUS}"
_ROUND_S: Final = 3.0
"""Slurm's times are whole seconds, and a sample covers the second before it."""


def play(hosts: Hosts, user: str, seconds: int, percent: int, nodes: Sequence[str] = NODES) -> int:
    """Submit a job with one GPU on each of some nodes, used evenly; return its id once all of their agents know it."""
    job = submit(hosts, user, seconds, percent, nodes)
    for node in nodes:
        hosts.on(node).sampled([job])
    return job


def submit(hosts: Hosts, user: str, seconds: int, percent: int, nodes: Sequence[str] = NODES) -> int:
    """Submit a job with one GPU on each of some nodes; return its id once it runs. Raises GpuwasteError."""
    machine = hosts.controller.machine
    options = f"--nodes={len(nodes)} --nodelist={','.join(nodes)} --ntasks-per-node=1 --gres=gpu:1 {JOB_MEMORY}"
    load = f"GPUWASTE_SIM_DIR={site.SIM} exec {_PROGRAM} --phase {seconds}:{percent}:5000"
    script = f"#!/bin/sh\nexec srun sh -c '{load}'\n"
    said = machine.run(f"sbatch --parsable --chdir=/tmp {options} --output=/tmp/job-%j.out <<'J'\n{script}J", user=user)
    job = int(said.split(";")[0])
    machine.wait(f"squeue -h -j {job} -o %T", 90, f"job {job} to run", wanted="RUNNING")
    return job


def confirmed(
    hosts: Hosts, job: int, user: str, played: tuple[int, int], nodes: Sequence[str] = NODES, *,
    unknown_s: float = 5, timeout_s: float = 200,
) -> None:  # fmt: skip
    """Expect each node's GPU once in the ledger, confirmed, with all of the job's time and the use that was played.

    `played` has seconds and percent. Raises GpuwasteError with what the ledger has.
    """
    means = hosts.controller.confirmed(job, user, unknown_s=unknown_s, timeout_s=timeout_s)
    (run,) = hosts.controller.job(job, user)["runs"]
    where = sorted(device["node"] for device in run["devices"])
    expect(where == sorted(nodes), f"job {job} on {nodes}: the ledger has a GPU on {where}")
    seconds, percent = played
    for device, mean in zip(run["devices"], means, strict=True):
        _once(job, float(run["elapsed_s"]), device)
        full_s = mean / 100 * (device["gpu_s"] - device["unknown_s"])
        wanted_s, slack_s = seconds * percent / 100, (_ROUND_S + unknown_s) * percent / 100
        expect(
            abs(full_s - wanted_s) <= slack_s,
            f"job {job} played {played}: {full_s:.1f} s at full use on {device['node']}",
        )


def _once(job: int, elapsed_s: float, device: dict[str, Any]) -> None:
    """Expect a GPU's time to be that of its job: a lost row would be missing, one that is counted twice too much."""
    for key, missed in (("gpu_s", 0.0), ("energy_measured_s", device["unknown_s"])):
        had = float(device[key])
        expect(
            elapsed_s - _ROUND_S - missed <= had <= elapsed_s + _ROUND_S,
            f"job {job} ran {elapsed_s:g} s, {device['node']} has {key} of {had:g} s",
        )
