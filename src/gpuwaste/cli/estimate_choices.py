"""What `gpuwaste estimate FILE` does with --batch, --gpus or --goal: requests compared, one chosen, handed to plan."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from math import ceil, isfinite
from pathlib import Path
from typing import Final

from msgspec.structs import asdict

from gpuwaste.cli.estimate_times import step_times
from gpuwaste.cli.words import listed
from gpuwaste.core.errors import UsageError
from gpuwaste.core.program_tie import ProgramTie, comment_of
from gpuwaste.documents.estimate_types import EstimateChoice, EstimateChoicesDocument, EstimatedProgram
from gpuwaste.estimate.choices import Choice, Goal, Work, choice, chosen
from gpuwaste.estimate.devices import Device, device
from gpuwaste.estimate.memory import estimate_memory
from gpuwaste.estimate.program import Program

MAX_LISTED: Final = 16
MAX_CHOICES: Final = 2000
_MAX_NUMBER: Final = 1 << 31
_DAY_MIN: Final = 24 * 60


def choices_document(
    programs: Iterator[Program],
    options: argparse.Namespace,
    wanted: list[Device],
    models_dir: Path,
    facts_of: Callable[[Program], EstimatedProgram],
) -> EstimateChoicesDocument:
    """Return the choices of a program, read at one or several batch sizes. Raises GpuwasteError."""
    named = _named(options.gpu)
    gpus, batches = numbers(options.gpus or "1", "--gpus"), numbers(options.batch, "--batch")
    prices, work = _prices(options.price), Work(options.steps, options.samples)
    if (len(batches) or 1) * len(gpus) * len(wanted) > MAX_CHOICES:
        raise UsageError(f"estimate: more than {MAX_CHOICES} choices: name fewer types, GPUs or batch sizes")
    rows: list[Choice] = []
    facts: dict[str, EstimatedProgram] = {}  # by batch size as text; the file has at most 16
    basis = ""
    order = {each.name: place for place, each in enumerate(wanted)}
    known: list[int | None] = []
    notes: list[str] = []
    for program in programs:
        known.append(program.batch)
        if batches and program.batch not in batches:
            continue
        memory = estimate_memory(program)
        times = step_times(program, [each.name for each in wanted], models_dir, options.family)
        facts[str(program.batch)], basis = facts_of(program), memory.basis
        notes += [note for note in program.notes if note not in notes]
        rows += [
            choice(
                memory,
                each,
                times[each.name],
                gpus=number,
                batch=program.batch,
                work=work,
                price=prices.get(each.name),
            )
            for each in wanted
            for number in gpus
        ]
    _check(batches, known, work)
    rows.sort(key=lambda row: (order[row.gpu], row.gpus, row.batch or 0))
    goal: Goal = options.goal or "cheapest"
    place, said = chosen(rows, goal, prices)
    best = None if place is None else rows[place]
    program_facts = next(iter(facts.values())) if best is None else facts[str(best.batch)]
    return EstimateChoicesDocument(
        program=program_facts,
        goal=goal,
        memory_basis=basis,
        choices=[EstimateChoice(**asdict(row), chosen=row is best) for row in rows],
        script=[] if best is None else _script(best, _gres(best, named), program_facts.fingerprint),
        plan="" if best is None else _plan(best, _gres(best, named), goal),
        notes=[*said, *_notes(rows, best, work), *notes],
    )


def numbers(text: str | None, option: str) -> list[int]:
    """Return the numbers of an option that separates them by commas. Raises UsageError."""
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


def _prices(text: str | None) -> dict[str, float]:
    """Return the price of a GPU-hour by type. Raises UsageError."""
    found = {}
    for word in listed(text):
        name, _, value = word.partition("=")
        try:
            price = float(value)
        except ValueError:
            price = -1.0
        if not (isfinite(price) and price >= 0):
            raise UsageError(f"--price: {word[:40]!r}: expected TYPE=NUMBER, the price of a GPU-hour")
        found[device(name).name] = price
    return found


def _check(batches: list[int], known: list[int | None], work: Work) -> None:
    """Raise UsageError where the file does not hold the batch sizes asked for, or runs cannot be compared."""
    there = [batch for batch in known if batch is not None]
    missing = [batch for batch in batches if batch not in there]
    if missing:
        asked = ",".join(str(batch) for batch in sorted({*there, *missing}))
        has = ", ".join(map(str, there)) or "one that it does not name"
        raise UsageError(
            f"batch {', '.join(map(str, missing))}: not in the file (batch size: {has}), and a program is not "
            f"scaled by guessing: run the probe with --batch {asked}"
        )
    if work.samples is not None and not there:
        raise UsageError(
            "--samples: the file does not name its batch size: run the probe with --batch, or give --steps"
        )
    if work.steps is not None and len(batches or there) > 1:
        raise UsageError("--steps: the same steps at several batch sizes are different work: give --samples")


def _script(best: Choice, gres: str, fingerprint: str) -> list[str]:
    lines = [f"--gres={gres}", comment_of(ProgramTie(fingerprint, best.steps))]
    limit = _limit(best)
    return [f"#SBATCH {line}" for line in (lines if limit is None else [lines[0], f"--time={limit}", lines[1]])]


def _plan(best: Choice, gres: str, goal: Goal) -> str:
    limit = _limit(best)
    words = ["gpuwaste plan", "" if goal == "smallest" else f"--goal {goal}", "--", f"--gres={gres}"]
    words += [] if limit is None else [f"--time={limit}"]
    return " ".join(word for word in [*words, "job.sbatch"] if word)


def _named(text: str | None) -> dict[str, str]:
    """Return the user's own names of the GPU types asked for: those are most likely the site's."""
    return {device(name).name: name.replace(" ", "_") for name in listed(text)}


def _gres(best: Choice, named: Mapping[str, str]) -> str:
    return f"gpu:{named.get(best.gpu, best.gpu)}:{best.gpus}"


def _limit(best: Choice) -> str | None:
    """Return the upper end of the run's interval as Slurm's days-hours:minutes, in whole minutes."""
    seconds = best.run_high_s if best.run_high_s is not None else best.run_s
    if seconds is None:
        return None
    minutes = max(1, ceil(seconds / 60))
    return f"{minutes // _DAY_MIN}-{minutes % _DAY_MIN // 60:02}:{minutes % 60:02}"


def _notes(rows: list[Choice], best: Choice | None, work: Work) -> list[str]:
    notes = []
    if any(row.gpus > 1 for row in rows):
        notes.append("several GPUs: speed-up is not assumed, and sharding evenly is the best case")
    if best is not None and best.run_s is not None:
        notes.append("--time is the upper end of the interval: add what loading data, compiling and checkpoints take")
    if best is not None:
        notes.append("write the GPU type as the site's gres names it (scontrol show node)")
    if best is not None and best.step_s is not None and len({row.batch for row in rows}) > 1 and work.samples is None:
        notes.append("batch sizes are compared by time per sample; --samples N gives the run")
    return notes
