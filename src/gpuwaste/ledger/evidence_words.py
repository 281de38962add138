"""The figures behind a finding, in words: "mean use 77 %" instead of the keys and values of the document."""

from collections.abc import Callable
from typing import Any, Final

from gpuwaste.core.units import HOUR_S, format_size, say_duration, say_hours, say_percent
from gpuwaste.ledger.reports.report_types import FindingRow
from gpuwaste.show.page_words import cut

_PERCENT: Final = 100.0
_NAMES: Final = {
    "bound_b": "exceeded by 1 of 100 runs",
    "busy_cpus": "most CPUs busy on average",
    "at_once": "jobs at the same time",
    "busy_gpu": "GPU in use",
    "busy_mean_pct": "its mean use",
    "cpu_ratio": "CPU use",
    "cpus": "CPUs",
    "dram_active": "memory interface active",
    "enough_b": "enough",
    "enough_cpus": "enough CPUs",
    "enough_s": "enough",
    "exceeded_ratio": "chance that the next run needs more, at most",
    "freed_gpu_s": "GPU-hours of the larger GPU that these runs would have left free",
    "gpu_s": "GPU-hours held",
    "gpu_type": "smaller GPU",
    "gpus": "GPUs",
    "grace_s": "exempt from waste",
    "hang_s": "hung for",
    "idle_gpus": "idle GPUs",
    "idle_s": "idle for",
    "kept_gpu_s": "GPU-hours kept from jobs that waited",
    "limit_s": "time limit",
    "longest_s": "longest run",
    "mean_pct": "mean use",
    "memory_share": "GPU memory used",
    "needed_gpu_s": "GPU-hours needed",
    "opened_gpus": "GPUs opened, but idle",
    "power_limit_w": "power limit",
    "power_w": "power",
    "ran_s": "run time",
    "requested_b": "requested",
    "runs": "runs compared",
    "size_b": "memory of the smaller GPU",
    "slowdown_ratio": "run time longer by, at most",
    "sm_ratio": "multiprocessors active",
    "sm_share": "multiprocessors active",
    "source": "source of the figures",
    "sum_pct": "sum of the mean uses",
    "tail_s": "idle at the end",
    "tensor_active": "tensor cores active",
    "untouched_gpus": "GPUs never opened",
    "used_b": "most used",
    "uuids": "which GPUs",
    "wait_s": "median wait",
    "wait_there_s": "median wait for the smaller GPU",
    "wasted_share": "wasted",
    "without_process": "GPUs without a process",
}
_LONGEST: Final = 200


def evidence_of(finding: FindingRow) -> list[tuple[str, str]]:
    """Return name and value of each figure; a figure of a newer hub has its key as its name."""
    return [
        (_NAMES.get(key) or cut(key.replace("_", " ")), cut(_value(key, value), _LONGEST))
        for key, value in finding.evidence.items()
    ]


def _value(key: str, value: Any) -> str:
    """Return a value with the unit that its key ends with."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "unknown" if value is None else str(value)
    written = next((write for ending, write in _UNITS.items() if key.endswith(ending)), None)
    return written(value) if written else f"{value:,.4g}"


_UNITS: Final[dict[str, Callable[[float], str]]] = {
    "gpu_s": lambda value: say_hours(value / HOUR_S),
    "_pct": lambda value: say_percent(value / _PERCENT),
    "_share": say_percent,
    "_ratio": say_percent,
    "_active": say_percent,
    "_b": format_size,
    "_w": lambda value: f"{value:,.0f} W",
    "_s": say_duration,
}
