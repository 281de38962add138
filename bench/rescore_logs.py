"""Figure: what predicting again at the start and ten minutes later adds on public logs, and notices of limits.

Public logs (`make data`), cut by time as docs/scorecard.md: trees learn from the first 60 and 70 %, the last 30 % are
judged. Every event of the log is told in the order of time to the state, predictor and corrections that the hub has; a
job is asked of at its submission, and as the hub asks again: as if it were submitted then. Average precision of
failure, with the rolling correction; in logs without waits a job starts when it is submitted. Then one line of JSON.
"""

import argparse
import heapq
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from tools.data.places import find

from gpuwaste.advice.predict.bundle import Bundle, load_bundle, our_features
from gpuwaste.advice.predict.corrections import BundleCorrections
from gpuwaste.advice.predict.manifest import Manifest
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.advice.predict.rolling import Rolling
from gpuwaste.advice.predict.targets import BY_NAME, labels
from gpuwaste.advice.rescore_store import EARLY_S, SHARE
from gpuwaste.advice.rescorer import limit_chance
from gpuwaste.core.units import MINUTE_S
from gpuwaste.jobs.history.follow import Follower
from gpuwaste.jobs.history.from_store import TableSnapshot
from gpuwaste.jobs.history.history_replay import replay
from gpuwaste.jobs.history.job_table import JobTable, known_at
from gpuwaste.jobs.history.recurrences import NEAR_LIMIT
from gpuwaste.jobs.history.swf_table import swf_table
from gpuwaste.jobs.job_event import HistoryEvent
from gpuwaste.models.bundle_export import write_bundle
from gpuwaste.models.event_replay import events_of
from gpuwaste.models.prediction_metrics import average_precision
from gpuwaste.models.target_fit import Fitted, fit
from gpuwaste.models.training_rows import HistorySplit, known_before, prepare, split_by_time
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.submit.job_request import request_of

LOGS: Final = {
    "KTH-SP2": "swf/KTH-SP2-1996-2.1-cln.swf.xz",
    "LLNL-Atlas": "swf/LLNL-Atlas-2006-2.1-cln.swf.xz",
    "CEA-Curie 2012-03/04": "swf/CEA-Curie-sample-2012-03_04.with_status.swf.xz",
    "CEA-Curie 2012-06/07": "swf/CEA-Curie-sample-2012-06_07.with_status.swf.xz",
}
TARGETS: Final = ("failure", "timeout", "walltime")
MOMENTS: Final = ("submission", "start", "early")
LEAD_S: Final = 2400.0
LEAST_P: Final = 0.5
_FAR: Final = 1 << 40
_CLUSTER: Final = "log"
Vectors = NDArray[np.float32]


@dataclass
class Asked:
    """Probabilities by row of the log, NaN where it was not asked: failure by moment, the limit by source."""

    failure: dict[str, NDArray[np.float64]]
    limit: dict[str, NDArray[np.float64]]
    usual: NDArray[np.bool_]


