"""A difference as text, and figures over seeds: the value, the signed difference, the interval."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gpuwaste.show.terminal_cells import UNKNOWN, clock, fit, percent, short
from gpuwaste.sim.document import Delta, Difference, Seeds, SimulationDocument

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
_MANY: Final = 1000  # hours and kWh from here on are printed without decimals
_ON_NODES: Final = "features, licenses, dependencies, arrays and topology are not modelled."
HOURS: Final = {"gpus": "GPU-hours", "processors": "processor-hours"}
_NOTHING_RANDOM: Final = "Nothing in this simulation is random: other seeds change nothing, so it was simulated once."


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
        return clock(value)
    if unit == "share":
        return percent(value)
    if unit not in {"h", "kWh"}:
        return f"{value:,.2f}"
    return f"{value:,.{0 if value >= _MANY else 1}f}" + (" kWh" if unit == "kWh" else "")


def signed(value: float, unit: str) -> str:
    """Print a difference with its sign; shares differ by points."""
    text = f"{abs(value) * 100:.1f} points" if unit == "share" else said(abs(value), unit)
    return f"{'-' if value < 0 else '+'}{text}"


def signed_duration(seconds: float) -> str:
    """Print a difference of durations with its sign for a sentence: -1 h 7 min."""
    return f"{'-' if round(seconds) < 0 else '+'}{short(abs(seconds))}"


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
    """Return the name of a change and its effect, as a sentence."""
    return f"{name_of(difference)}: {effect(difference, resource)}."


def effect(difference: Difference, resource: str) -> str:
    """Return what a change does to the mean wait, with its interval, and what it frees."""
    wait, held = difference.figures["mean_wait_s"], difference.figures["held_h"]
    within = ""
    if wait.low is not None and wait.high is not None:
        within = f" (95 %: {signed_duration(wait.low)} to {signed_duration(wait.high)})"
    freed = f"; it frees {said(-held.difference, 'h')} {HOURS[resource]}" if held.difference < 0 else ""
    killed = difference.facts.get(KILLED, 0)
    lost = f"; {killed:,.0f} jobs are killed at their new limit" if killed else ""
    return (
        f"mean wait {short(wait.changed)} instead of {short(wait.base)}, "
        f"{signed_duration(wait.difference)}{within}{freed}{lost}"
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
    """Return what was measured of the energy of the jobs' GPUs; nothing where nothing was."""
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
            "Saved energy: GPUs that are no longer held count at idle power, rejected jobs with all that they used. "
            "What other jobs draw on the freed GPUs is not subtracted."
        )


def not_modelled(document: SimulationDocument) -> Iterator[str]:
    """Return what the machine of these schedulers leaves out: of those that count, and of those on nodes."""
    if any(name not in document.nodes for name in document.schedulers):
        yield _counted(document)
    if document.nodes:
        yield f"{', '.join(document.nodes)}: {_ON_NODES}"


def _counted(document: SimulationDocument) -> str:
    counted = "GPUs" if document.resource == "gpus" else "processors"
    more = ", processors and memory of jobs" if document.resource == "gpus" else ", memory, GPU types"
    return (
        f"The machine is only a number of {counted}: nodes{more}, partitions and priorities are not modelled. "
        "Users submit the same jobs however long they wait."
    )


def seeds_notes(document: SimulationDocument) -> Iterator[str]:
    """Yield what a reader must know about the seeds."""
    seeds = document.seeds
    if seeds is None:
        return
    if not seeds.drawn:
        yield _NOTHING_RANDOM
    elif seeds.runs:
        yield (
            f"The seeds change {' and '.join(seeds.drawn)}. Intervals over {count_of(seeds)} (Student): of the mean, "
            "and of the mean difference between runs with the same seed. All other figures are of the first seed."
        )


def seed_rows(difference: Difference, seeds: Seeds, resource: str) -> Iterator[Sequence[str]]:
    """Yield the rows of a view: change, scheduler, group, figure, base, changed, difference, interval."""
    for cells in change_rows(difference, resource):
        yield (difference.change, difference.scheduler, f"mean of {count_of(seeds)}", *cells)


def count_of(seeds: Seeds) -> str:
    """Return how many seeds there are: `3 seeds`."""
    return f"{len(seeds.seeds)} seeds"


def change_rows(difference: Difference, resource: str) -> Iterator[list[str]]:
    """Yield what differs over seeds: figure, base, changed, difference, interval."""
    for figure, delta in difference.over_seeds.items():
        label, unit = FIGURES.get(figure, (figure, ""))
        words = f"{HOURS[resource]} held" if figure == "held_h" else label
        yield [words, said(delta.base, unit), said(delta.changed, unit), *difference_cells(delta, unit)]


def difference_cells(delta: Delta, unit: str) -> list[str]:
    """Return a difference with its interval."""
    return [signed(delta.difference, unit), interval_words(delta, unit)]
