"""The estimate of a site's time models for one program and one type of GPU, or the reason why there is none."""

from collections.abc import Mapping
from typing import Final

from gpuwaste.core.units import say_percent
from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.estimate.program import UNKNOWN_KINDS, OpSum
from gpuwaste.estimate.roofline import sheet_seconds, work_of
from gpuwaste.estimate.time_model import FitSupport, StepSeconds, TimeModel
from gpuwaste.slurm.gpu_types import GpuType, find, one_of, types_of

MAX_UNMEASURED: Final = 0.1  # largest share of the time in kinds that were not measured
MAX_UNKNOWN: Final = 0.01  # the same for custom kernels: the data sheet does not bound their time
MAX_BEYOND: Final = 3.0  # factor beyond the shortest and the longest step measured
_NAMED: Final = 3
NOT_CALIBRATED: Final = "no time model on this host: gpuwaste model calibrate measures a GPU type"


def step_time(
    models: Mapping[str, TimeModel],
    sums: Mapping[str, OpSum],
    gpu: str,
    *,
    family: str = "",
    unknown_trips: int = 0,
) -> StepTime:
    """Return the time of one step on a type of GPU: by its own model, else by the best one that can be scaled to it.

    `models` are a site's, by the table's names of types; `sums` and `unknown_trips` are the program's.
    """
    device = find(gpu) or _measured_one(models, gpu)
    name = gpu if device is None else device.name
    model = models.get(name) or _scaled(models, device)
    if model is None:
        return StepTime(gpu=name, refused=_no_model(models, name, known=device is not None))
    executions = sum(found.count for found in sums.values())
    refused = not_computable(unknown_trips, executions) or _unmeasured(model, sums, device) or _outside(model, sums)
    if refused:
        return StepTime(gpu=name, refused=refused)
    found = _seconds(model, sums, family, device)
    return StepTime(
        gpu=name, step_s=found.step_s, low_s=found.low_s, high_s=found.high_s, basis=model.grounds.basis,
        notes=_notes(model.grounds),
    )  # fmt: skip


def not_computable(unknown_trips: int, executions: float) -> str:
    """Return why no model can say how long a step takes, "" where one can."""
    if unknown_trips:
        loops = "1 loop" if unknown_trips == 1 else f"{unknown_trips} loops"
        return f"the trip count of {loops} is not in the file: the time of a step is unknown"
    return "" if executions > 0 else "the program has no operation that takes time"


def _measured_one(models: Mapping[str, TimeModel], gpu: str) -> GpuType | None:
    """Return the only type of this name that the site has measured; None if there is none or more than one."""
    measured = [each for each in types_of(gpu) if each.name in models]
    return measured[0] if len(measured) == 1 else None


def _scaled(models: Mapping[str, TimeModel], target: GpuType | None) -> TimeModel | None:
    """Return a model scaled from a measured type, preferably of the same architecture, then with the most programs."""
    if target is None:
        return None
    sources = [(model, find(name)) for name, model in models.items() if model.grounds.programs]
    ranked = [
        (device.family == target.family, not model.grounds.scaled_from, model.grounds.programs, device.name)
        for model, device in sources
        if device is not None
    ]
    if not ranked:
        return None
    *_, best = max(ranked)
    source = find(best)
    return models[best].scaled(source, target) if source is not None else None


def _no_model(models: Mapping[str, TimeModel], gpu: str, *, known: bool) -> str:
    if not models:
        return NOT_CALIBRATED
    measured = ", ".join(sorted(models))
    if known:
        return f"none of the measured types ({measured}) can be scaled to {gpu}: calibrate {gpu}"
    if types := types_of(gpu):
        return f"{gpu} can be {one_of(types)}, and none of these types is measured here; measured: {measured}"
    return f"{gpu[:60]!r} is neither measured nor in the table of GPU types; measured: {measured}"


def _unmeasured(model: TimeModel, sums: Mapping[str, OpSum], device: GpuType | None) -> str:
    """Return why unmeasured kinds prevent an estimate, "" where their share is small."""
    missing = {key: work for key, work in sums.items() if key not in model.measured}
    if not missing:
        return ""
    carried = {key: _share(sums, key, device) for key in missing}
    unknown = sum(share for key, share in carried.items() if key.partition("/")[0] in UNKNOWN_KINDS)
    if sum(carried.values()) <= MAX_UNMEASURED and unknown <= MAX_UNKNOWN:
        return ""
    named = sorted(carried, key=lambda key: -carried[key])[:_NAMED]
    return (
        f"operations never measured on {model.grounds.scaled_from or model.grounds.gpu} take "
        f"{say_percent(min(1.0, sum(carried.values())))} of the time or more: {', '.join(named)}"
    )


def _share(sums: Mapping[str, OpSum], key: str, device: GpuType | None) -> float:
    """Return the share of one key: of the data sheet's time, or of FLOPs or bytes without a sheet."""
    work = sums[key]
    if device is not None:
        whole = sum(sheet_seconds(each, found, device) for each, found in sums.items())
        return sheet_seconds(key, work, device) / whole if whole else 0.0
    flops, moved, count = (sum(found[part] for found in map(_parts, sums.values())) for part in range(3))
    return max(part / whole if whole else 0.0 for part, whole in zip(_parts(work), (flops, moved, count), strict=True))


def _parts(work: OpSum) -> tuple[float, float, float]:
    return work.flops, work.bytes, work.count


def _outside(model: TimeModel, sums: Mapping[str, OpSum]) -> str:
    """Return why the program is outside of what was measured, "" where it is not."""
    grounds = model.grounds
    seconds = float(model.base.seconds(work_of([sums], model.base.keys))[0])
    if not grounds.shortest_s / MAX_BEYOND <= seconds <= grounds.longest_s * MAX_BEYOND:
        return (
            f"a step of about {seconds:.2g} s is far outside of the steps measured on "
            f"{grounds.scaled_from or grounds.gpu} ({grounds.shortest_s:.2g} to {grounds.longest_s:.2g} s)"
        )
    if float(model.nearness([sums])[0]) < grounds.least_nearness:
        return f"its mix of operations is unlike all programs measured on {grounds.scaled_from or grounds.gpu}"
    return ""


def _seconds(model: TimeModel, sums: Mapping[str, OpSum], family: str, device: GpuType | None) -> StepSeconds:
    """Return the model's time; the time of unmeasured kinds, a small share here, is added by the data sheet."""
    log_s, sd = model.predict([sums], [family])
    found = model.interval(float(log_s[0]), float(sd[0]), family)
    if device is None:
        return found
    more = sum(sheet_seconds(key, work, device) for key, work in sums.items() if key not in model.measured)
    return StepSeconds(found.step_s + more, found.low_s, found.high_s + more)


def _notes(grounds: FitSupport) -> tuple[str, ...]:
    return (f"measured on {grounds.hardware}",) if grounds.hardware else ()
