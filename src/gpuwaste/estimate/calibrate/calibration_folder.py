"""The directory of a calibration: the plan, the scripts that measure it, the job, and the records that it writes."""

import json
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from gpuwaste.core.codec import convert
from gpuwaste.core.errors import GpuwasteError, ParseError, UsageError
from gpuwaste.core.files import open_plain, write_whole
from gpuwaste.estimate.calibrate.calibration_plan import CalibrationProgram, programs
from gpuwaste.estimate.probes import probe_text
from gpuwaste.estimate.time_bundle import GPU_NAME

FACTS: Final = "calibration.json"
RECORDS: Final = "records.jsonl"
PLAN: Final = "plan.jsonl"
JOB: Final = "job.sh"
SITE: Final = "gpuwaste.estimate.calibrate.site"
_MAX_FACTS_B: Final = 1 << 16
_GRACE_MINUTES: Final = 15  # of the job's limit beyond the budget: for the program measured when it ends
_WARNED_S: Final = 90
_WORD: Final = re.compile(r"[A-Za-z0-9_.:/,+@-]{1,200}", re.ASCII)


class CalibrationFacts(Struct, kw_only=True, frozen=True):
    """calibration.json."""

    gpu: Annotated[str, Meta(pattern=GPU_NAME)]
    created_utc: int
    schema: int = 1


@dataclass(frozen=True, slots=True)
class CalibrationJob:
    """The job's request and the parameters of its script."""

    gres: str  # the type as in Slurm's gres
    python: str  # of the site's environment, with jax or torch
    framework: str = "auto"
    budget_minutes: int = 60
    memory_gib: float = 0.0
    partition: str = ""
    account: str = ""


def prepare(folder: Path, gpu: str, job: CalibrationJob, plan: Sequence[CalibrationProgram] | None = None) -> Path:
    """Write plan, scripts and job into a new directory or that of an earlier run, and return the job's path.

    Existing records stay: the job continues after them. Raises UsageError, GpuwasteError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / FACTS).exists():
            known = read_facts(folder).gpu
            if known != gpu:
                raise UsageError(f"{folder}: contains a calibration of {known}: give another directory with --output")
        else:
            facts = CalibrationFacts(gpu=gpu, created_utc=int(time.time()))
            write_whole(folder / FACTS, msgspec.json.encode(facts))
        for file in resources.files(SITE).iterdir():
            if file.name.endswith(".py") and file.name != "__init__.py":
                write_whole(folder / file.name, file.read_bytes())
        write_whole(folder / "torch_probe.py", probe_text("torch").encode())
        lines = b"".join(msgspec.json.encode(each) + b"\n" for each in plan or programs())
        write_whole(folder / PLAN, lines)
        write_whole(folder / JOB, job_script(folder, gpu, job).encode(), mode=0o755)
    except OSError as error:
        raise GpuwasteError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    return folder / JOB


def job_script(folder: Path, gpu: str, job: CalibrationJob) -> str:
    """Return the batch script: one GPU of the type, the site's Python, a signal before the limit."""
    for what, word in (("--gres", job.gres), ("--partition", job.partition), ("--account", job.account)):
        if word and not _WORD.fullmatch(word):
            raise UsageError(f"{what} {word[:60]!r}: expected letters, digits and _.:/,+@-")
    options = [
        f"--job-name=gpuwaste-calibrate-{gpu}",
        f"--gres={job.gres}",
        f"--time={job.budget_minutes + _GRACE_MINUTES}",
        f"--signal=B:USR1@{_WARNED_S}",
        "--requeue",
        "--open-mode=append",
        f"--output={folder.resolve()}/job-%j.log",
        *([f"--partition={job.partition}"] if job.partition else []),
        *([f"--account={job.account}"] if job.account else []),
    ]
    place = str(folder.resolve())
    if any(character in place for character in '\n\r\\%"'):
        raise UsageError(
            f"{place!r}: a quote, percent sign, backslash or line break in it: give another directory with --output"
        )
    argv = [
        job.python, f"{place}/run.py", "--dir", place, "--framework", job.framework,
        "--budget-s", str(job.budget_minutes * 60), "--memory-gib", f"{job.memory_gib:g}",
    ]  # fmt: skip
    lines = ["#!/bin/sh", *(f'#SBATCH "{option}"' if " " in option else f"#SBATCH {option}" for option in options)]
    return "\n".join([*lines, f"exec {shlex.join(argv)}", ""])


def read_facts(folder: Path) -> CalibrationFacts:
    """Return the facts of a calibration's directory. Raises GpuwasteError."""
    path = folder / FACTS
    try:
        with open_plain(path) as file:
            data = json.loads(file.read(_MAX_FACTS_B))
    except (OSError, ValueError, RecursionError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise ParseError(f"{path}: cannot be read: {words}: give the directory of gpuwaste model calibrate") from error
    return convert(data, CalibrationFacts, f"{path}: not written by gpuwaste model calibrate")
