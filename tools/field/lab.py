"""What a check has in its hands: the machine with Slurm and our packages, and what was said while they were installed."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.field import site
from tools.field.machine import Machine

UNITS: Final = ("gpuwaste-hub", "gpuwaste-agent", "gpuwaste-advisor")
JOB_MEMORY: Final = "--mem=100"


class CheckError(GpuwasteError):
    """A check found something else than it should."""


@dataclass
class Lab:
    """A machine at work."""

    machine: Machine
    lowers: Sequence[Path]
    packages: Path
    """A folder of Debian packages of this tree."""
    said: dict[str, str] = field(default_factory=dict)
    """What steps of the install page wrote, by heading."""

    def play(self, user: str, gpus: int, phases: Sequence[str], script: str = "") -> int:
        """Submit a job whose GPUs play phases, "SECONDS:PERCENT:MIB"; return its id once it runs."""
        words = " ".join(f"--phase {phase}" for phase in phases)
        load = f"GPUWASTE_SIM_DIR={site.SIM} gpuwaste-load --gpus $SLURM_JOB_GPUS {words}" if phases else ""
        options = f"--parsable --chdir=/tmp --gres=gpu:{gpus} {JOB_MEMORY} --output=/tmp/job-%j.out"
        said = self.machine.run(f"sbatch {options} <<'J'\n#!/bin/sh\n{script}\n{load}\nJ", user=user)
        job = int(said.split(";")[0])
        self.machine.wait(f"squeue -h -j {job} -o %T", 60, f"job {job} to run", wanted="RUNNING")
        return job

    def output(self, job: int) -> str:
        """Return what a job wrote."""
        return self.machine.run(f"cat /tmp/job-{job}.out")

    def ended(self, job: int, timeout_s: float) -> None:
        """Wait until a job has ended well. Raises GpuwasteError."""
        script = f"scontrol -o show job {job}"
        said = self.machine.wait(script, timeout_s, f"job {job} to end", wanted=("JobState=C", "JobState=F"))
        expect("JobState=COMPLETED" in said, f"job {job}: {re.search('JobState=[A-Z_]+', said)}")

    def confirmed(self, job: int, user: str, timeout_s: float = 150) -> str:
        """Wait until the ledger has a job with all that was measured; return what `gpuwaste job` says of it."""
        words = f"job {job} to be confirmed in the ledger"
        return self.machine.wait(f"gpuwaste job {job}", timeout_s, words, wanted="confirmed", user=user, poll_s=2)

    def doctor(self) -> list[str]:
        """Return the doctor's lines."""
        return self.machine.try_run("gpuwaste doctor").stdout.splitlines()

    def well(self, when: str, timeout_s: float = 0) -> None:
        """Expect a doctor without fail or warn, within a time. Raises CheckError with the lines that are not well."""
        deadline = time.monotonic() + timeout_s
        while bad := [line for line in self.doctor() if not line.startswith("ok ")]:
            if time.monotonic() > deadline:
                raise CheckError(f"the doctor {when}: {' | '.join(bad)}")
            time.sleep(1)

    def unit(self, name: str, key: str) -> str:
        """Return a property of a unit."""
        return self.machine.run(f"systemctl show --value --property={key} {name}").strip()

    def active(self, names: Sequence[str] = UNITS, timeout_s: float = 60) -> None:
        """Wait until units are active. Raises GpuwasteError."""
        wanted = "active\n" * len(names)
        script = f"systemctl is-active {' '.join(names)} || :"
        self.machine.wait(f"[ \"$({script})\" = \"{wanted.strip()}\" ] && echo all", timeout_s, f"{names} to be active")


def expect(holds: bool, otherwise: str) -> None:  # noqa: FBT001 what must hold
    """Raise CheckError unless something holds."""
    if not holds:
        raise CheckError(otherwise)
