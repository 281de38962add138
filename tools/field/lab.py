"""What a check has in its hands: the machine with Slurm and our packages, and what the installation said."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.cluster_process import wait_until
from tools.field import site
from tools.field.base import AnyMachine
from tools.field.page import with_keys

UNITS: Final = ("gpuwaste-hub", "gpuwaste-agent", "gpuwaste-advisor")
CONFIGURATION: Final = "/etc/gpuwaste/gpuwaste.toml"
JOB_MEMORY: Final = "--mem=100"
_ENDS: Final = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL")
_INTERVAL_S: Final = 3.0


class CheckError(GpuwasteError):
    """A check found something else than it should."""


@dataclass
class Lab:
    """A machine at work."""

    machine: AnyMachine
    lowers: Sequence[Path]
    packages: Path
    """A folder of Debian packages of this tree."""
    said: dict[str, str] = field(default_factory=dict)
    """What steps of the install page wrote, by heading."""

    def play(self, user: str, gpus: int, phases: Sequence[str], script: str = "") -> int:
        """Submit a job whose GPUs play phases, "SECONDS:PERCENT:MIB"; return its id once it runs."""
        words = " ".join(f"--phase {self._stretched(phase)}" for phase in phases)
        load = f"GPUWASTE_SIM_DIR={site.SIM} gpuwaste-load --gpus $SLURM_JOB_GPUS {words}" if phases else ""
        options = f"--parsable --chdir=/tmp --gres=gpu:{gpus} {JOB_MEMORY} --output=/tmp/job-%j.out"
        said = self.machine.run(f"sbatch {options} <<'J'\n#!/bin/sh\n{script}\n{load}\nJ", user=user)
        job = int(said.split(";")[0])
        self.machine.wait(f"squeue -h -j {job} -o %T", 60, f"job {job} to run", wanted="RUNNING")
        return job

    def _stretched(self, phase: str) -> str:
        seconds, _, rest = phase.partition(":")
        return f"{int(seconds) * self.machine.stretch}:{rest}"

    def output(self, job: int) -> str:
        """Return what a job wrote."""
        return self.machine.run(f"cat /tmp/job-{job}.out")

    def ended(self, job: int, timeout_s: float) -> None:
        """Wait until a job has ended well. Raises GpuwasteError."""
        script = f"scontrol -o show job {job}"
        said = self.machine.wait(script, timeout_s, f"job {job} to end", wanted=[f"JobState={word} " for word in _ENDS])
        expect("JobState=COMPLETED " in said, f"job {job} ended otherwise: {said[:300]}")

    def sampled(self, jobs: Sequence[int]) -> None:
        """Wait until the agent knows of running jobs, and has sampled them since."""
        ids = ", ".join(map(str, sorted(jobs)))
        self.machine.wait("gpuwaste agent status", 60, f"the agent to know jobs {ids}", wanted=f"jobs: [{ids}]")
        time.sleep(_INTERVAL_S)

    def job(self, job: int, user: str) -> dict[str, Any]:
        """Return the document of `gpuwaste job`; {} where the hub does not know it yet."""
        done = self.machine.try_run(f"gpuwaste job {job} --json", user=user)
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {}

    def confirmed(self, job: int, user: str, *, timeout_s: float = 150, unknown_s: float = 5) -> list[float]:
        """Wait until the ledger has a job's GPUs to the end, confirmed; return the mean use of each in percent.

        `unknown_s` is how long a GPU's use may be unknown. Raises GpuwasteError with what the ledger has.
        """
        found = self.measured(job, user, timeout_s)
        for device in found:
            expect(device["confidence"] == "confirmed", f"job {job}: {device['confidence']} by {device['map_source']}")
            missed = device["unknown_s"] + device["pending_s"]
            expect(
                missed <= unknown_s * self.machine.stretch,
                f"job {job}: {missed:g} s are unknown: {device['unknown_by_reason_s']}",
            )
        return [float(device["mean_util_pct"]) for device in found]

    def measured(self, job: int, user: str, timeout_s: float = 150) -> list[dict[str, Any]]:
        """Wait until the ledger has a job's GPUs to the end; return what it has of each. Raises GpuwasteError."""
        found: list[dict[str, Any]] = []

        def complete() -> bool:
            runs = self.job(job, user).get("runs", [])
            found[:] = [device for run in runs for device in run["devices"] if not run["running"]]
            return bool(found) and all(device.get("final") for device in found)

        words, limit_s = f"the ledger to have job {job} of {user}", timeout_s * self.machine.pace
        wait_until(complete, limit_s, words, lambda: str(found), poll_s=1)
        return found

    def configuration(self) -> str:
        """Return what the site has set: the files of /etc/gpuwaste without comments."""
        return self.machine.run("grep -rhv '^#' /etc/gpuwaste --include='*.toml' | grep . | sort")

    def read_accounting_often(self) -> None:
        """Let the hub read accounting every few seconds; what its default takes is waited for in `page` and `job`."""
        text = self.machine.read(CONFIGURATION)
        if (key := "sacct_every_s") not in "".join(line for line in text.splitlines() if not line.startswith("#")):
            self.machine.write(CONFIGURATION, with_keys(text, f"[hub]\n{key} = 5\n"))
            self.machine.run("systemctl restart gpuwaste-hub")
            self.active()

    def doctor(self) -> list[str]:
        """Return the doctor's lines."""
        return self.machine.try_run(self.machine.doctor).stdout.splitlines()

    def well(self, when: str, timeout_s: float = 0) -> None:
        """Expect a doctor without fail or warn, within a time. Raises CheckError with the lines that are not well."""
        deadline = time.monotonic() + timeout_s * self.machine.pace
        while bad := [line for line in self.doctor() if not line.startswith("ok ")]:
            if time.monotonic() > deadline:
                raise CheckError(f"the doctor {when}: {' | '.join(bad)}")
            time.sleep(1)

    def unit(self, name: str, key: str) -> str:
        """Return a property of a unit."""
        return self.machine.run(f"systemctl show --value --property={key} {name}").strip()

    def started_again(self, name: str, before: int, timeout_s: float) -> None:
        """Wait until systemd has started a unit again, more often than `before`. Raises GpuwasteError."""
        script = f"[ $(systemctl show --value --property=NRestarts {name}) -gt {before} ]"
        self.machine.wait(script, timeout_s, f"systemd to start {name} again", poll_s=0.5)

    def last_words(self, name: str) -> str:
        """Return the end of a unit's journal."""
        return self.machine.run(f"journalctl --unit={name} --output=cat --lines=8").strip()

    def active(self, names: Sequence[str] = UNITS, timeout_s: float = 60) -> None:
        """Wait until units are active. Raises GpuwasteError."""
        wanted = "active\n" * len(names)
        script = f"systemctl is-active {' '.join(names)} || :"
        self.machine.wait(f'[ "$({script})" = "{wanted.strip()}" ] && echo all', timeout_s, f"{names} to be active")


def expect(holds: bool, otherwise: str) -> None:
    """Raise CheckError unless something holds."""
    if not holds:
        raise CheckError(otherwise)
