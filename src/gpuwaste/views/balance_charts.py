"""The charts of view balance: the machine as one bar, by day, GPU type and partition, and who kept GPUs from others."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.balance.class_names import WAITED_FOR
from gpuwaste.ledger.balance.stranding import StrandingJob
from gpuwaste.ledger.balance.types import BalanceClass
from gpuwaste.ledger.balance.window import StepSum, WindowBalance
from gpuwaste.show.chart import Axis, Bars, Role, Series
from gpuwaste.views.charting import sideways, step_axis, user_words
from gpuwaste.views.ranking import SHOWN
from gpuwaste.views.view_query import Window

_Group = TypeVar("_Group", bound=Hashable)
PARTS: Final[Mapping[str, tuple[str, Role]]] = {
    "used": ("used well", "high"),
    "low": ("low utilization", "low"),
    "short": ("idle under a minute", "moderate"),
    "unexplained": ("wasted", "idle"),
    "exempt": ("wasted, exempt", "other"),
    "suspended": ("suspended", "suspended"),
    "unknown": ("allocated, use unknown", "unknown"),
    "waited": ("free although jobs wait", "out_of_memory"),
    "free": ("free, no job waits", "muted"),
    "reserved": ("reserved, not used", "third"),
    "away": ("not in service", "node_fail"),
    "not_known": ("not known", "unknown"),
}
"""The parts of the one bar, with name and role."""
_AWAY: Final = (BalanceClass.DOWN, BalanceClass.DRAINED, BalanceClass.MAINTENANCE)
GROUPS: Final[Mapping[str, Sequence[BalanceClass]]] = {
    "allocated": (BalanceClass.ALLOCATED,),
    "waited": WAITED_FOR,
    "free": (BalanceClass.FREE,),
    "reserved": (BalanceClass.RESERVED,),
    "away": _AWAY,
    "not_known": (BalanceClass.NOT_KNOWN,),
}
GROUP_NAMES: Final = {"allocated": "allocated", **{name: of[0] for name, of in PARTS.items() if name in GROUPS}}


def job_words(job: StrandingJob) -> str:
    """Return a job with its user for a sentence: 4711 of alice (physics)."""
    return f"{job.printed_id} of {user_words(job.user, job.account)}"


def bar(parts: Mapping[str, float], title: str) -> Bars:
    """Return the one bar of GPU-seconds by part."""
    whole = sum(parts.values())
    series = [
        Series(name=name, role=role, y=[round(parts[part] / whole * 100, 3)])
        for part, (name, role) in PARTS.items()
        if parts[part]
    ]
    return sideways(title, ["machine"], "%", series, of="")


def blockers(jobs: Sequence[StrandingJob], unit: str) -> Iterator[Bars]:
    """Yield the jobs that kept most from jobs that waited."""
    shown = jobs[:SHOWN]
    if shown:
        roles: Mapping[BalanceClass, tuple[str, Role]] = {
            BalanceClass.FREE_MEMORY: ("by memory", "out_of_memory"),
            BalanceClass.FREE_CPUS: ("by CPUs", "timeout"),
        }
        series = [
            Series(name=name, role=role, y=[round(job.gpu_s / HOUR_S, 3) if job.of is of else 0.0 for job in shown])
            for of, (name, role) in roles.items()
            if any(job.of is of for job in shown)
        ]
        names = [job_words(job) for job in shown]
        yield sideways("Kept from jobs that wait, by job", names, unit, series, of="Job")


def by_day(window: Window, found: WindowBalance) -> Iterator[Bars]:
    """Yield the machine by day, where there are several."""
    at, axis = step_axis(window)
    if len(at) > 1:
        by_step = _grouped(found, lambda place: place.step)
        steps = [by_step.get(number, Counter()) for number in range(len(at))]
        yield Bars(
            title=f"The machine by {window.step_text}",
            x=axis,
            y=Axis(title=_unit(found), unit=_unit(found)),
            at=at,
            series=_series(steps),
        )


def by_kind(found: WindowBalance) -> Iterator[Bars]:
    """Yield the machine by GPU type and by partition, where there are several."""
    for title, of, name in (("GPU type", "Type", _type_name), ("partition", "Partition", _partition_name)):
        sums = _grouped(found, name)
        if len(sums) > 1:
            shown = sorted(sums, key=lambda each: (-sums[each].total(), each))[:SHOWN]
            yield sideways(
                f"The machine by {title}", shown, _unit(found), _series([sums[each] for each in shown]), of=of
            )


def _unit(found: WindowBalance) -> str:
    return f"{found.devices[:-1]}-hours"


def _type_name(place: StepSum) -> str:
    return place.kind.gpu_type or "no type"


def _partition_name(place: StepSum) -> str:
    return place.kind.partitions or "no partition"


def _grouped(found: WindowBalance, group: Callable[[StepSum], _Group]) -> dict[_Group, Counter[BalanceClass]]:
    """Return the GPU-seconds of each class by group of their places."""
    sums: dict[_Group, Counter[BalanceClass]] = defaultdict(Counter)
    for place, gpu_s in found.seconds.items():
        sums[group(place)][place.of] += gpu_s
    return sums


def _series(sums: Sequence[Mapping[BalanceClass, int]]) -> list[Series]:
    roles: dict[str, Role] = {"allocated": "high", **{name: role for name, (_, role) in PARTS.items()}}
    return [
        Series(
            name=GROUP_NAMES[group],
            role=roles[group],
            y=[round(sum(one[of] for of in classes) / HOUR_S, 3) for one in sums],
        )
        for group, classes in GROUPS.items()
        if any(one[of] for one in sums for of in classes)
    ]
