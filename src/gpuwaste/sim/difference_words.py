"""Figures of a difference as they are printed: the value, the signed difference, the interval."""

from collections.abc import Iterator, Mapping
from typing import Final

from gpuwaste.show.cells import UNKNOWN, fit, percent, short
from gpuwaste.sim.document import Delta, Difference, SimulationDocument

FIGURES: Final[Mapping[str, tuple[str, str]]] = {
    "mean_wait_s": ("mean wait", "s"),
    "p50_wait_s": ("median wait", "s"),
    "p95_wait_s": ("95th percentile wait", "s"),
    "mean_bounded_slowdown": ("mean bounded slowdown", ""),
    "utilization": ("utilization", "share"),
    "held_h": ("hours held", "h"),
    "makespan_s": ("makespan", "s"),
    "mean_chain_s": ("mean time of a chain", "s"),
    "gpu_energy_kwh": ("GPU energy measured", "kWh"),
}
"""By name: what a figure is called, and its unit: seconds, a share of 1, hours of the resource, kWh, none."""
KILLED: Final = "jobs killed at the new limit"  # the fact of whatifs/limits
_LARGE: Final = ((1e6, 1e6, "M"), (1e5, 1e3, "k"))  # hours from these on are printed in millions and thousands
_ON_NODES: Final = "features, licenses, dependencies, arrays and topology are not modelled."
HOURS: Final = {"gpus": "GPU-hours", "processors": "processor-hours"}


def figures_of(difference: Difference, resource: str) -> Iterator[tuple[str, str, str, Delta]]:
    """Yield name, label, unit and value of each figure that a difference has, those by GPU type last."""
    for name, (label, unit) in FIGURES.items():
        if name in difference.figures:
            words = f"{HOURS[resource]} held" if name == "held_h" else label
            yield name, words, unit, difference.figures[name]
    for kind, delta in difference.gpu_utilization.items():
        yield f"gpu_utilization.{kind}", f"GPUs {fit(kind, 16)} used", "share", delta


def said(value: float, unit: str) -> str:
    """Print a value that is not negative."""
    if unit == "s":
        return short(value)
    if unit == "share":
        return percent(value)
    if unit not in {"h", "kWh"}:
        return f"{value:.2f}"
    return _large(value) + (" kWh" if unit == "kWh" else "")


def _large(value: float) -> str:
    for above, factor, letter in _LARGE:
        if value >= above:
            return f"{value / factor:,.1f}{letter}"
    return f"{value:,.1f}"


def signed(value: float, unit: str) -> str:
    """Print a difference with its sign; shares differ by points."""
    text = f"{abs(value) * 100:.1f} points" if unit == "share" else said(abs(value), unit)
    return f"{'-' if value < 0 else '+'}{text}"


def interval_words(delta: Delta, unit: str) -> str:
    """Print the 95 % interval of a difference."""
    if delta.low is None or delta.high is None:
        return UNKNOWN
    if unit == "share":
        return f"{delta.low * 100:+.1f} to {delta.high * 100:+.1f} points"
    return f"{signed(delta.low, unit)} to {signed(delta.high, unit)}"


def name_of(difference: Difference) -> str:
    """Return what is changed: `gpus, easy`, or the scheduler where that is the change."""
    same = difference.change == difference.scheduler
    return difference.change if same else f"{difference.change}, {difference.scheduler}"


def sentence(difference: Difference, resource: str) -> str:
    """Say what a change does to the mean wait, with its interval, and what it frees."""
    wait, held = difference.figures["mean_wait_s"], difference.figures["held_h"]
    ends = interval_words(wait, "s")
    within = "" if ends == UNKNOWN else f" (95 %: {ends})"
    freed = f"; it frees {said(-held.difference, 'h')} {HOURS[resource]}" if held.difference < 0 else ""
    killed = difference.facts.get(KILLED, 0)
    lost = f"; {killed:,.0f} jobs are killed at their new limit" if killed else ""
    return (
        f"{name_of(difference)}: mean wait {said(wait.changed, 's')} instead of {said(wait.base, 's')}, "
        f"{signed(wait.difference, 's')}{within}{freed}{lost}."
    )


def counts(difference: Difference) -> str:
    """Return what the change counted, as one sentence."""
    shown = [
        f"{fact}: {percent(count) if fact.startswith('share') else f'{count:,.10g}'}"
        for fact, count in difference.facts.items()
    ]
    words = "; ".join(shown)
    return f"{words[:1].upper()}{words[1:]}."


def energy_words(document: SimulationDocument) -> Iterator[str]:
    """Say what was measured of the energy of the jobs' GPUs; nothing where nothing was."""
    energy = document.energy
    if energy is None:
        return
    idle = ", ".join(f"{fit(kind, 20)} {watts:.0f} W" for kind, watts in energy.idle_w.items())
    yield (
        f"GPUs of these jobs used {said(energy.used_kwh, 'kWh')}, measured in {percent(energy.measured_share)} of "
        f"their GPU-hours; power of an idle GPU: {idle or 'not known'}."
    )
    if any("gpu_energy_kwh" in difference.figures for difference in document.differences):
        yield (
            "Energy that is saved counts GPUs that are not held at their idle power, rejected jobs with all that they "
            "drew. Jobs that use the freed GPUs draw more."
        )


def not_modelled(document: SimulationDocument) -> Iterator[str]:
    """Say what the machine of these schedulers leaves out: of those that count, and of those on nodes."""
    if any(name not in document.nodes for name in document.schedulers):
        yield _counted(document)
    if document.nodes:
        yield f"{', '.join(document.nodes)}: {_ON_NODES}"


def _counted(document: SimulationDocument) -> str:
    counted = "GPUs" if document.resource == "gpus" else "processors"
    more = ", processors and memory of jobs" if document.resource == "gpus" else ", memory, GPU types"
    return (
        f"The machine is a count of {counted}: nodes{more}, partitions and priorities are not modelled. "
        "Users submit what they submitted, whatever they wait."
    )
