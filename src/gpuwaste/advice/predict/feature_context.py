"""The input of a vector: the request's columns and the rows of its keys, for one job or for many."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.text_facts import NAME_FACTS, SCRIPT_FACTS, name_facts, script_facts
from gpuwaste.core.units import DAY_S, HOUR_S, MINUTE_S, WEEK_S
from gpuwaste.jobs.history.history_keys import KEYS
from gpuwaste.jobs.history.job_table import Categories, Floats, JobTable
from gpuwaste.jobs.history.packed_rows import ROW
from gpuwaste.jobs.history.recent_runs import ALIKE, RECENT, HistoryRows
from gpuwaste.slurm.submit.job_request import JobRequest

PLAIN: Final = ("limit_s", "nodes", "cpus", "mem_b", "gpus", "is_array", "interactive")
# Repeated for array arithmetic: OVER by UNDER are the request's ratios, then its times in their units.
OVER: Final = ("mem_b", "cpus", "cpus", "mem_b", "gpus", "of_day", "of_week", "limit_of_hour", "limit_of_day")
UNDER: Final = ("cpus", "nodes", "gpus", "gpus", "nodes", "an_hour", "a_day", "a_second", "a_second")
PAIR: Final = ("limit_min", "cpus")  # as the rows have both for earlier runs
COLUMNS: Final = (*PLAIN, *NAME_FACTS, *SCRIPT_FACTS, *OVER, *UNDER, *PAIR)
AT: Final = {name: COLUMNS.index(name) for name in COLUMNS}
FACTS_AT: Final = len(PLAIN)
SCRIPT_AT: Final = FACTS_AT + len(NAME_FACTS)
OVER_AT: Final = SCRIPT_AT + len(SCRIPT_FACTS)
UNDER_AT: Final = OVER_AT + len(OVER)
PAIR_AT: Final = UNDER_AT + len(UNDER)
MONDAY_S: Final = 4 * DAY_S  # 1 January 1970 was a Thursday: the first Monday came four days later
_LARGEST: Final = 1 << 62
_PACKED: Final = struct.Struct(f"{len(COLUMNS)}f")


@dataclass(slots=True)
class Context:
    """`requests` float32 [n, len(COLUMNS)], NaN for unset; `rows` rows.ROW [n, keys] before the submission.

    `submit` float64 [n]: instants need more digits than a float32 has. `recent` are the users' last runs (RECENT [n]),
    `codes` are what they are compared with to find runs like the request (uint32 [n, 3], see recent.ALIKE).
    """

    requests: NDArray[np.float32]
    submit: Floats
    rows: NDArray[np.void]
    recent: NDArray[np.void]
    codes: NDArray[np.uint32]

    @classmethod
    def room(cls, count: int) -> Self:
        """Return a context of `count` requests that `take` fills."""
        return cls(
            np.empty((count, len(COLUMNS)), dtype=np.float32),
            np.empty(count),
            np.empty((count, len(KEYS)), dtype=ROW),
            np.empty(count, dtype=RECENT),
            np.empty((count, len(ALIKE)), dtype=np.uint32),
        )

    def take(self, requests: Sequence[JobRequest], known: HistoryRows) -> None:
        """Load other requests, and the history of their keys."""
        for place, request in enumerate(requests):
            _PACKED.pack_into(self.requests.data, place * _PACKED.size, *_row(request))
            self.submit[place] = request.submit
        # As bytes: field by field takes ten times as long.
        self.rows.view(np.uint8)[:] = known.keys.view(np.uint8)
        self.recent.view(np.uint8)[:] = known.recent.view(np.uint8)
        self.codes[:] = known.codes


def _row(request: JobRequest) -> list[float]:
    limit, nodes = _amount(request.time_limit_s), _amount(request.nodes)
    cpus, mem, gpus = _amount(request.cpus), _amount(request.mem_b), _amount(request.gpus)
    now = request.submit
    return [
        limit, nodes, cpus, mem, gpus, request.is_array, request.interactive,
        *name_facts(request.name), *script_facts(request.script),
        mem, cpus, cpus, mem, gpus, now % DAY_S, (now - MONDAY_S) % WEEK_S, limit % HOUR_S, limit % DAY_S,
        cpus, nodes, gpus, gpus, nodes, *_UNITS,
        limit / MINUTE_S, cpus,
    ]  # fmt: skip


def contexts_of(table: JobTable, part: slice, facts: Floats, known: HistoryRows) -> Context:
    """Return the context of some rows of a table, which has no scripts; see `facts_of` for `facts`."""
    submit, limit = table.submit[part].astype(np.float64), table.limit_s[part]
    columns = np.empty((len(submit), len(COLUMNS)), dtype=np.float32)
    columns[:, SCRIPT_AT:OVER_AT] = np.nan
    columns[:, FACTS_AT:SCRIPT_AT] = facts[table.name.codes[part]]
    with np.errstate(invalid="ignore", over="ignore"):
        for name, places in _PLACES.items():
            columns[:, places] = getattr(table, name)[part, None]
        columns[:, AT["of_day"]] = submit % DAY_S
        columns[:, AT["of_week"]] = (submit - MONDAY_S) % WEEK_S
        columns[:, AT["limit_of_hour"]] = limit % HOUR_S
        columns[:, AT["limit_of_day"]] = limit % DAY_S
        columns[:, AT["limit_min"]] = limit / MINUTE_S
    columns[:, UNDER_AT + _UNITS_AT : PAIR_AT] = _UNITS
    return Context(columns, submit, known.keys, known.recent, known.codes)


def facts_of(names: Categories) -> Floats:
    """Return NAME_FACTS of every name that occurs, [names, facts]."""
    facts = np.array([name_facts(text) for text in names.values], dtype=np.float64)
    return facts.reshape(-1, len(NAME_FACTS))


def _amount(value: int | None) -> float:
    return np.nan if value is None else float(min(_LARGEST, value))


_UNITS: Final = (HOUR_S, DAY_S, 1.0, 1.0)
_UNITS_AT: Final = UNDER.index("an_hour")
_PLACES: Final = {name: [n for n, column in enumerate(COLUMNS) if column == name] for name in PLAIN}
