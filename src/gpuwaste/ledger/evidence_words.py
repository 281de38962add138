"""The figures behind a finding, in words: "mean use 77 %" instead of the keys and values of the document."""

from collections.abc import Callable
from typing import Any, Final

from gpuwaste.core.units import HOUR_S, say_duration, say_hours, say_percent
from gpuwaste.ledger.reports.report_types import FindingRow
from gpuwaste.show.page_words import cut

_PERCENT: Final = 100.0
_NAMES: Final = {
    "at_once": "jobs at the same time",
    "busy_gpu": "GPU in use",
    "busy_mean_pct": "its mean use",
    "cpu_ratio": "CPU use",
    "cpus": "CPUs",
    "dram_active": "memory interface active",
    "gpu_s": "GPU-hours held",
    "gpus": "GPUs",
    "grace_s": "exempt from waste",
    "hang_s": "hung for",
    "idle_gpus": "idle GPUs",
    "idle_s": "idle for",
    "mean_pct": "mean use",
    "memory_share": "GPU memory used",
    "needed_gpu_s": "GPU-hours needed",
    "opened_gpus": "GPUs opened, but idle",
    "power_limit_w": "power limit",
    "power_w": "power",
    "ran_s": "run time",
    "sm_ratio": "multiprocessors active",
    "sm_share": "multiprocessors active",
    "source": "source of the figures",
    "sum_pct": "sum of the mean uses",
    "tail_s": "idle at the end",
    "tensor_active": "tensor cores active",
    "untouched_gpus": "GPUs never opened",
    "uuids": "which GPUs",
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
    "_w": lambda value: f"{value:,.0f} W",
    "_s": say_duration,
}
