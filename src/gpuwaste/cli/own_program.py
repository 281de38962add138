"""The program that a submission is tied to, as `gpuwaste predict` and `gpuwaste plan` know it on this host.

The tie is in the comment, or in a line of the script that names the program's file. The file is read as
`gpuwaste estimate` reads it, never run. What cannot be read becomes a note: predictions and plans are made without it.
The package of estimates is loaded only for a job with a tie: a host may not have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import structs

from gpuwaste.advice.predict.prediction_types import PredictDocument
from gpuwaste.cli.asking import PredictQuery
from gpuwaste.cli.hub_access import hub_client
from gpuwaste.cli.programs import load_program
from gpuwaste.core.codec import convert
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, UsageError
from gpuwaste.jobs.program_estimate import ProgramEstimate, ProgramRun, ProgramRunsAnswer
from gpuwaste.plan.outlook import WALLTIME, history_of, with_run_time
from gpuwaste.slurm.gpu_links import SiteLinks, site_links
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.program_tie import ProgramTie, comment_of, script_program, tie_of

if TYPE_CHECKING:
    from gpuwaste.estimate.estimate_types import StepTime
    from gpuwaste.estimate.hybrid import EstimatedJob, EstimatedRunTime
    from gpuwaste.estimate.program import Program
    from gpuwaste.estimate.program_memory import MemoryEstimate

_EXTRA: Final = "estimate"
_HOST: Final = "this host"


@dataclass(slots=True)
class OwnProgram:
    """A program that a job is tied to: own runs of it, and the file where it exists here."""

    tie: ProgramTie
    models_dir: Path
    runs: Sequence[ProgramRun] = ()
    program: "Program | None" = None
    memory: "MemoryEstimate | None" = None
    notes: list[str] = field(default_factory=list)
    links: SiteLinks = field(default_factory=SiteLinks)
    _times: "dict[str, StepTime]" = field(default_factory=dict)

    def estimate(self, request: JobRequest, history: "EstimatedRunTime | None", gpu_type: str = "") -> ProgramEstimate:
        """Return what is expected of a request; `gpu_type` is the type that it gets where it names none."""
        from gpuwaste.estimate.hybrid import EstimatedJob
        from gpuwaste.estimate.program_answer import program_estimate

        job = EstimatedJob(request.gpu_type or gpu_type, request.gpus, self.tie.steps, request.name, request.nodes or 1)
        times = self._time if self.program is not None else None
        memory = None if self.memory is None else self._memory_on(job.gpu_type, self.memory)
        return program_estimate(self.tie, job, self.runs, memory=memory, times=times, history=history)

    def _memory_on(self, gpu_type: str, memory: "MemoryEstimate") -> "MemoryEstimate":
        """Return the need with the context that own runs used on such a GPU, else with that of its calibration."""
        from gpuwaste.cli.step_time_models import measured_overheads
        from gpuwaste.estimate.hybrid import same_gpu
        from gpuwaste.estimate.process_overhead import overhead_on, uses_of
        from gpuwaste.estimate.program_memory import with_overhead

        found = overhead_on(gpu_type, uses_of(self.runs, memory))
        if found is None:
            calibrated = measured_overheads(self.models_dir)
            found = next((calibrated[name] for name in calibrated if same_gpu(name, gpu_type)), None)
        return memory if found is None else with_overhead(memory, found)

    def _time(self, job: "EstimatedJob") -> "StepTime":
        from gpuwaste.cli.step_time_models import step_times
        from gpuwaste.estimate.several_gpus import Spread, several_gpus

        assert self.program is not None  # noqa: S101 narrows the type: it is called only with a program
        if job.gpu_type not in self._times:
            self._times |= step_times(self.program, [job.gpu_type], self.models_dir, "")
        return several_gpus(self._times[job.gpu_type], self.program, Spread(job.gpus, job.nodes), self.links)


def own_program(config: Config, script: str, comment: str, folder: Path | None) -> tuple[OwnProgram | None, list[str]]:
    """Return the program of a submission, None where nothing ties it to one, and notes for its user.

    `folder` is the script's; None where the script is a text without one: then no file that it names is read.
    """
    notes: list[str] = []
    tie = tie_of(comment)
    program = None
    try:
        program, tie = _from_script(script, folder, tie, notes)
    except GpuwasteError as error:
        notes.append(f"cannot read the program: {error}")
    if tie is None:
        return None, notes
    try:
        memory = load_program("gpuwaste.estimate.program_memory", _EXTRA, _HOST)
    except GpuwasteError as error:
        return None, notes or [f"the program is not known: {error}"]
    own = OwnProgram(tie, Path(config.common.models_dir), program=program, notes=notes)
    own.memory = None if program is None else memory.estimate_memory(program)
    try:
        own.links = site_links(config.estimate.links)
    except GpuwasteError as error:
        notes.append(str(error))
    try:
        own.runs = convert(hub_client(config).program_runs(tie.program), ProgramRunsAnswer, "the hub's runs").runs
    except GpuwasteError as error:
        notes.append(f"your earlier runs of the program are unknown: {error}")
    return own, notes


def _from_script(
    script: str, folder: Path | None, tie: ProgramTie | None, notes: list[str]
) -> "tuple[Program | None, ProgramTie | None]":
    """Return the program that the script names, and the tie with its steps. Raises GpuwasteError."""
    said = script_program(script)
    if said is None:
        return None, tie
    if folder is None:
        raise UsageError(f"{said.file[:80]!r} is relative to a script without a folder: give the script as a file")
    reading = load_program("gpuwaste.estimate.reading", _EXTRA, _HOST)
    program: Program = reading.read_program(folder / said.file)
    steps = said.steps if said.steps is not None or tie is None else tie.steps
    found = ProgramTie(program.fingerprint, steps)
    if tie is None:
        notes.append(f"this run will not count for later ones: add #SBATCH {comment_of(found)}")
    elif tie != found:
        notes.append(f"the comment names another program or other steps than the script: write {comment_of(found)}")
    return program, found


def refusals(estimates: Sequence[ProgramEstimate | None]) -> list[str]:
    """Return the reasons why no run time is known, each once for several estimates."""
    return list(dict.fromkeys(f"no run time of the program: {one.refused}" for one in estimates if one and one.refused))


def with_programs(
    config: Config, asked: PredictQuery, predictions: Sequence[PredictDocument]
) -> tuple[list[PredictDocument], list[str]]:
    """Return the predictions with the estimates of their program, and notes. Only the first request is used.

    The components of a het job are different programs, and one comment cannot specify which of them it means.
    """
    found = list(predictions)
    if len(asked.requests) != 1 or len(found) != 1:
        return found, []
    (request,) = asked.requests
    own, notes = own_program(config, request.script or "", request.comment, asked.folder)
    if own is None:
        return found, notes
    history = next((one for one in found[0].targets if one.target == WALLTIME), None)
    estimate = own.estimate(request, history_of(history))
    targets = list(with_run_time(tuple(found[0].targets), estimate))
    return [structs.replace(found[0], targets=targets, program=estimate)], [*notes, *refusals([estimate])]
