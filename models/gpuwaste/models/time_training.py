"""gpuwaste model train --times: from calibrations to a bundle of step times in the registry, with its card."""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError, NoDataError, ParseError
from gpuwaste.estimate.calibrate.calibration_folder import read_facts
from gpuwaste.estimate.calibrate.calibration_records import Record, read_records
from gpuwaste.estimate.program import OpSum, Program, op_sums
from gpuwaste.estimate.program_memory import CONTEXTS_B
from gpuwaste.estimate.public.coefficients import Part
from gpuwaste.estimate.public.public_answer import public_parts
from gpuwaste.estimate.reading import read_program
from gpuwaste.estimate.time_bundle import CARD, CARD_TEXT, MAX_PROGRAMS, TimesRegistry, write_times
from gpuwaste.estimate.time_card import PublicFigures, TimeCard, TimeCardType, TimeFigures, card_text
from gpuwaste.estimate.time_model import TimeModel
from gpuwaste.models.public_times.site_fit import public_figures, with_public
from gpuwaste.models.time_errors import judge, split_count
from gpuwaste.models.time_fit import MIN_ROWS, Measurements, fit_model, measurements
from gpuwaste.models.time_transfer import transfer
from gpuwaste.models.training_progress import TrainingProgress
from gpuwaste.slurm.gpu_types import find

MIN_JUDGED: Final = 100  # with fewer programs errors are not judged: too few for five folds
_NAMED: Final = 4  # kinds of hardware that a card names
Reader = Callable[[Path], Program]
Parts = Mapping[Part, float]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The measurements on one type of GPU."""

    gpu: str
    rows: Measurements
    parts: tuple[Parts, ...]
    """Of each program, the public model's seconds by part; empty where the table has no such GPU."""
    left_out: Counter[str]
    hardware: str
    contexts_b: tuple[int, int, int] | None
    """Least, median and most of what the processes needed besides their arrays."""


@dataclass(frozen=True, slots=True)
class TrainedTimes:
    """The bundle's directory in the registry, and its card."""

    directory: Path
    card: TimeCard


def train_times(
    folders: Sequence[Path],
    registry: TimesRegistry,
    *,
    created_utc: int,
    name: str = "",
    seed: int = 1,
    promote: bool = False,
    judged: bool = True,
    progress: TrainingProgress | None = None,
    read: Reader = read_program,
) -> TrainedTimes:
    """Fit a model for each type of GPU, judge it, register the bundle; promote if requested or if none is in use.

    Types with too few programs for their own model are scaled from the type with the most and corrected by the
    measurements. Raises NoDataError, ModelError, GpuwasteError; the registry is unchanged then.
    """
    show = progress or TrainingProgress()
    had_champion = registry.champion() is not None
    with show.stage("programs", len(folders)) as step:
        calibrated = _calibrated(folders, read, step)
    with show.stage("fit", len(calibrated)) as step:
        models = _models(calibrated, seed, step)
    figures: dict[str, list[TimeFigures]] = {}
    public = {each.gpu: public_figures(each.parts, each.rows) for each in calibrated}
    whole = [each for each in calibrated if judged and not models[each.gpu].grounds.scaled_from]
    for each in (each for each in whole if len(each.rows) >= MIN_JUDGED):
        with show.stage(f"judge {each.gpu}", split_count(each.rows)) as step:
            figures[each.gpu] = judge(each.gpu, each.rows, seed=seed, step=step)[0]
    models = {gpu: with_public(model, public[gpu], figures.get(gpu, [])) for gpu, model in models.items()}
    card = TimeCard(
        name=name or f"times-{created_utc}",
        created_utc=created_utc,
        seconds={stage: round(seconds, 1) for stage, seconds in show.seconds.items()},
        promoted=promote or not had_champion,
        types=[_card_type(each, models[each.gpu], figures.get(each.gpu, []), public[each.gpu]) for each in calibrated],
    )
    return TrainedTimes(_published(registry, card, models), card)


def _published(registry: TimesRegistry, card: TimeCard, models: Mapping[str, TimeModel]) -> Path:
    others = {
        CARD: (json.dumps(card.to_json(), indent=1, sort_keys=True, allow_nan=False) + "\n").encode(),
        CARD_TEXT: card_text(card).encode(),
    }
    with tempfile.TemporaryDirectory(prefix="gpuwaste-times-") as folder:
        write_times(Path(folder) / "bundle", card.name, card.created_utc, models, others)
        registry.add(Path(folder) / "bundle")
    if card.promoted:
        registry.promote(card.name)
    return registry.models_dir / card.name


