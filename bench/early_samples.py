"""Figure: what the first minutes of GPU use add to the prediction of failure, on the public Philly log.

The log has the use of each GPU in the first four minutes of multi-GPU jobs that ran for five minutes and more, a
sample of the cluster's jobs. Trees with the product's features of the submission are compared with trees that have
those of the first minutes too: split by time 60/10/30, average precision of the last part, the difference with an
interval of 95 % by a paired bootstrap over users. Killed jobs are left out, as cancelled ones are in the product's
label. Then a line of JSON.
"""

import argparse
import json
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tools.data.places import own_place, places

from gpuwaste.advice.predict.model_comparison import PairedComparison, compare
from gpuwaste.advice.predict.targets import BY_NAME
from gpuwaste.jobs.history.job_table import table_of
from gpuwaste.models.evaluate.method import EvaluationTask
from gpuwaste.models.training_rows import Prepared, prepare, split_by_time
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.duckdb_connection import connect

FOLDER: Final = "gpu/philly_dre"
STATES: Final = {"Pass": "COMPLETED", "Failed": "FAILED", "Killed": "CANCELLED"}
MINUTES: Final = 4
_JOBS: Final = """
    SELECT row_number() OVER (ORDER BY submitted_time, jobid) AS number, jobid, status, vc, "user",
        epoch(submitted_time)::BIGINT, epoch(start_time)::BIGINT, epoch(end_time)::BIGINT, n_nodes, n_gpus
    FROM read_parquet($jobs) WHERE submitted_time <= start_time AND start_time < end_time ORDER BY number
"""
_USE: Final = """
    SELECT jobid, minute, avg(gpu_util), count_if(gpu_util = 0) / count(*), max(gpu_util) - min(gpu_util)
    FROM read_parquet($gpus) WHERE minute BETWEEN 0 AND 3 AND NOT isnan(gpu_util) GROUP BY ALL
"""


def read(folder: Path) -> tuple[Prepared, NDArray[np.float32]]:
    """Return the jobs with their features, and the columns of the first minutes in the same order, NaN not known."""
    db = connect(options={"threads": "1"})
    rows = db.execute(_JOBS, {"jobs": str(folder / "philly_sampled_jobs.parquet")}).fetchall()
    records = [
        JobRecord(
            cluster="philly",
            job_id=number,
            user=user,
            partition=vc,
            submit=submit,
            start=start,
            end=end,
            elapsed_s=end - start,
            state=STATES[status],
            nodes=nodes,
            gpus=gpus,
            req_tres=f"node={nodes},gres/gpu={gpus}",
        )
        for number, _, status, vc, user, submit, start, end, nodes, gpus in rows
    ]
    data = prepare(table_of(records), "Philly")
    place = {int(number): index for index, number in enumerate(data.table.job_id)}
    place_of = {row[1]: place[row[0]] for row in rows}
    early = np.full((len(data.table.job_id), 3 * MINUTES), np.nan, np.float32)
    for job, minute, *values in db.execute(_USE, {"gpus": str(folder / "philly_gpu_util_m10_p3.parquet")}).fetchall():
        if job in place_of:
            early[place_of[job], 3 * minute : 3 * minute + 3] = values
    return data, early


def compared(data: Prepared, early: NDArray[np.float32], seed: int) -> PairedComparison:
    """Return the comparison on the last part of the log."""
    task = EvaluationTask(BY_NAME["failure"], data.table, data.vectors, split_by_time(data.table), seed, 1)
    sides = []
    for vectors in (data.vectors, np.hstack([data.vectors, early])):
        learnt = task.learn_on(np.ascontiguousarray(vectors))
        sides.append(learnt.values(task.table, task.busy)[task.test])
    y = task.y[task.test].astype(np.float64)
    return compare(y, sides[0], sides[1], data.table.user.codes[task.test])


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=next(places(), own_place()))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    data, early = read(options.data / FOLDER)
    known = int(np.isfinite(early).any(axis=1).sum())
    print(f"{len(early):,} jobs, the first minutes known of {known:,}")
    result = []
    for seed in range(1, options.seeds + 1):
        found = compared(data, early, seed)
        ap = found.average_precision
        print(
            f"seed {seed}: {found.jobs:,} jobs of {found.users} users, {found.positives:,} failed; at submission"
            f" {ap.first:.3f}, with the first {MINUTES} minutes {ap.second:.3f},"
            f" {ap.difference:+.3f} [{ap.low:+.3f}, {ap.high:+.3f}]",
            flush=True,
        )
        result.append([round(float(v), 4) for v in (ap.first, ap.second, ap.difference, ap.low, ap.high)])
    print(json.dumps({"bench": "early-samples", "jobs": len(early), "known": known, "seeds": result}))


if __name__ == "__main__":
    main()
