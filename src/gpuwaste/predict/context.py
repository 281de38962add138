"""What a vector is computed from: the request's columns and the rows of its keys, for one job or for many."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.request import JobRequest
from gpuwaste.predict.table import Categories, Floats, JobTable
from gpuwaste.predict.texts import NAME_FACTS, SCRIPT_FACTS, name_facts, script_facts

PLAIN: Final = ("submit", "limit_s", "nodes", "cpus", "mem_b", "gpus", "is_array", "interactive")
# Repeated for whole-array arithmetic: OVER by UNDER are the request's ratios, CYCLIC the remainders that matter.
OVER: Final = ("mem_b", "cpus", "cpus", "mem_b", "gpus")
UNDER: Final = ("cpus", "nodes", "gpus", "gpus", "nodes")
CYCLIC: Final = ("submit", "submit", "limit_s", "limit_s")
COLUMNS: Final = ("submit", *PLAIN[1:], *NAME_FACTS, *SCRIPT_FACTS, *OVER, *UNDER, *CYCLIC)
AT: Final = {name: COLUMNS.index(name) for name in COLUMNS}
LIMIT_AND_CPUS: Final = slice(AT["limit_s"], AT["cpus"] + 1, AT["cpus"] - AT["limit_s"])  # a view of both
FACTS_AT: Final = len(PLAIN)
SCRIPT_AT: Final = FACTS_AT + len(NAME_FACTS)
OVER_AT: Final = SCRIPT_AT + len(SCRIPT_FACTS)
UNDER_AT: Final = OVER_AT + len(OVER)
CYCLIC_AT: Final = UNDER_AT + len(UNDER)
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
        now, now, limit, limit,
    ]  # fmt: skip


def request_columns(table: JobTable) -> Floats:
    """Return the columns of every row: `request_row` for tables, which have no scripts."""
    columns = np.empty((len(table), len(COLUMNS)))
    for place, name in enumerate(COLUMNS):
        if name in PLAIN:
            columns[:, place] = getattr(table, name)
    columns[:, FACTS_AT:SCRIPT_AT] = _facts(table.name)
    columns[:, SCRIPT_AT:OVER_AT] = script_facts(None)
    return columns


def _amount(value: int | None) -> float:
    return np.nan if value is None else min(_LARGEST, value)


def _facts(names: Categories) -> Any:
    facts = np.array([name_facts(text) for text in names.values], dtype=np.float64)
    return facts.reshape(-1, len(NAME_FACTS))[names.codes]
