"""The Slurm model with a real run's instants: when its main loop and backfill ran, when jobs came, how long they ran.

What is left is which jobs start at each pass, and where. Jobs run from start to end by jobcomp.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from gpuwaste.history.table import JobTable
from gpuwaste.sim.cluster import ClusterModel
from gpuwaste.sim.real.jobs import submissions
from gpuwaste.sim.real.outcomes import Outcome
from gpuwaste.sim.real.passes import BACKFILL, FULL, MAIN, Pass
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.nodes import layout
from gpuwaste.sim.slurm.play import play
from gpuwaste.sim.slurm.ranks import ranks_of
from gpuwaste.sim.slurm.requests import Requests, requests_of
from gpuwaste.sim.slurm.setup import new_board

_KINDS: Final = {MAIN: b.MAIN, FULL: b.FULL, BACKFILL: b.CYCLE}


def with_instants_of(
    run: Sequence[Outcome], passes: Sequence[Pass], table: JobTable, model: ClusterModel
) -> dict[int, tuple[int, int]]:
    """Return submission and start of each job by its id; a run in which all jobs ended."""
    laid = layout(model)
    _, requests, _ = requests_of(table, submissions(table, model)[0], model, laid)
    jobs = requests.jobs.copy()
    jobs[:, b.SUBMIT] = [each.submitted or 0 for each in run]
    jobs[:, b.RUN] = [max(1, (each.end or 0) - (each.start or 0)) for each in run]
    jobs[:, b.BELIEVED] = jobs[:, b.LIMIT]
    order = np.argsort(jobs[:, b.SUBMIT], kind="stable")
    qos = requests.qos[order]
    board = new_board(Requests(jobs[order], qos), table.user, table.account, model, laid)
    ranks = ranks_of(board.jobs, qos, table.user, table.account, model)
    first = int(jobs[:, b.SUBMIT].min())
    instants = [(each.instant, _KINDS[each.kind]) for each in passes if each.instant >= first]
    play(board, ranks, laid.events, np.array(instants, np.int64).reshape(-1, 2), False)  # noqa: FBT003 compiled code takes no names
    ids = [run[place].job_id for place in order]
    rows = zip(board.jobs[:, b.SUBMIT].tolist(), board.jobs[:, b.START].tolist(), strict=True)
    return {job: row for job, row in zip(ids, rows, strict=True) if row[1] >= 0}
