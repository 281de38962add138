"""A plan as a file: write it, check that nothing has changed since, and submit one of its candidates with sbatch.

A cascade is several jobs, each of which starts after the previous one.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, to_builtins

from gpuwaste.core.codec import convert
from gpuwaste.core.errors import GpuwasteError, ParseError, SlurmError, StoreError, UsageError
from gpuwaste.core.files import open_plain, write_whole
from gpuwaste.plan.plan_document import PlanCandidate, PlanDocument, SubmittedPlan
from gpuwaste.plan.plan_request import PlannedSubmission
from gpuwaste.slurm.submit.sbatch import MAX_SCRIPT_B
from gpuwaste.slurm.submit.sbatch_components import read_argv
from gpuwaste.slurm.submit.sbatch_options import OPTIONS

VERSION: Final = 1
MAX_PLAN_B: Final = 1 << 20
_Word = Annotated[str, Meta(max_length=4096)]
_MODE: Final = 0o600  # arguments of a script may be private
VARIABLES: Final = tuple(sorted(option.variable for option in OPTIONS if option.variable))
Sbatch = Callable[[Sequence[str]], int]
"""Submits `sbatch ARGUMENTS` and returns the job's id. Raises SlurmError."""


class PlanFile(Struct, kw_only=True, frozen=True):
    """A plan and the submission that it was made for; arguments, folder and SBATCH_ variables are those of its user."""

    gpuwaste_plan: Annotated[int, Meta(ge=1, le=VERSION)]
    words: Annotated[list[_Word], Meta(max_length=1024)]
    folder: _Word
    environ: Annotated[dict[_Word, _Word], Meta(max_length=64)]
    script_hash: Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{16})?\Z")]
    plan: PlanDocument
    submitted: Annotated[list[Annotated[int, Meta(ge=1, le=1 << 32)]], Meta(max_length=64)] = []
    submitted_number: int | None = None


class _Head(Struct):
    """The first fields of every version."""

    gpuwaste_plan: int
    document: Literal["plan"] = "plan"


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the SBATCH_ variables that sbatch reads as options."""
    return {name: environ[name] for name in VARIABLES if name in environ}


def plan_file(submission: PlannedSubmission, folder: str, plan: PlanDocument) -> PlanFile:
    """Return the file's content for a plan."""
    return PlanFile(
        gpuwaste_plan=VERSION,
        words=list(submission.words),
        folder=folder,
        environ=variables(submission.environ),
        script_hash=submission.hash,
        plan=plan,
    )


def write_plan(path: Path, plan: PlanFile) -> None:
    """Write the plan as JSON that only its owner can read. Raises StoreError."""
    try:
        write_whole(path, json.dumps(to_builtins(plan), indent=1).encode() + b"\n", mode=_MODE)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error


def read_plan(path: Path) -> PlanFile:
    """Read and check a plan file of at most MAX_PLAN_B bytes. Raises UsageError and ParseError: one line."""
    try:
        with open_plain(path) as stream:
            owner = os.fstat(stream.fileno()).st_uid
            data = stream.read(MAX_PLAN_B + 1)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read: {error.strerror}: give a file that gpuwaste plan -o wrote"
        ) from error
    if owner != os.getuid():
        raise UsageError(f"{path}: belongs to uid {owner}: plan again yourself")
    if len(data) > MAX_PLAN_B:
        raise ParseError(f"{path}: more than {MAX_PLAN_B} bytes: not a plan file of gpuwaste plan -o")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise ParseError(f"{path}: not JSON: give a file that gpuwaste plan -o wrote") from None
    head = convert(found, _Head, f"{path}: not a plan file")
    if head.gpuwaste_plan > VERSION:
        raise ParseError(f"{path}: plan version {head.gpuwaste_plan}, this gpuwaste reads up to {VERSION}: plan again")
    plan = convert(found, PlanFile, str(path))
    numbers = [one.number for one in plan.plan.candidates]
    if len(set(numbers)) != len(numbers):
        raise ParseError(f"{path}: two candidates have the same number: plan again")
    return plan