def _calibrated(folders: Sequence[Path], read: Reader, step: Callable[[], object]) -> list[Calibrated]:
    """Return the directories' measurements, merged by type, the type with the most programs first."""
    rows: dict[str, list[tuple[Mapping[str, OpSum], str, float, bool]]] = {}
    parts: dict[str, list[Parts]] = {}
    contexts: dict[str, list[int]] = {}
    left_out: dict[str, Counter[str]] = {}
    hardware: dict[str, Counter[str]] = {}
    for folder in folders:
        gpu = _name_of(read_facts(folder).gpu)
        records, left = read_records(folder, gpu)
        left_out.setdefault(gpu, Counter()).update(left)
        for record in records:
            try:
                program = read(folder / record.program)
            except GpuwasteError:
                left_out[gpu]["a program that cannot be read"] += 1
                continue
            rows.setdefault(gpu, []).append(_row(record, op_sums(program)))
            parts.setdefault(gpu, []).append(public_parts(program, gpu))
            hardware.setdefault(gpu, Counter())[record.hardware] += 1
            contexts.setdefault(gpu, []).extend([] if record.context_b is None else [record.context_b])
        step()
    if not rows:
        told = "; ".join(f"{gpu}: {dict(why)}" for gpu, why in left_out.items())
        raise NoDataError(f"no program was measured: {told or 'no records'}: run gpuwaste model calibrate first")
    found = [
        Calibrated(
            gpu,
            measurements(of[:MAX_PROGRAMS]),
            tuple(parts[gpu][:MAX_PROGRAMS]),
            left_out[gpu],
            _hardware(hardware[gpu]),
            _spread(contexts[gpu]),
        )
        for gpu, of in rows.items()
    ]
    return sorted(found, key=lambda each: (-len(each.rows), each.gpu))


def _row(record: Record, sums: Mapping[str, OpSum]) -> tuple[Mapping[str, OpSum], str, float, bool]:
    if record.step_s is None:
        raise ParseError(f"{record.id}: no time")
    return sums, record.family, record.step_s, record.own


def _name_of(gpu: str) -> str:
    device = find(gpu)
    return gpu if device is None else device.name


def _spread(contexts_b: list[int]) -> tuple[int, int, int] | None:
    """Return the least, the median and the most, without those that cannot be one process's; None without any."""
    known = sorted(each for each in contexts_b if CONTEXTS_B[0] <= each <= CONTEXTS_B[1])
    return (known[0], known[len(known) // 2], known[-1]) if known else None


def _hardware(seen: Counter[str]) -> str:
    return "; ".join(text for text, _ in seen.most_common(_NAMED) if text)


def _models(calibrated: Sequence[Calibrated], seed: int, step: Callable[[], object]) -> dict[str, TimeModel]:
    models: dict[str, TimeModel] = {}
    for each in calibrated:
        model = _scaled(models, each) if len(each.rows) < MIN_ROWS else None
        if model is None:
            model = fit_model(each.gpu, each.rows, seed=seed)
        models[each.gpu] = replace(
            model, grounds=replace(model.grounds, hardware=each.hardware, contexts_b=each.contexts_b)
        )
        step()
    return models


def _scaled(models: Mapping[str, TimeModel], each: Calibrated) -> TimeModel | None:
    """Return a model scaled from the type with the most programs; None where the table lacks one of the two."""
    target = find(each.gpu)
    source = next((find(gpu) for gpu, model in models.items() if not model.grounds.scaled_from), None)
    if target is None or source is None:
        return None
    return transfer(models[source.name], source, target, each.rows)


def _card_type(
    each: Calibrated, model: TimeModel, figures: list[TimeFigures], public: PublicFigures | None
) -> TimeCardType:
    return TimeCardType(
        gpu=each.gpu,
        basis=model.grounds.basis,
        hardware=each.hardware,
        programs=len(each.rows),
        families=len(set(each.rows.families)),
        own_runs=int(each.rows.own.sum()),
        left_out=dict(each.left_out),
        figures=figures,
        public=public,
    )
