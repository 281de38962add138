"""What a vector is computed from: the request's columns and the rows of its keys, for one job or for many."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.request import JobRequest
from gpuwaste.predict.rows import AMOUNTS
from gpuwaste.predict.table import Categories, Floats, JobTable
from gpuwaste.predict.texts import NAME_FACTS, SCRIPT_FACTS, name_facts, script_facts

PLAIN: Final = ("submit", "limit_s", "nodes", "cpus", "mem_b", "gpus", "is_array", "interactive")
COLUMNS: Final = PLAIN + NAME_FACTS + SCRIPT_FACTS
AT: Final = {name: place for place, name in enumerate(COLUMNS)}


@dataclass(slots=True)
class Context:
    """`requests` float64 [n, len(COLUMNS)], NaN for "not said"; `rows` rows.ROW [n, keys] before the submission.

    `amounts` is the ring's run and limit (minutes) and processors as float64 [n, keys, 8, 3]; `counts` is
    rows.COUNTS as float64 [n, keys, 9]. Both are made once, since several groups read them.
    """

    requests: Floats
    rows: NDArray[np.void]
    amounts: Floats
    counts: Floats

    def column(self, name: str) -> Floats:
        """Return one column of the requests, [n]."""
        return self.requests[:, AT[name]]

    def ring(self, name: str) -> Floats:
        """Return one amount of the rings, [n, keys, 8], the newest run first."""
        return self.amounts[..., AMOUNTS.index(name)]


def context_of(requests: Floats, rows: NDArray[np.void]) -> Context:
    """Return the context of requests [n, len(COLUMNS)] and their keys' rows [n, keys]."""
    return Context(requests, rows, rows["amounts"].astype(np.float64), rows["counts"].astype(np.float64))


def request_row(request: JobRequest) -> list[float]:
    """Return the columns of one request."""
    nan = np.nan
    limit, nodes, cpus, mem = request.time_limit_s, request.nodes, request.cpus, request.mem_b
    return [
        request.submit,
        nan if limit is None else limit,
        nan if nodes is None else nodes,
        nan if cpus is None else cpus,
        nan if mem is None else mem,
        request.gpus,
        request.is_array,
        request.interactive,
        *name_facts(request.name),
        *script_facts(request.script),
    ]


def request_columns(table: JobTable) -> Floats:
    """Return the columns of every row: `request_row` for tables, which have no scripts."""
    columns = np.empty((len(table), len(COLUMNS)))
    for place, name in enumerate(PLAIN):
        columns[:, place] = getattr(table, name)
    columns[:, len(PLAIN) : len(PLAIN) + len(NAME_FACTS)] = _facts(table.name)
    columns[:, len(PLAIN) + len(NAME_FACTS) :] = script_facts(None)
    return columns


def _facts(names: Categories) -> Any:
    facts = np.array([name_facts(text) for text in names.values], dtype=np.float64)
    return facts.reshape(-1, len(NAME_FACTS))[names.codes]