def candidate_of(path: Path, plan: PlanFile, take: int | None) -> PlanCandidate:
    """Return the candidate to submit: number `take`, else the chosen one. Raises UsageError where there is none."""
    number = plan.plan.chosen if take is None else take
    if plan.submitted:
        raise UsageError(f"{path}: already submitted as job {plan.submitted[0]}: plan again to submit another")
    if number is None:
        raise UsageError(f"{path}: no candidate is valid: change the request and plan again")
    found = next((one for one in plan.plan.candidates if one.number == number), None)
    if found is None:
        raise UsageError(f"{path}: no candidate {number}: candidates are 1 to {len(plan.plan.candidates)}")
    if found.status in {"invalid", "advice"}:
        why = found.reasons[0] if found.reasons else "advice, not a request"
        raise UsageError(f"candidate {number} ({found.title}) cannot be submitted: {why}")
    return found


def unchanged(path: Path, plan: PlanFile, user: str, at: int) -> PlannedSubmission:
    """Return the submission of a plan if it has not changed since.

    Raises UsageError where the user, the folder, the script, an SBATCH_ variable or the options differ.
    """
    if plan.plan.user != user:
        raise UsageError(f"{path}: a plan of user {plan.plan.user[:40]!r}: plan again as {user}")
    if Path.cwd() != Path(plan.folder):
        raise UsageError(f"{path}: planned in {plan.folder}: submit it there, or plan again")
    now = variables(os.environ)
    if odd := sorted(name for name in {*now, *plan.environ} if now.get(name) != plan.environ.get(name)):
        raise UsageError(f"{path}: {odd[0]} has changed since the plan was made: plan again")
    line = read_argv(plan.words)
    file = line.rest[0] if line.rest else ""
    submission = PlannedSubmission(tuple(plan.words), read_script(file) if file else b"", now, user, at)
    if submission.hash != plan.script_hash:
        raise UsageError(f"{path}: {file} has changed since the plan was made: plan again")
    _checked_options(path, plan)
    return submission


def read_script(file: str) -> bytes:
    """Return the bytes of a batch script. Raises UsageError."""
    try:
        with open_plain(Path(file)) as stream:
            return stream.read(MAX_SCRIPT_B + 1)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}: give a batch script") from error
    except ValueError:
        raise UsageError(f"{file[:80]!r}: not a file name: give a batch script") from None


def _checked_options(path: Path, plan: PlanFile) -> None:
    """Reject anything but options: another argument would become the script. Raises UsageError."""
    for one in plan.plan.candidates:
        try:
            rest = read_argv(one.options).rest
        except GpuwasteError as error:
            raise UsageError(f"{path}: candidate {one.number}: {error}") from error
        if rest or any(not word.startswith("-") or word in {"-", "--"} for word in one.options):
            raise UsageError(f"{path}: candidate {one.number}: {one.options!r} are not options of sbatch: plan again")


def submit_candidate(submission: PlannedSubmission, one: PlanCandidate, sbatch: Sbatch) -> list[int]:
    """Submit and return the ids, in order. Raises SlurmError, which names the jobs submitted before it."""
    ids: list[int] = []
    for number in range(1, one.jobs + 1):
        after = (f"--dependency=afterany:{ids[-1]}",) if ids else ()
        try:
            ids.append(sbatch(submission.with_options((*one.options, *after))))
        except GpuwasteError as error:
            if not ids:
                raise
            done = ",".join(map(str, ids))
            raise SlurmError(
                f"job {number} of {one.jobs}: {error}; already submitted: {done} (scancel {done} cancels them)"
            ) from error
    return ids


def to_record(plan_name: str, one: PlanCandidate, jobs: Sequence[int]) -> SubmittedPlan:
    """Return the record for the hub of a candidate that was submitted as these jobs."""
    return SubmittedPlan(
        jobs=list(jobs),
        candidate=one.number,
        title=one.title,
        name=plan_name,
        partition=one.partition,
        qos=one.qos,
        gpus=one.gpus,
        time_limit_s=one.time_limit_s,
        start=one.start,
        end=one.end,
    )
