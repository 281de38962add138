"""The Slurm model at the instants of a real run: slurmctld's passes, its submissions, and how long jobs held nodes.

What is given is timing: when passes began and when they came to each job, when jobs were submitted, and how long each
job held its nodes. Which jobs start at which pass, and on which nodes, is the model's own.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from gpuwaste.core.errors import UsageError
from gpuwaste.jobs.history.table import JobTable
from gpuwaste.sim.real.instants import BACKFILL, ENDED, FREED, FULL, MAIN, STARTED, SUBMITTED, TESTED, ControllerInstant
from gpuwaste.sim.real.jobs import submissions
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm import given as g
from gpuwaste.sim.slurm.board import Ints
from gpuwaste.sim.slurm.cluster_arrays import layout
from gpuwaste.sim.slurm.ranks import ranks_of
from gpuwaste.sim.slurm.requests import requests_of
from gpuwaste.sim.slurm.setup import new_board
from gpuwaste.slurm.site.cluster_model import ClusterModel

_KINDS: Final = {
    MAIN: b.MAIN,
    FULL: b.FULL,
    BACKFILL: b.CYCLE,
    SUBMITTED: g.SUBMITTED,
    TESTED: g.TESTED,
    STARTED: g.STARTED,
}


def starts_at(instants: Sequence[ControllerInstant], table: JobTable, model: ClusterModel) -> list[int | None]:
    """Return the start of each job of a run, UTC seconds of the trace, by the place in the run's CSV.

    None for a job that does not start in the model. One that did not start in the run does not end in the model.
    Raises UsageError for a cluster whose jobs are requeued, and for instants of other jobs.
    """
    if model.outages or model.settings.get("PreemptType", "preempt/none") not in {"", "preempt/none"}:
        raise UsageError(f"{model.name}: jobs can be requeued: the model plays only runs without, at given instants")
    laid = layout(model)
    submitted, _, _ = submissions(table, model)
    kept, requests, _ = requests_of(table, submitted, model, laid)
    places = np.full(len(submitted), -1)  # of what the run submitted, in the model
    places[np.isin(submitted.row, kept.row)] = np.arange(len(kept))
    known = _of_model(instants, places.tolist())
    held_ms = _held_ms(known, len(kept))
    jobs = requests.jobs.copy()
    jobs[:, b.BELIEVED] = jobs[:, b.LIMIT]
    jobs[:, b.RUN] = np.maximum(1, held_ms[:, 1] // g.MS)
    board = new_board(requests._replace(jobs=jobs), table.user, table.account, model, laid)
    ranks = ranks_of(board.jobs, requests.qos, table.user, table.account, model)
    given = [(each.ms, _KINDS[each.kind], each.row or 0) for each in known if each.kind in _KINDS]
    g.play_given(board, ranks, np.array(given, np.int64).reshape(-1, 3), held_ms)
    starts = [start if start >= 0 else None for start in board.jobs[:, b.START].tolist()]
    return [starts[place] if place >= 0 else None for place in places.tolist()]


def _of_model(instants: Sequence[ControllerInstant], places: Sequence[int]) -> list[ControllerInstant]:
    """Return passes, and what became of the jobs that the model plays, by their places in it."""
    found = []
    for each in instants:
        if each.row is None:
            found.append(each)
        elif each.row >= len(places):
            raise UsageError(f"row {each.row}: the run has more jobs than the trace: give the trace of the run")
        elif places[each.row] >= 0:
            found.append(ControllerInstant(each.ms, each.kind, places[each.row]))
    return found


def _held_ms(instants: Sequence[ControllerInstant], count: int) -> Ints:
    """Return how long each job ran and held its nodes [n, 2], from the pass on that started it.

    The same where the run's instants do not say when it ended.
    """
    found, began, last_pass = np.full((count, 2), b.FOREVER >> 1, np.int64), {}, 0
    for each in instants:
        if each.row is None:
            last_pass = each.ms
        elif each.kind == STARTED:
            began[each.row] = last_pass or each.ms
        elif each.kind == ENDED and each.row in began:
            found[each.row, 0] = each.ms - began[each.row]
        elif each.kind == FREED and each.row in began:
            found[each.row, 1] = each.ms - began[each.row]
    found[:, 0] = np.minimum(found[:, 0], found[:, 1])
    return found