@dataclass
class Replay:
    """The test part told again; `due` are instants at which a running job is asked of again."""

    table: JobTable
    follower: Follower
    rolling: Rolling
    bundles: tuple[Bundle, Bundle]
    asked: Asked
    test: int
    due: list[tuple[int, int, str]] = field(default_factory=list)
    running: dict[int, JobRecord] = field(default_factory=dict)

    def run(self, begin: int) -> None:
        """Tell all events from an instant on."""
        bundle = self.bundles[0]
        self._use(bundle)
        for seq, event in enumerate(events_of(self.table, begin, _FAR, _CLUSTER), 1):
            self._ask_until(event.at)
            if event.kind == "submitted" and event.row >= self.test and bundle is not self.bundles[1]:
                bundle = self.bundles[1]
                self._use(bundle)
            if event.kind == "submitted" and event.row >= self.test:
                self._failure("submission", event.row, event.job, event.at)
            told = HistoryEvent(seq, event.kind, event.job.run_key, event.at, event.job, event.use)
            self.follower.apply([told])
            if event.kind == "started" and event.row >= self.test:
                self._started(event.row, event.job, event.at)
            elif event.kind == "ended":
                self.running.pop(event.row, None)
        self._ask_until(_FAR)

    def _use(self, bundle: Bundle) -> None:
        self.follower.correct_by(BundleCorrections(bundle, self.rolling), "log")
        state, recall = self.follower.state, self.follower.recall
        self._model = Predictor(bundle, state, self.rolling, recall)
        self._history = Predictor(None, state, None, recall)

    def _started(self, row: int, job: JobRecord, at: int) -> None:
        self.running[row] = job
        self._failure("start", row, job, at)
        heapq.heappush(self.due, (at + int(EARLY_S), row, "early"))
        if job.time_limit_s:
            lead_s = min(LEAD_S, SHARE * job.time_limit_s)
            heapq.heappush(self.due, (at + int(job.time_limit_s - lead_s), row, "limit"))

    def _ask_until(self, at: int) -> None:
        """Ask of the running jobs whose instant has come."""
        while self.due and self.due[0][0] <= at:
            when, row, what = heapq.heappop(self.due)
            job = self.running.get(row)
            if job is not None and what == "limit":
                self._limit(row, job, when)
            elif job is not None:
                self._failure(what, row, job, when)

    def _failure(self, moment: str, row: int, job: JobRecord, at: int) -> None:
        (found,) = self._model.scored_all([replace(request_of(job), submit=at)])
        p = next((one.p for one in found.targets if one.target == "failure"), None)
        self.asked.failure[moment][row] = np.nan if p is None else p

    def _limit(self, row: int, job: JobRecord, at: int) -> None:
        request = replace(request_of(job), submit=at)
        for name, predictor in (("model", self._model), ("history", self._history)):
            (found,) = predictor.scored_all([request])
            p = limit_chance(found.targets, at - (job.start or at), job.time_limit_s or 0)
            self.asked.limit[name][row] = np.nan if p is None else p
            self.asked.usual[row] = found.usually_late


