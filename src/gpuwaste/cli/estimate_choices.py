"""What `gpuwaste estimate FILE` does with --batch, --gpus or --goal: requests compared, one chosen, handed to plan."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from gpuwaste.cli.step_time_models import measured_overheads, step_times
from gpuwaste.cli.words import listed
from gpuwaste.core.errors import UsageError
from gpuwaste.estimate.choices import FITS_ON_ONE, ChoiceGoal, Work, choice, chosen
from gpuwaste.estimate.estimate_types import EstimateChoice, EstimateChoicesDocument, EstimatedProgram, StepTime
from gpuwaste.estimate.program import Program
from gpuwaste.estimate.program_memory import estimate_memory, with_overhead
from gpuwaste.estimate.several_gpus import Spread, several_gpus
from gpuwaste.slurm.gpu_links import SiteLinks
from gpuwaste.slurm.gpu_types import GpuType, MigSize, given_prices, one_of, types_asked
from gpuwaste.slurm.submit.program_tie import ProgramTie, comment_of

MAX_LISTED: Final = 16
MAX_CHOICES: Final = 2000
_MAX_NUMBER: Final = 1 << 31
Programs = Iterable[tuple[str, Program]]
"""The programs that are compared, each with the name of its file; without one where there is one file only."""
_DAY_MIN: Final = 24 * 60


def choices_document(
    programs: Programs,
    options: argparse.Namespace,
    wanted: list[GpuType],
    models_dir: Path,
    facts_of: Callable[[Program], EstimatedProgram],
    *,
    site: Mapping[str, float],
    links: SiteLinks,
) -> EstimateChoicesDocument:
    """Return the choices of one or several programs; `site` has its prices by type, `links` between its GPUs.

    Raises GpuwasteError.
    """
    compared = _Compared(options, wanted, models_dir, _prices(options.price, site), links)
    facts: dict[tuple[str, int | None], EstimatedProgram] = {}  # at most MAX_LISTED files with as many batch sizes
    for file, program in programs:
        if compared.add(file, program):
            facts[file, program.batch] = facts_of(program)
    compared.check()
    rows = compared.sorted_rows()
    goal: ChoiceGoal = options.goal or "cheapest"
    place, said = chosen(rows, goal, compared.prices)
    asked = {name: types_asked(name) for name in listed(options.gpu)}
    best, handed = (None, {}) if place is None else _named(asked, rows[place], rows)
    program_facts = next(iter(facts.values())) if best is None else facts[best.file, best.batch]
    gres = "" if best is None else _gres_of(best, handed)
    return EstimateChoicesDocument(
        program=program_facts,
        goal=goal,
        memory_basis="; ".join(compared.bases),
        choices=[replace(row, chosen=row is best) for row in rows],
        script=[] if best is None else _script_lines(best, gres, program_facts.fingerprint),
        plan="" if best is None else _plan_command(best, gres, goal),
        notes=[
            *of_several(asked),
            *said,
            *_notes(rows, best, compared.work, priced=goal == "cheapest" and bool(site)),
            *compared.notes,
        ],
    )


@dataclass(slots=True)
class _Compared:
    """The rows so far, of the requests that the options name, and the content of the programs' files."""

    options: argparse.Namespace
    wanted: list[GpuType]
    models_dir: Path
    prices: Mapping[str, float]
    links: SiteLinks
    rows: list[EstimateChoice] = field(default_factory=list)
    known: list[tuple[str, int | None]] = field(default_factory=list)
    bases: dict[str, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    gpus: list[int] = field(init=False)
    batches: list[int] = field(init=False)
    work: Work = field(init=False)

    def __post_init__(self) -> None:
        self.gpus = numbers(self.options.gpus or "1", "--gpus")
        self.batches = numbers(self.options.batch, "--batch")
        self.work = Work(self.options.steps, self.options.samples)
        self._bounded((len(self.batches) or 1) * len(self.gpus) * len(self.wanted))

    def add(self, file: str, program: Program) -> bool:
        """Add a program's rows; False where its batch size was not requested. Raises UsageError for too many rows."""
        self.known.append((file, program.batch))
        if self.batches and program.batch not in self.batches:
            return False
        memory, measured = estimate_memory(program), measured_overheads(self.models_dir)
        times = step_times(program, [each.name for each in self.wanted], self.models_dir, self.options.family)
        self.notes += [note for note in program.notes if note not in self.notes]
        for each in self.wanted:
            on = with_overhead(memory, measured[each.name]) if each.name in measured else memory
            self.bases |= dict.fromkeys(on.basis.split("; "))
            sizes: list[tuple[int, MigSize | None]] = [(number, None) for number in self.gpus]
            sizes += [(1, size) for size in each.mig] if self.options.mig else []
            self.rows += [
                choice(
                    on,
                    each,
                    self._time(program, times[each.name], number),
                    gpus=number,
                    pipeline=self.options.pipeline is not None,
                    mig=size,
                    file=file,
                    batch=program.batch,
                    work=self.work,
                    price=self.prices.get(each.name),
                )
                for number, size in sizes
            ]
        self._bounded(len(self.rows))
        return True

    def _time(self, program: Program, one: StepTime, gpus: int) -> StepTime:
        """Return a step on GPUs of one node: the printed request is one of GPUs per node."""
        return several_gpus(one, program, Spread(gpus), self.links, micro_batches=self.options.pipeline)

    def sorted_rows(self) -> list[EstimateChoice]:
        """Return the rows by type in the requested order, full GPUs before parts."""
        order = {each.name: place for place, each in enumerate(self.wanted)}
        return sorted(
            self.rows,
            key=lambda row: (order[row.gpu], bool(row.mig), row.capacity_b, row.mig, row.gpus, row.batch or 0),
        )

    def check(self) -> None:
        """Raise UsageError where no file has a requested batch size, or runs cannot be compared."""
        there = [batch for _, batch in self.known if batch is not None]
        unnamed = [file for file, batch in self.known if batch is None]
        missing = [batch for batch in self.batches if batch not in there]
        if missing:
            asked = ",".join(str(batch) for batch in sorted({*there, *missing}))
            has = ", ".join(map(str, sorted(set(there)))) or "one that it does not name"
            raise UsageError(
                f"batch {', '.join(map(str, missing))}: not in the file (batch size: {has}): "
                f"run the probe with --batch {asked}"
            )
        self._check_work(there, unnamed)

    def _check_work(self, there: list[int], unnamed: list[str]) -> None:
        samples, steps = self.work.samples is not None, self.work.steps is not None
        if samples and unnamed:
            raise UsageError(
                f"--samples: {unnamed[0] or 'the file'} does not name its batch size: run the probe with --batch, or "
                "give --steps"
            )
        if unnamed and there and self.options.goal != "smallest":
            raise UsageError(
                f"{unnamed[0]}: does not name its batch size, other files do: run the probe with --batch for each, or "
                "use --goal smallest"
            )
        if steps and len(set(self.batches or there)) > 1:
            raise UsageError("--steps: the same steps at several batch sizes are different work: give --samples")
        if len(unnamed) > 1:
            self.notes.append("the files do not name their batch size: steps are compared as if they were equal work")

    def _bounded(self, rows: int) -> None:
        if rows > MAX_CHOICES:
            raise UsageError(f"estimate: more than {MAX_CHOICES} choices: name fewer types, GPUs, files or batch sizes")


def numbers(text: str | None, option: str) -> list[int]:
    """Return the numbers of an option, separated by commas. Raises UsageError."""
    words = listed(text)
    if text is not None and not words:
        raise UsageError(f"{option}: expected numbers separated by commas")
    if len(words) > MAX_LISTED:
        raise UsageError(f"{option}: {len(words)} numbers: at most {MAX_LISTED}")
    for word in words:
        if not (
            word.isdecimal() and word.isascii() and len(word) <= len(str(_MAX_NUMBER)) and 0 < int(word) < _MAX_NUMBER
        ):
            raise UsageError(f"{option}: {word[:20]!r}: expected a number from 1")
    return list(dict.fromkeys(int(word) for word in words))


def _prices(text: str | None, site: Mapping[str, float]) -> Mapping[str, float]:
    """Return the prices by type: an option's before the site's. Raises UsageError."""
    return {**site, **given_prices(listed(text))}


def of_several(asked: Mapping[str, Sequence[GpuType]]) -> list[str]:
    """Return which names given by a user may be of several types."""
    return [f"--gpu {name} is {one_of(types)}: all are listed" for name, types in asked.items() if len(types) > 1]


def _named(
    asked: Mapping[str, Sequence[GpuType]], best: EstimateChoice, rows: Sequence[EstimateChoice]
) -> tuple[EstimateChoice, dict[str, str]]:
    """Return the row to pass to plan, and by its type the user's own name, which is most likely the site's.

    A name that may be of several types is passed only where the request fits on each of them, with the times of
    the slowest: Slurm may give any.
    """
    for name, types in asked.items():
        same = [row for each in types for row in rows if row.gpu == each.name and _request(row) == _request(best)]
        if best not in same or len(same) < len(types) or any(row.fits != best.fits for row in same):
            continue
        slowest = max(same, key=lambda row: (row.run_high_s or row.step_high_s or 0.0, row is best))
        return slowest, {slowest.gpu: name.replace(" ", "_")}
    return best, {}


def _request(row: EstimateChoice) -> tuple[str, int | None, int, str]:
    return row.file, row.batch, row.gpus, row.mig


def _notes(rows: list[EstimateChoice], best: EstimateChoice | None, work: Work, *, priced: bool) -> list[str]:
    notes = ["prices: --price, else [estimate] prices of this host's configuration"] if priced else []
    if any(row.gpus > 1 for row in rows):
        notes += _notes_of_several(rows, best)
    if best is not None and best.run_s is not None:
        notes.append(
            "--time is the upper end of the interval: add the time for loading data, compiling and checkpoints"
        )
    if best is not None and best.mig:
        notes.append("write the MIG instance as the site's gres names it (scontrol show node)")
    elif best is not None:
        notes.append("write the GPU type as the site's gres names it (scontrol show node)")
    if best is not None and best.step_s is not None and len({row.batch for row in rows}) > 1 and work.samples is None:
        notes.append("batch sizes are compared by time per sample; --samples N gives the run")
    return notes


def _notes_of_several(rows: list[EstimateChoice], best: EstimateChoice | None) -> list[str]:
    notes = []
    if any(row.copies > 1 for row in rows):
        notes.append(
            "several GPUs: each computes the file's batch, so a step handles a batch per GPU, and --steps N on one GPU "
            "are N / GPUs steps; torch's DistributedDataParallel needs memory for the gradients twice"
        )
    if any(row.fits not in {"fits", FITS_ON_ONE} for row in rows if row.gpus > 1):
        notes.append("several GPUs: sharding evenly is the best case")
    if best is not None and best.gpus > 1 and best.step_s is not None:
        notes.append("the time on several GPUs is not measured: your own runs on so many GPUs replace it")
    return notes


def _script_lines(best: EstimateChoice, gres: str, fingerprint: str) -> list[str]:
    """Return the #SBATCH lines of a request; the comment ties its runs to the program."""
    lines = [f"--gres={gres}", comment_of(ProgramTie(fingerprint, best.steps))]
    limit = _limit(best)
    return [f"#SBATCH {line}" for line in (lines if limit is None else [lines[0], f"--time={limit}", lines[1]])]


def _plan_command(best: EstimateChoice, gres: str, goal: ChoiceGoal) -> str:
    """Return the command that plans a script with the request."""
    limit = _limit(best)
    words = ["gpuwaste plan", "" if goal == "smallest" else f"--goal {goal}", "--", f"--gres={gres}"]
    words += [] if limit is None else [f"--time={limit}"]
    return " ".join(word for word in [*words, "job.sbatch"] if word)


def _gres_of(best: EstimateChoice, named: Mapping[str, str]) -> str:
    """Return the gres of a request, with the type's name of `named` where it is there."""
    kind = named.get(best.gpu, best.gpu)
    return f"gpu:{f'{kind}_{best.mig}' if best.mig else kind}:{best.gpus}"


def _limit(best: EstimateChoice) -> str | None:
    """Return the upper end of the run's interval as Slurm's days-hours:minutes, in whole minutes."""
    seconds = best.run_high_s if best.run_high_s is not None else best.run_s
    if seconds is None:
        return None
    minutes = max(1, ceil(seconds / 60))
    return f"{minutes // _DAY_MIN}-{minutes % _DAY_MIN // 60:02}:{minutes % 60:02}"
