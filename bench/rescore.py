"""Figure: running jobs predicted again: seconds for 5,000 that are due, and for a minute without any (--due 500).

A store of made-up jobs: ended ones of many users, running ones of which some are due at once (their start), and what
was said before of as many ended runs as a site keeps. A bundle of all targets at the shipped recipe's size scores them
with the hub's own parts, events and mails among them. Beside it the same jobs asked of one by one, as `gpuwaste
predict` asks. Prints a table, then one line of JSON.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bench.predict import learn, made_up, manifest_of
from gpuwaste.act.notify.notice_runner import Accounting
from gpuwaste.act.notify.notify_parts import NotifyParts
from gpuwaste.advice.predict.bundle import Registry
from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.advice.predict.targets import TARGETS
from gpuwaste.advice.rescore_store import EARLY_S, SHARE, Lead, RescoreSettings, RescoreStore
from gpuwaste.advice.rescorer import Rescorer
from gpuwaste.core.act_config import NotifyConfig
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.scope import Scope
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.models.bundle_export import write_bundle
from gpuwaste.slurm.submit.job_request import request_of
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore

ALONE: Final = 200  # jobs that are asked of one by one
CLUSTER: Final = "gw"
_JOBS: Final = """
INSERT INTO jobs BY NAME
SELECT
    $cluster AS cluster, $first + n AS job_id, $now - age AS run_start, $now - age - 30 AS submit,
    ($first + n)::VARCHAR AS printed_id, 'job' || n % 50 AS name, 'u' || n % 500 AS "user", 'a' || n % 20 AS account,
    '' AS "group", 'gpu' AS "partition", '' AS qos, 86400 AS time_limit_s,
    'cpu=8,mem=32G,node=1,gres/gpu=1' AS req_tres,
    '' AS submit_line, false AS interactive, $now - age AS "start", 'n' || n % 100 AS nodes, 1 AS n_nodes, 8 AS cpus,
    1 AS gpus, '' AS gpu_type, '' AS alloc_tres, CASE WHEN $ended THEN $now - age + 600 + n % 7000 END AS "end",
    CASE WHEN $ended THEN 600 + n % 7000 END AS elapsed_s, 0 AS suspended_s,
    CASE WHEN NOT $ended THEN 'RUNNING' WHEN n % 7 = 0 THEN 'FAILED' ELSE 'COMPLETED' END AS state, '' AS verdict_id
FROM (SELECT n, ($youngest + n * 37 % $span)::BIGINT AS age FROM range($count) t (n))
"""
_SAID: Final = """
INSERT INTO rescored
SELECT cluster, job_id, run_start, unnest(['start', 'early']), run_start, map(['failure', 'timeout'], [0.1, 0.2]), NULL,
    NULL, false, ''
FROM jobs
WHERE "end" IS NOT NULL OR run_start < $now - 600
ORDER BY run_start
"""


def main() -> int:
    """Fill a store, score, look again, ask one by one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000, help="ended jobs, all of which were scored twice")
    parser.add_argument("--running", type=int, default=20_000)
    parser.add_argument("--due", type=int, default=5_000, help="running jobs that have just started, in addition")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as folder:
        figures = measured(Path(folder), options.jobs, options.running, options.due)
    for name, value in figures.items():
        print(f"{name:<28}{value:>12}")
    print(json.dumps({"bench": "rescore", "load_average": round(os.getloadavg()[0], 1), **figures}))
    return 0


def measured(home: Path, jobs: int, running: int, due: int) -> dict[str, float | int]:
    """Return the figures; the clock's time and, as `cpu`, that of all threads of this process."""
    promote(home / "models")
    clock = SystemClock()
    now = clock.utc_s()
    fill(home / "hub.duckdb", now, jobs, running, due)
    store = HubStore.open(home / "hub.duckdb", clock, 512)
    own: dict[str, Any] = {"clock": clock, "models_dir": home / "models", "state_dir": home}
    predictions = Predictions(store, lambda: CLUSTER, **own)
    predictions.step()
    settings = RescoreSettings(enabled=True, lead=Lead(EARLY_S, 2400.0, SHARE), least_p=0.5)
    config = NotifyConfig(address="{user}@example.org")
    notify = NotifyParts.made(config, store, LedgerSettings(), clock, lambda: Accounting(now, failed=False))
    kept = RescoreStore(store, clock)
    more: dict[str, Any] = {"settings": settings, "noted": notify.limits.writer}
    rescorer = Rescorer(kept, predictions, lambda: CLUSTER, clock, tells=lambda: True, **more)
    alone = [one.job for one in kept.due(CLUSTER, settings.lead, ALONE)]
    figures: dict[str, float | int] = {"jobs": jobs, "running": running + due}
    (found, new), figures["due_s"], figures["due_cpu_s"] = timed(lambda: rescorer.rescore(CLUSTER))
    assert found == new >= due, (found, new)  # noqa: S101 else the figure is of something else
    figures["due"] = found
    _, figures["nothing_due_s"], figures["nothing_due_cpu_s"] = timed(rescorer.step)
    everything = Scope("", everything=True)
    ways: dict[str, Callable[[], Any]] = {
        "scored_alone": lambda: [predictions.scored([request_of(job)]) for job in alone],
        "predict": lambda: [predictions.for_job(everything, job.printed_id) for job in alone],
    }
    for name, way in ways.items():
        _, _, used = timed(way)
        figures[f"{name}_all_cpu_s"] = round(used / len(alone) * found, 2)
    figures["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
    store.close()
    return figures


def promote(models: Path) -> None:
    """Make a bundle of made-up trees the champion."""
    rows = made_up(4000)
    boosters = {target.name: learn(target, rows, 0) for target in TARGETS}
    models.mkdir()
    write_bundle(models / "bench", manifest=manifest_of(), boosters=boosters, vectors=rows)
    Registry(models).promote("bench")


def fill(path: Path, now: int, jobs: int, running: int, due: int) -> None:
    """Make the store."""
    db = Database.open(path, "hub", {"threads": "2"})
    year = 365 * 86400
    kinds = ((0, jobs, 86400, year, True), (jobs, running, 700, 40_000, False), (jobs + running, due, 30, 500, False))
    for first, count, youngest, span, ended in kinds:
        values = {"first": first, "count": count, "youngest": youngest, "span": span, "ended": ended}
        db.execute(_JOBS, {**values, "cluster": CLUSTER, "now": now})
    db.execute(_SAID, {"now": now})
    db.execute("CHECKPOINT")
    db.close()


def timed(do: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what came out, the seconds of the clock, and those of the processor."""
    began, used = time.perf_counter(), time.process_time()
    found = do()
    return found, round(time.perf_counter() - began, 3), round(time.process_time() - used, 3)


if __name__ == "__main__":
    sys.exit(main())
