"""A bundle of waits from training to the hub's answer: trained on a history, promoted, used, rolled back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.integration.hub.rig import Rig
from tests.integration.hub.test_plan import ALICE, HOUR, ask
from tests.unit.plan.test_live_queue import NODE_LIST, NOW, job

from gpuwaste.advice.predict.bundle import Registry
from gpuwaste.core.errors import ModelError, NoDataError
from gpuwaste.jobs.history.job_table import table_of
from gpuwaste.models.job_source import JobSource
from gpuwaste.models.wait_training import MIN_STARTED, train_waits, waits_registry
from gpuwaste.plan.expectations import Expectations
from gpuwaste.plan.learnt_waits import LearntWaits
from gpuwaste.plan.wait_bundle import load_trees
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.cluster_model import Partition
from gpuwaste.slurm.submit.job_request import request_like

pytestmark = pytest.mark.long

TRES = "cpu=1,mem=1G,node=1,gres/gpu=2"


def history(count: int, partition: str = "gpu") -> JobSource:
    """Return jobs of which each waits an hour, give or take ten minutes."""
    rng = np.random.default_rng(4)
    submits, waits = np.sort(rng.integers(0, 1200 * count, count)).tolist(), rng.integers(3000, 4200, count).tolist()
    jobs = [
        JobRecord(
            cluster="gw",
            job_id=number,
            submit=submit,
            start=submit + wait,
            end=submit + wait + 600,
            elapsed_s=600,
            cpus=1,
            user=f"u{number % 5}",
            partition=partition,
            req_tres=TRES,
            time_limit_s=3600,
            state="COMPLETED",
        )
        for number, (submit, wait) in enumerate(zip(submits, waits, strict=True), 1)
    ]
    return JobSource(table_of(jobs), "gw", "drawn jobs")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of models with a bundle of waits in use."""
    place = tmp_path_factory.mktemp("models")
    train_waits(history(700), place, created_utc=NOW, threads=1)
    return place


def test_the_card_says_what_it_is_of(models: Path) -> None:
    """Figures beside baselines, what was learnt from, and the promotion of the first bundle."""
    registry = waits_registry(models)
    champion = registry.champion()
    assert champion is not None
    trees = load_trees(champion)
    assert [pool.name for pool in trees.machine.pools] == ["gpu"]
    text = (champion / "card.md").read_text()
    assert "Trained on 700 jobs of drawn jobs" in text
    assert "rolling quantile" in text
    assert Registry(models).list() == [], "the registry of other models does not show it"


def test_too_few_waits_are_refused(tmp_path: Path) -> None:
    """Below the least number of jobs there is one line, and no bundle."""
    with pytest.raises(NoDataError, match=f"at least {MIN_STARTED} are needed"):
        train_waits(history(60), tmp_path, created_utc=NOW, threads=1)
    assert waits_registry(tmp_path).list() == []


def test_a_second_bundle_waits_for_its_promotion(models: Path) -> None:
    """Training again leaves the champion; promoting and rolling back move it."""
    registry = waits_registry(models)
    first = registry.champion()
    assert first is not None
    card = train_waits(history(600), models, created_utc=NOW + 60, threads=1).card
    assert not card.promoted
    assert registry.champion() == first
    registry.promote(card.name)
    assert registry.champion() == models / "waits" / card.name
    registry.rollback()
    assert registry.champion() == first


def test_a_spoilt_bundle_is_refused(models: Path, tmp_path: Path) -> None:
    """Another content than its manifest lists is one line with the file."""
    champion = waits_registry(models).champion()
    assert champion is not None
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in champion.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / "machine.json").write_text("{}")
    with pytest.raises(ModelError, match=r"machine.json: its checksum"):
        load_trees(copy)


@pytest.fixture
def queue(hub: Rig) -> Rig:
    """Return a hub whose a100 are all free."""
    hub.slurm.node_list = NODE_LIST
    hub.slurm.partition_list = [Partition("gpu", ("gpu1", "gpu2"), default=True, state="UP"), Partition("big", ("h1",))]
    hub.slurm.running = []
    return hub


def test_the_hub_answers_from_its_bundle(queue: Rig, models: Path) -> None:
    """What waited an hour although nodes were free is expected to do so; a partition not learnt is simulated."""
    expectations: Any = queue.hub.get(Expectations)
    expectations._models_dir = models
    answer = ask(queue, ALICE, {**HOUR, "gpus": 2}, {**HOUR, "partition": "big", "gpus": 2}, {**HOUR, "gpus": 99})
    assert answer.status == 200, answer.body
    learnt, simulated, never = answer.json["expected"]
    at = answer.json["at"]
    assert learnt["source"] == "learnt from past waits"
    assert at + 2700 < learnt["start"]["p10"] < at + 3600 < learnt["start"]["p90"] < at + 4500
    assert learnt["end"]["p50"] > learnt["start"]["p50"]
    assert simulated["source"].startswith("simulated")
    assert simulated["start"]["p50"] == at
    assert never is None


def test_what_starts_meanwhile_is_known(queue: Rig, models: Path) -> None:
    """Between two readings of the history a start is taken from the queue, once."""
    waits = LearntWaits(queue.hub.store, models)
    now = NOW
    waits.step({}, now)
    assert waits.in_use
    ran = replace(job(5, "RUNNING"), submit=now - 500, start=now + 10)
    for later in (20, 40):
        waits.step({5: ran}, now + later)
    row = waits._rows.asked([request_like(job(6))])
    assert [one.wait_s for one in waits._known.waits.last(row, 0)["partition"]] == [510]
