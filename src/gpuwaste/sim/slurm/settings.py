"""What of slurm.conf the scheduler goes by, with the defaults of slurm.conf(5)."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from gpuwaste.core.errors import ConfigError
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board import Ints

_END_WINDOW_S: Final = 30  # select/cons_tres and cons_res, 22.05
_DIGITS: Final = re.compile(r"[0-9]{1,9}")


class _Number(NamedTuple):
    """A number of SchedulerParameters: its column, its unit, the default and the bounds in slurm.conf(5)."""

    column: int
    unit: int
    default: int
    least: int
    most: int


NUMBERS: Final = {
    "bf_interval": _Number(b.INTERVAL, 1, 30, 1, 10800),
    "bf_window": _Number(b.WINDOW, 60, 1440, 1, 43200),
    "bf_resolution": _Number(b.RESOLUTION, 1, 60, 1, 3600),
    "bf_max_job_test": _Number(b.MAX_TESTS, 1, 500, 1, 1_000_000),
    "bf_max_job_user": _Number(b.MAX_OF_USER, 1, 0, 0, 1_000_000),
    "bf_max_job_start": _Number(b.MAX_STARTS, 1, 0, 0, 10_000),
    "default_queue_depth": _Number(b.DEPTH, 1, 100, 1, 1_000_000),
    "sched_interval": _Number(b.FULL_INTERVAL, 1, 60, 1, 86400),
    "batch_sched_delay": _Number(b.DELAY, 1, 3, 0, 86400),
}


def lowered(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings by lower-case names, as slurm.conf takes them in any case."""
    return {name.lower(): text.strip() for name, text in settings.items()}


def parameters(settings: Mapping[str, str]) -> dict[str, str]:
    """Return SchedulerParameters by name; a flag has an empty text."""
    words = lowered(settings).get("schedulerparameters", "").split(",")
    pairs = (word.strip().partition("=") for word in words)
    return {name.strip().lower(): text.strip() for name, _, text in pairs if name.strip()}


def scheduler_settings(settings: Mapping[str, str]) -> Ints:
    """Return the settings of board.py. Raises ConfigError, which names the parameter, its value and its bounds."""
    given, found = parameters(settings), np.zeros(b.SETTINGS, np.int64)
    for name, number in NUMBERS.items():
        text = given.get(name)
        value = number.default if text is None else int(text) if _DIGITS.fullmatch(text) else -1
        if not number.least <= value <= number.most:
            raise ConfigError(
                f"SchedulerParameters: {name}={(text or '')[:40]!r}: expected a whole number from {number.least} to"
                f" {number.most}; correct it in slurm.conf or the machine file"
            )
        found[number.column] = value * number.unit
    every = lowered(settings)
    found[b.END_WINDOW] = _END_WINDOW_S
    found[b.DEFER] = "defer" in given or "defer_batch" in given
    found[b.BACKFILLS] = every.get("schedulertype", "sched/backfill").lower() != "sched/builtin"
    found[b.REQUEUES] = every.get("jobrequeue", "1").lower() not in {"0", "no"}
    return found
