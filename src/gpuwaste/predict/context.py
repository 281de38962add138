"""What a vector is computed from: the request's columns and the rows of its keys, for one job or for many."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.request import JobRequest
from gpuwaste.core.units import DAY_S, MINUTE_S
from gpuwaste.predict.table import Categories, Floats, JobTable
from gpuwaste.predict.texts import NAME_FACTS, SCRIPT_FACTS, name_facts, script_facts

PLAIN: Final = ("submit", "limit_s", "nodes", "cpus", "mem_b", "gpus", "is_array", "interactive")
# Repeated for whole-array arithmetic: OVER by UNDER are the request's ratios, CYCLIC the remainders that matter.
OVER: Final = ("mem_b", "cpus", "cpus", "mem_b", "gpus")
UNDER: Final = ("cpus", "nodes", "gpus", "gpus", "nodes")
CYCLIC: Final = ("submit", "since_monday", "limit_s", "limit_s")
PAIR: Final = ("limit_min", "cpus")  # as the rows hold both of earlier runs
COLUMNS: Final = ("submit", *PLAIN[1:], *NAME_FACTS, *SCRIPT_FACTS, *OVER, *UNDER, *CYCLIC, *PAIR)
AT: Final = {name: COLUMNS.index(name) for name in COLUMNS}
FACTS_AT: Final = len(PLAIN)
SCRIPT_AT: Final = FACTS_AT + len(NAME_FACTS)
OVER_AT: Final = SCRIPT_AT + len(SCRIPT_FACTS)
UNDER_AT: Final = OVER_AT + len(OVER)
CYCLIC_AT: Final = UNDER_AT + len(UNDER)
PAIR_AT: Final = CYCLIC_AT + len(CYCLIC)
MONDAY_S: Final = 4 * DAY_S  # 1 January 1970 was a Thursday: the first Monday came four days later
_LARGEST: Final = 1 << 62


@dataclass(slots=True)
class Context:
    """`requests` float64 [n, len(COLUMNS)], NaN for "not said"; `rows` rows.ROW [n, keys] before the submission."""

    requests: Floats
    rows: NDArray[np.void]


def request_row(request: JobRequest) -> list[float]:
    """Return the columns of one request."""
    limit, nodes = _amount(request.time_limit_s), _amount(request.nodes)
    cpus, mem, gpus = _amount(request.cpus), _amount(request.mem_b), _amount(request.gpus)
    now = request.submit
    return [
        now, limit, nodes, cpus, mem, gpus, request.is_array, request.interactive,
        *name_facts(request.name), *script_facts(request.script),
        mem, cpus, cpus, mem, gpus,
        cpus, nodes, gpus, gpus, nodes,
        now, now - MONDAY_S, limit, limit,
        limit / MINUTE_S, cpus,
    ]  # fmt: skip


def request_columns(table: JobTable, part: slice, facts: Floats) -> Floats:
    """Return the columns of some rows: `request_row` for tables, which have no scripts; see `facts_of` for `facts`."""
    columns = np.empty((len(table.submit[part]), len(COLUMNS)))
    for name, places in _PLACES.items():
        columns[:, places] = getattr(table, name)[part, None]
    columns[:, AT["since_monday"]] = table.submit[part] - MONDAY_S
    columns[:, AT["limit_min"]] = table.limit_s[part] / MINUTE_S
    columns[:, FACTS_AT:SCRIPT_AT] = facts[table.name.codes[part]]
    columns[:, SCRIPT_AT:OVER_AT] = np.nan
    return columns


def facts_of(names: Categories) -> Floats:
    """Return NAME_FACTS of every name that occurs, [names, facts]."""
    facts = np.array([name_facts(text) for text in names.values], dtype=np.float64)
    return facts.reshape(-1, len(NAME_FACTS))


def _amount(value: int | None) -> float:
    return np.nan if value is None else min(_LARGEST, value)


_PLACES: Final = {name: [n for n, column in enumerate(COLUMNS) if column == name] for name in PLAIN}
