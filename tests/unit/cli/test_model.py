"""gpuwaste model: what an operator types, from an empty registry to a rollback, on real bundles."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.advice.predict.bundles import manifest_of, probability_graph, quantile_graph

from gpuwaste.advice.predict.bundle import BASELINE, FeatureSet, Registry, our_features
from gpuwaste.advice.predict.drift import bins
from gpuwaste.advice.predict.manifest import Manifest, TargetModel
from gpuwaste.advice.predict.vectors import replay_vectors
from gpuwaste.cli.main import main
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.underuse import UNDER_USE
from gpuwaste.jobs.history.job_table import table_of
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.models.bundle_export import write_files
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    """Return the option that names a registry in which two bundles of our features lie."""
    ours = our_features()
    for number, name in enumerate(("spring", "autumn")):
        write_files(tmp_path / "models" / name, manifest_of(name, 1000 + number, ours), graphs_of(ours))
    return ["--models-dir", str(tmp_path / "models")]


def said(words: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(["model", *words]) == code, capsys.readouterr().err
    out = capsys.readouterr()
    if code in {1, 2, 3} and not out.out:
        assert out.err.count("\n") == 1
        return out.err
    return out.out


def test_an_operators_day(models: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """List, promote, promote another, show, roll back, prune: each says what there is then."""
    assert "no model in use" in said(["show", *models], capsys, 3)
    listed = said(["list", *models], capsys)
    assert listed.index("spring") < listed.index("autumn")
    assert "*" not in listed
    assert "champion: spring" in said(["promote", "spring", *models], capsys)
    assert "champion: autumn" in said(["promote", "autumn", *models], capsys)
    champion = [m["name"] for m in json.loads(said(["list", "--json", *models], capsys))["models"] if m["champion"]]
    assert champion == ["autumn"]
    shown = said(["show", *models], capsys)
    assert "Model autumn" in shown
    assert "walltime" in shown
    assert "no memory: no label" in shown
    assert json.loads(said(["show", "spring", "--json", *models], capsys))["name"] == "spring"
    for action in (["promote", "spring"], ["rollback"]):
        refused = said([*action, "--if-champion", "spring", *models], capsys, 1)
        assert "autumn is in use, not 'spring': nothing is changed" in refused
    assert "champion: spring" in said(["rollback", "--if-champion", "autumn", *models], capsys)
    assert "no previous model" in said(["rollback", *models], capsys, 1)
    assert "added: baseline" in said(["add", str(BASELINE), *models], capsys)
    assert "removed: autumn, baseline" in said(["prune", "--keep", "0", *models], capsys)


def test_a_broken_bundle_is_one_line_and_the_champion_stays(
    models: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Promoting a truncated bundle exits with 1; the list goes on and names its trouble."""
    said(["promote", "spring", *models], capsys)
    broken = tmp_path / "models" / "autumn" / "timeout.onnx"
    broken.write_bytes(broken.read_bytes()[:50])
    assert "timeout.onnx" in said(["promote", "autumn", *models], capsys, 1)
    assert "known are autumn, spring" in said(["promote", "winter", *models], capsys, 1)
    assert "--keep -1" in said(["prune", "--keep", "-1", *models], capsys, 2)
    listed = said(["list", *models], capsys)
    assert "* spring" in listed
    assert "timeout.onnx" in listed


def test_an_empty_registry_is_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a directory there is nothing to list, and JSON says an empty list."""
    where = ["--models-dir", str(tmp_path / "absent")]
    assert "train one with gpuwaste model train" in said(["list", *where], capsys, 3)
    assert json.loads(said(["list", "--json", *where], capsys, 3))["models"] == []
    for action in ("show", "status"):
        assert "no model in use" in said([action, *where], capsys, 3)


def test_status_reads_a_store_and_names_what_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store whose later jobs ask for a hundred times the CPUs: the feature is named and the exit code is 4."""
    store = tmp_path / "hub.duckdb"
    jobs = [
        JobRecord(
            cluster="gw",
            job_id=i,
            submit=1000 + 60 * i,
            name=f"train{i % 3}",
            user=f"u{i % 5}",
            partition="gpu",
            req_tres=f"cpu={(8 if i < 600 else 800) + i % 7},node=1",
            time_limit_s=3600,
            start=1000 + 60 * i,
            end=1100 + 60 * i,
            elapsed_s=100,
            state="FAILED" if i % 4 == 0 else "COMPLETED",
        )
        for i in range(1200)
    ]
    fill(store, jobs)
    table = table_of(jobs)
    edges, shares = bins(replay_vectors(table).vectors[:600])
    window = (0, int(table.submit[599]))
    base = manifest_of("spring", features=our_features())
    write_champion(tmp_path / "models", replace(base, drift_bins=edges, drift_shares=shares, window=window))
    where = ["--models-dir", str(tmp_path / "models")]
    document = json.loads(said(["status", "--json", "--store", str(store), *where], capsys, 4))
    assert document["jobs"] == 600
    moved = [f["feature"] for f in document["features"] if f["level"] == "much"]
    assert "cpus" in moved
    assert "limit" not in moved
    assert {t["target"] for t in document["targets"]} == {"failure", "timeout", "walltime"}
    text = said(["status", "--store", str(store), *where], capsys, 4)
    assert "another population" in text
    assert max(len(line) for line in text.splitlines()) < 140
    assert "no such file: --store" in said(["status", "--store", str(tmp_path / "absent"), *where], capsys, 2)


def test_show_names_the_rule_of_the_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rule of under-use is among the facts; where the site has set another one since, a line says so."""
    ours = our_features()
    manifest = replace(manifest_of("gpus", features=ours), targets=(TargetModel("gpu_underused", "g.onnx"),))
    write_files(tmp_path / "models" / "gpus", manifest, {"g.onnx": probability_graph("gpu_underused", features=ours)})
    (tmp_path / "gw.toml").write_text("[hub]\nunderused_below_pct = 20.0\n")
    where = ["gpus", "--models-dir", str(tmp_path / "models")]
    shown = said(["show", *where], capsys)
    assert UNDER_USE.text in shown
    assert "site's rule" not in shown
    set_since = ["--config", str(tmp_path / "gw.toml")]
    assert "site's rule is mean below 20 %" in " ".join(said(["show", *where, *set_since], capsys).split())
    document = json.loads(said(["show", "--json", *where, *set_since], capsys))
    assert document["under_use"] == {"below_pct": 5.0, "min_s": 30.0, "min_coverage": 0.8}


def fill(path: Path, jobs: list[JobRecord]) -> None:
    """Write a hub's store that holds these runs."""
    store = HubStore.open(path, SystemClock())
    try:
        upsert_jobs(store, jobs)
    finally:
        store.close()


def write_champion(models: Path, manifest: Manifest) -> None:
    """Write and promote a bundle of our features."""
    write_files(models / manifest.name, manifest, graphs_of(our_features()))
    Registry(models).promote(manifest.name)


def graphs_of(features: FeatureSet) -> dict[str, bytes]:
    return {
        "failure.onnx": probability_graph("failure", features=features),
        "timeout.onnx": probability_graph("timeout", 2, features=features),
        "walltime.onnx": quantile_graph(features),
    }