def main() -> int:
    """Replay each log and print the figures."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", action="append", choices=list(LOGS), help="only this log (repeatable)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    told = []
    for name in options.log or LOGS:
        path = find(LOGS[name])
        if path is None:
            print(f"{name}: no log here: run `make data`")
            continue
        began = time.process_time()
        found = figures(path, options.seed)
        print(f"{name}: {time.process_time() - began:.0f} CPU s")
        for line in lines(found):
            print(f"  {line}", flush=True)
        told.append({"log": name, **found})
    print(json.dumps({"bench": "rescore_logs", "lead_s": LEAD_S, "least_p": LEAST_P, "logs": told}))
    return 0


def figures(path: Path, seed: int) -> dict[str, Any]:
    """Return the figures of one log."""
    data = prepare(swf_table(path).table, path.name)
    table, split = data.table, split_by_time(data.table)
    test, begin = int(split.test[0]), int(split.validation[0])
    nothing = np.full(len(table), np.nan)
    asked = Asked(
        {moment: nothing.copy() for moment in MOMENTS},
        {name: nothing.copy() for name in ("model", "history")},
        np.zeros(len(table), dtype=np.bool_),
    )
    since = int(table.submit[begin])
    before = known_at(table, since)
    follower = Follower(replay(before), _CLUSTER)
    follower.boot(TableSnapshot(before, 0))
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as folder:
        bundles = learnt(table, data.vectors, split, Path(folder), seed)
        rolling = Rolling(bundles[0].manifest)
        Replay(table, follower, rolling, bundles, asked, test).run(since)
    return {**_failures(table, asked, split), "limit": _limits(table, asked, split)}


def learnt(table: JobTable, vectors: Vectors, split: HistorySplit, folder: Path, seed: int) -> tuple[Bundle, Bundle]:
    """Return the bundle of the first part, by which the corrections begin, and that of the first two."""
    test = int(split.test[0])
    known = known_before(table, np.arange(test), int(table.submit[test]))
    firsts, seconds = [], []
    for name in TARGETS:
        own: dict[str, Any] = {"seed": seed, "threads": 1}
        firsts.append(fit(BY_NAME[name], table, vectors, split.train, split.validation, **own))
        seconds.append(fit(BY_NAME[name], table, vectors, known, np.empty(0, dtype=np.intp), **own))
    # The second keeps the first one's calibration: nothing else is chosen.
    return (
        _written(folder / "first", firsts, firsts, vectors),
        _written(folder / "second", seconds, firsts, vectors),
    )


def _written(directory: Path, fitted: list[Fitted], chosen: list[Fitted], vectors: Vectors) -> Bundle:
    ours = our_features()
    models = tuple(one.model for one in chosen)
    manifest = Manifest(
        name="bench", origin="site", cluster="", created_utc=0, feature_version=ours.version, feature_hash=ours.hash,
        features=ours.names, label_rule="", end_rule="accounting", window=(0, 0), rows=len(vectors), targets=models,
        left_out={}, references=(None,) * len(ours.names), files={},
    )  # fmt: skip
    boosters = {one.target.name: one.boosters for one in fitted}
    write_bundle(directory, manifest=manifest, boosters=boosters, vectors=vectors[:2000])
    return load_bundle(directory)


def _failures(table: JobTable, asked: Asked, split: HistorySplit) -> dict[str, Any]:
    """Return AP over all test jobs that started, and over those that ran for ten minutes."""
    y = labels("failure", table)
    test = split.test[np.isfinite(y[split.test]) & np.isfinite(asked.failure["start"][split.test])]
    early = test[np.isfinite(asked.failure["early"][test])]
    found: dict[str, Any] = {"jobs": len(test), "jobs_early": len(early)}
    found["waited"] = round(float((table.start[test] > table.submit[test]).mean()), 3)
    for name, rows, moments in (("ap", test, MOMENTS[:2]), ("ap_early", early, MOMENTS)):
        found[name] = {m: round(average_precision(y[rows], asked.failure[m][rows]), 4) for m in moments}
    return found


def _limits(table: JobTable, asked: Asked, split: HistorySplit) -> dict[str, Any]:
    """Return how many of the jobs that were running at their instant would have been told, and how many rightly.

    Logs stop jobs a little before their limit: what comes within a minute or 3 % of it has reached it, as in features.
    """
    reached = (table.run_s >= table.limit_s - MINUTE_S) | (table.run_s >= NEAR_LIMIT * table.limit_s)
    found = {}
    for name, p in asked.limit.items():
        rows = split.test[np.isfinite(p[split.test])]
        told = rows[(p[rows] >= LEAST_P) & ~asked.usual[rows]]
        right = int(reached[told].sum())
        found[name] = {"asked": len(rows), "reached": int(reached[rows].sum()), "told": len(told), "right": right}
    return found


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the figures as lines."""
    ap, early = found["ap"], found["ap_early"]
    yield f"failure, {found['jobs']:,} jobs ({found['waited']:.0%} waited): AP " + _moments(ap)
    yield f"  of them {found['jobs_early']:,} that ran for 10 min: AP " + _moments(early)
    for name, one in found["limit"].items():
        share = one["right"] / one["told"] if one["told"] else float("nan")
        yield (
            f"limit by {name}: {one['asked']:,} running at the instant, {one['reached']:,} reached it; "
            f"{one['told']:,} told, {share:.0%} rightly"
        )


def _moments(ap: dict[str, float]) -> str:
    return ", ".join(f"{moment} {value:.3f}" for moment, value in ap.items())


if __name__ == "__main__":
    raise SystemExit(main())
