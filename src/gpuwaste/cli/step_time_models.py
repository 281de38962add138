"""Models of step times: those of `gpuwaste model calibrate` and `model train --times`, and those in use here."""

import argparse
import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, ModelError, UsageError
from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.estimate.program import Program

if TYPE_CHECKING:
    from gpuwaste.core.bundle_registry import BundleRegistry
    from gpuwaste.estimate.program_memory import Overhead
    from gpuwaste.estimate.time_bundle import TimeBundle


def step_times(program: Program, gpus: Iterable[str], models_dir: Path, family: str) -> Mapping[str, StepTime]:
    """Return the time, or why there is none, by GPU type.

    A bundle that cannot be read, or numpy that is not installed, is such a reason: memory is estimated without them.
    """
    from gpuwaste.cli.programs import load_program

    wanted = list(gpus)
    try:
        answers = load_program("gpuwaste.estimate.best_time", "predict", "this host")
        bundles = load_program("gpuwaste.estimate.time_bundle", "predict", "this host")
        times = answers.BestTimes(program, bundles.times_in_use(models_dir), family)
        return {gpu: times.on(gpu) for gpu in wanted}
    except GpuwasteError as error:
        return {gpu: StepTime(gpu=gpu, refused=str(error)) for gpu in wanted}


def measured_overheads(models_dir: Path) -> "Mapping[str, Overhead]":
    """Return what processes need besides their arrays, by GPU type, as this site's calibrations have measured it."""
    from gpuwaste.cli.programs import load_program
    from gpuwaste.estimate.program_memory import measured_overhead

    try:
        bundles = load_program("gpuwaste.estimate.time_bundle", "predict", "this host")
        contexts = bundles.contexts_in_use(models_dir)
    except GpuwasteError:
        return {}
    return {gpu: measured_overhead(gpu, *of) for gpu, of in contexts.items()}


def show_times(registry: "BundleRegistry[Any, Any]", name: str | None, *, as_json: bool) -> int:
    """Print the card of a bundle, or of the shipped model: by its name, or where no bundle is in use."""
    from gpuwaste.cli.model_registry import bundle_named
    from gpuwaste.estimate.public.coefficients import shipped
    from gpuwaste.estimate.public.public_card import NAME, public_card, public_card_text
    from gpuwaste.show.machine_formats import to_json

    if name == NAME or (name is None and registry.champion() is None):
        card = public_card(shipped())
        sys.stdout.write(to_json(card.to_json()) if as_json else public_card_text(card))
        return 0
    return _show_bundle(bundle_named(registry, name), as_json=as_json)


def _show_bundle(bundle: "TimeBundle", *, as_json: bool) -> int:
    """Print the card of a bundle as text or JSON. Raises ModelError where it has none."""
    from gpuwaste.core.codec import convert
    from gpuwaste.core.errors import ParseError
    from gpuwaste.estimate.time_card import TimeCard, card_text
    from gpuwaste.show.machine_formats import to_json

    where = bundle.directory / "card.json"
    try:
        card = convert(json.loads(bundle.card), TimeCard, f"{where}: not a card")
    except (ValueError, RecursionError, ParseError) as error:
        raise ModelError(f"{where}: no card in this bundle: run gpuwaste model train --times again") from error
    sys.stdout.write(to_json(card.to_json()) if as_json else card_text(card))
    return 0


def calibrate_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Write a calibration's directory and submit its job, or print how. Raises GpuwasteError."""
    from gpuwaste.estimate.calibrate.calibration_folder import CalibrationJob, prepare
    from gpuwaste.estimate.calibrate.calibration_plan import programs
    from gpuwaste.estimate.calibrate.calibration_records import progress_of
    from gpuwaste.slurm.submit.sbatch_run import submit

    gpu = _type_name(options.gpu)
    folder: Path = options.output or Path(f"calibration-{gpu}")
    job = CalibrationJob(
        gres=options.gres or f"gpu:{options.gpu}:1",
        python=options.python,
        framework=options.framework,
        budget_minutes=options.minutes,
        memory_gib=options.memory_gib,
        partition=options.partition,
        account=options.accounts,
    )
    script = prepare(folder, gpu, job)
    done, whole = progress_of(folder), len(programs())
    told = f"{folder}: {done} of {whole} programs done\n"
    if options.no_submit:
        sys.stdout.write(f"{told}submit it with: {shlex.join(('sbatch', str(script)))}\n")
        return 0
    if done == whole:
        sys.stdout.write(
            f"{told}nothing to measure; train with: gpuwaste model train --times {shlex.quote(str(folder))}\n"
        )
        return 0
    number = submit((str(script),), config.common.slurm_timeout_s, config.common.slurm_conf)
    sys.stdout.write(
        f"{told}job {number} submitted; log: {folder}/job-{number}.log\n"
        f"when it has ended: gpuwaste model train --times {shlex.quote(str(folder))}\n"
    )
    return 0


def train_times_and_tell(options: argparse.Namespace, config: Config) -> int:
    """Train on calibrations and print the card's table, or its JSON. Raises GpuwasteError."""
    from gpuwaste.cli.train_evaluate import load_training
    from gpuwaste.core.clock import SystemClock
    from gpuwaste.core.owner import become_owner
    from gpuwaste.estimate.time_bundle import TimesRegistry

    load_training("gpuwaste.models.time_training", "train")
    from gpuwaste.estimate.time_card import figures_table
    from gpuwaste.models.time_training import train_times
    from gpuwaste.models.training_progress import TrainingProgress

    registry = TimesRegistry(options.models_dir or Path(config.common.models_dir))
    become_owner(registry.models_dir)
    trained = train_times(
        options.directories,
        registry,
        created_utc=SystemClock().utc_s(),
        name=options.name,
        seed=options.seed,
        promote=options.promote,
        progress=TrainingProgress(sys.stderr),
    )
    card = trained.card
    if options.json:
        sys.stdout.write(json.dumps(card.to_json(), indent=1) + "\n")
        return 0
    tables = [
        f"{each.gpu}: {each.basis}\n{figures_table(each) if each.figures else 'not judged'}\n" for each in card.types
    ]
    used = f"{card.name} is in use now"
    if not card.promoted:
        used = f"{card.name} is not in use: read the card, then gpuwaste model promote --times {card.name}"
    sys.stdout.write("\n".join([*tables, f"card: {trained.directory / 'card.md'}", used, ""]))
    return 0


def _type_name(given: str) -> str:
    """Return the table's name of a GPU type, or the one given where it can name a file."""
    import re

    from gpuwaste.estimate.time_bundle import GPU_NAME
    from gpuwaste.slurm.gpu_types import find, one_of, types_of

    device = find(given)
    if device is None and (types := types_of(given)):
        raise UsageError(f"--gpu: {given[:60]!r} is {one_of(types)}: give one of them")
    name = given.lower() if device is None else device.name
    if not re.match(GPU_NAME, name):
        raise UsageError(f"--gpu {given[:60]!r}: expected a GPU type: small letters, digits, ., _ and -")
    return name
