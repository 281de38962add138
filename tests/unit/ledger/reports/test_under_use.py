"""One rule of under-use: a site's setting reaches every reader of the same job."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.advice.predict.bundles import FAILURE, FEATURES, manifest_of, probability_graph
from tests.unit.models.test_job_source import direct_hub
from tests.unit.store.test_verdict_store import HOUR, NOW, open_store, run, said

from gpuwaste.advice.predict.bundle import load_bundle
from gpuwaste.advice.predict.corrections import BundleCorrections
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.advice.predict.rolling import Rolling
from gpuwaste.advice.predict.targets import labels
from gpuwaste.advice.verdicts.verdict_score import score_document
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.jobs.history.from_store import read_table
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_replay import replay
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.jobs.run_store import history_events, upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.job_document import job_document
from gpuwaste.ledger.reports.report_builder import report_document
from gpuwaste.models.bundle_export import write_files
from gpuwaste.models.job_source import load_hub
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.submit.job_request import request_of
from gpuwaste.store.hub.hub_store import HubStore

RUN = RunKey("gw", 10, NOW + 5)


def site(mean_pct: int, known: float = 1.0, **thresholds: float) -> tuple[HubStore, VerdictStore, LedgerSettings]:
    """Return a store with one completed run of ten minutes on one GPU, of which a verdict had said that it is idle."""
    settings = LedgerSettings(**thresholds)
    store, verdicts = open_store()
    store.under_use = settings.under_use
    verdicts.add([said(1, triggers={"gpu_underused": 0.9}, p={"gpu_underused": 0.9}, action="warn")], "ctl")
    upsert_jobs(store, [run(10, said(1).id, "COMPLETED", gpus=1, req_tres="cpu=1,gres/gpu=1")])
    known_ms = int(600_000 * known)
    hour = AllocationHour(
        RUN, "gpu1", "GPU-0", HOUR, 1, RUN.start * 1000, (RUN.start + 600) * 1000,
        final=True, util_ms={mean_pct: known_ms}, unknown_ms={"gap": 600_000 - known_ms},
    )  # fmt: skip
    upsert_hours(store, [hour])
    return store, verdicts, settings


def label(table: JobTable) -> tuple[float, float]:
    """Return whether the run is under-used, and how many GPUs it needed (one that was used a little is needed)."""
    return float(labels("gpu_underused", table)[0]), float(labels("gpus_needed", table)[0])


def told(store: HubStore) -> HistoryState:
    """Return the state of who followed the stream event by event."""
    state = HistoryState(under_use=store.under_use)
    Follower(state, "gw").apply(history_events(store, 0, 99))
    return state


def expected_by_history(state: HistoryState) -> float | None:
    """Return the probability of under-use that a user's last job gives."""
    again = request_of(run(11, "", gpus=1, req_tres="cpu=1,gres/gpu=1", submit=NOW + 9000))
    said_of = {target.target: target.p for target in Predictor(None, state).predict(again).targets}
    return said_of["gpu_underused"]


@pytest.mark.parametrize(("below_pct", "under"), [(5.0, False), (20.0, True), (10.0, False)])
def test_every_reader_of_a_job_goes_by_the_setting(below_pct: float, under: bool) -> None:
    """Report, job page, score of verdicts, labels from file and hub, history: one answer for a mean of 10 %."""
    store, verdicts, settings = site(10, underused_below_pct=below_pct)
    now = NOW + 86400
    with store.reader() as db:
        report = report_document(db, "cluster", "gw", NOW, now, settings, now).to_json()
        job = job_document(db, "10", settings, now)
        direct = read_table(db, "gw", store.under_use).table
    assert job is not None
    score = score_document(*verdicts.score(0), since=0, now=now)
    through_hub = load_hub(direct_hub(store)).table
    assert through_hub.under_use == direct.under_use == score.under_use == settings.under_use
    answers: dict[str, Any] = {
        "report": report["under_used"]["devices"] == 1,
        "job": job.to_json()["runs"][0]["devices"][0]["under_used"],
        "score": score.policies[0].hits == 1,
        "labels from the store": label(direct) == (1, 1),
        "labels through the hub": label(through_hub) == (1, 1),
        "replayed history": expected_by_history(replay(direct)) == 1.0,
        "followed history": expected_by_history(told(store)) == 1.0,
    }
    assert answers == dict.fromkeys(answers, under)


@pytest.mark.long
@pytest.mark.parametrize(
    ("thresholds", "judged"),
    [({}, False), ({"min_coverage": 0.5}, True), ({"min_coverage": 0.5, "underused_min_s": 600.0}, False)],
)
def test_what_is_known_enough_and_long_enough_is_the_sites_matter_too(
    thresholds: dict[str, float], judged: bool
) -> None:
    """A run of ten minutes of which 60 % are known is judged by all where the site takes that, else by none."""
    store, verdicts, settings = site(1, 0.6, **thresholds)
    now = NOW + 86400
    with store.reader() as db:
        report = report_document(db, "cluster", "gw", NOW, now, settings, now).to_json()
        direct = read_table(db, "gw", store.under_use).table
    answers = {
        "report": report["under_used"]["judged_devices"] == 1,
        "score": verdicts.score(0)[0][0]["judged"] == 1,
        "labels": bool(np.isfinite(labels("gpu_underused", direct)[0])),
    }
    assert answers == dict.fromkeys(answers, judged)


def test_another_rule_does_not_know_how_many_gpus_worked() -> None:
    """Seen by the rule of an older model, the mean is judged by its limit, and the count by the site's is unknown."""
    store, _, settings = site(10, underused_below_pct=20.0)
    with store.reader() as db:
        table = read_table(db, "gw", settings.under_use).table
    under, active = label(table.by_rule(LedgerSettings().under_use))
    assert under == 0
    assert np.isnan(active)
    assert label(table.by_rule(settings.under_use)) == (1, 1)


def test_corrections_answer_the_question_of_their_model(tmp_path: Path) -> None:
    """A model of 5 % at a site of 20 % learns that a mean of 10 % was enough, and nothing of how many GPUs worked."""
    manifest = replace(manifest_of("gpus"), targets=(replace(FAILURE, target="gpu_underused"),))
    write_files(tmp_path / "gpus", manifest, {"failure.onnx": probability_graph("gpu_underused")}, FEATURES)
    bundle, observed = load_bundle(tmp_path / "gpus", FEATURES), dict[str, float]()

    class Noted(Rolling):
        def observe(self, target: str, raw: Sequence[float], label: float, *, busy: bool = False) -> None:
            del raw, busy
            observed[target] = label

    store, _, settings = site(10, underused_below_pct=20.0)
    (ended,) = [event for event in history_events(store, 0, 99) if event.kind == "ended"]
    assert ended.job is not None
    assert ended.use is not None
    scores = {"gpu_underused": np.zeros(1, np.float32), "gpus_needed": np.zeros(3, np.float32)}
    learning = BundleCorrections(bundle, Noted(bundle.manifest, bundle.hash))
    learning.gpu_use(scores, ended.job, ended.use, settings.under_use)
    assert observed["gpu_underused"] == 0
    assert np.isnan(observed["gpus_needed"])
