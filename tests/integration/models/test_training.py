"""gpuwaste model train from a table to the registry: the bundle, its card, what is left out, what a failure keeps."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpuwaste.advice.predict.bundle import Registry, load_bundle
from gpuwaste.advice.predict.rolling import Rolling
from gpuwaste.advice.predict.targets import TARGETS
from gpuwaste.advice.renewal.card_types import TrainingSettings
from gpuwaste.core.errors import ModelError, NoDataError, UsageError
from gpuwaste.core.underuse import UnderUse
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import ABSENT, JobTable
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.models.bundle_training import Trained, train
from gpuwaste.models.job_source import JobSource
from gpuwaste.testing.planted import planted_table

CREATED = 1_790_000_000
RULE = UnderUse(below_pct=20.0)
SETTINGS = TrainingSettings(trials=1, threads=1, targets=("failure", "walltime", "gpu_underused"))


def history(jobs: int = 900, seed: int = 2) -> JobTable:
    """Return a planted history without GPUs."""
    table = planted_table(jobs, seed=seed, users=20)
    nothing = np.full(jobs, np.nan)
    return replace(
        table,
        gpus=np.zeros(jobs), used_ratio=nothing, gpus_active=nothing, gpu_coverage=nothing,
        ledger_at=np.full(jobs, ABSENT), under_use=RULE,
    )  # fmt: skip


def number(value: float | None) -> float:
    """Return a figure that has to be known."""
    assert value is not None
    return value


def source(table: JobTable) -> JobSource:
    return JobSource(table, "gw", "a made log")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    registry = Registry(tmp_path_factory.mktemp("models"))
    return train(source(history()), registry, SETTINGS, created_utc=CREATED)


@pytest.mark.long
def test_the_planted_signal_is_learnt(trained: Trained) -> None:
    """On jobs that it has not seen the model is far better than the base rate, and its quantiles hold about."""
    failure, walltime = (trained.card.targets[name].test for name in ("failure", "walltime"))
    assert failure.average_precision
    assert failure.base_rate
    assert walltime.quantiles
    assert walltime.request
    precision = failure.average_precision
    assert number(precision.value) > 1.5 * failure.base_rate
    assert number(precision.low) <= number(precision.value) <= number(precision.high)
    for q, level in list(walltime.quantiles.items())[1:]:
        assert level.under_rate.value == pytest.approx(1 - float(q), abs=0.1)
    reserved = [number(level.reserved_over_used.value) for level in walltime.quantiles.values()]
    assert reserved == sorted(reserved)
    assert reserved[2] < number(walltime.request.reserved_over_used)


def test_the_bundle_loads_and_says_what_it_was_made_of(trained: Trained) -> None:
    """The first bundle is the champion; window, rows, references and bins are those of the jobs learnt from."""
    manifest = load_bundle(trained.directory).manifest
    assert trained.promoted
    assert Registry(trained.directory.parent).champion() == trained.directory
    assert [model.target for model in manifest.targets] == ["failure", "walltime"]
    table = history()
    assert manifest.window[0] == table.submit[0]
    assert manifest.window[1] < table.submit[int(0.9 * len(table))]
    assert (manifest.origin, manifest.cluster, manifest.end_rule) == ("site", "gw", "accounting")
    assert manifest.under_use == RULE
    assert RULE.text in trained.card.label_rule
    assert len(manifest.references) == len(manifest.drift_bins) == len(manifest.features)
    assert trained.card.targets["failure"].thresholds == manifest.targets[0].thresholds


def test_targets_without_labels_are_left_out_in_words(trained: Trained) -> None:
    """No ledger: the card says so; what was not trained is in it too."""
    left_out = trained.card.left_out
    assert "no job with GPUs has a ledger" in left_out["gpu_underused"]
    assert left_out["memory"] == "not trained"
    assert set(left_out) | set(trained.card.targets) == {target.name for target in TARGETS}


def test_the_card_has_all_its_parts_and_no_names(trained: Trained) -> None:
    """Markdown and JSON hold every part, each plot is there and referred to, and no user is named."""
    text = (trained.directory / "card.md").read_text()
    for part in (
        "# gw-20260921", "What it learnt from", "Labels: failure", "How the figures came about", "In short",
        "average precision", "worst tenth of users", "best F1", "reserved over used", "as requested",
        "What it looks at", "Search: 1 trial ", "Targets left out", "agree", "must not be used for",
    ):  # fmt: skip
        assert part in text, part
    assert json.loads((trained.directory / "card.json").read_bytes()) == json.loads(json.dumps(trained.card.to_json()))
    listed = load_bundle(trained.directory).manifest.files
    plots = sorted(name for name in listed if name.endswith(".svg"))
    assert plots == [
        "failure.calibration.svg", "failure.precision_recall.svg", "walltime.coverage.svg", "walltime.limits.svg",
    ]  # fmt: skip
    assert all(f"]({name})" in text for name in plots)
    names = {*history().user.values, *history().name.values, *history().account.values}
    assert not {word.strip("`|(),") for word in text.split()} & names


def test_the_gate_compared_enough_rows(trained: Trained) -> None:
    """Each target's graph and trees gave the same on 10,000 rows and on the edges, without a flip."""
    for parity in trained.card.parity.values():
        assert parity.rows - parity.edges >= 10_000
        assert parity.edges > 1000
        assert parity.flips == 0


def test_a_predictor_can_go_on_from_the_snapshots(trained: Trained) -> None:
    """Beside the bundle lie the state after the last job, and the corrections that the last tenth gave."""
    table = history()
    state = HistoryState.load(trained.directory / "history.state")
    assert state.as_of == table.end.max()
    bundle = load_bundle(trained.directory)
    rolling = Rolling.load(trained.directory / "rolling.npz", bundle.manifest, bundle.hash)
    last = np.flatnonzero(np.isfinite(table.run_s))
    assert rolling.seen("walltime") == np.count_nonzero(last >= int(0.9 * len(table)))


@pytest.mark.long
def test_equal_data_and_seed_give_equal_files(trained: Trained, tmp_path: Path) -> None:
    """Another run, of one of the targets alone, writes the same ONNX and the same plots; another seed does not."""
    same = train(
        source(history()), Registry(tmp_path / "a"), replace(SETTINGS, targets=("failure",)), created_utc=CREATED
    )
    for name in ("failure.onnx", "failure.calibration.svg", "failure.precision_recall.svg"):
        assert (same.directory / name).read_bytes() == (trained.directory / name).read_bytes()
    other = replace(SETTINGS, targets=("failure",), seed=2, trials=0)
    another = train(source(history()), Registry(tmp_path / "b"), other, created_utc=CREATED)
    assert (another.directory / "failure.onnx").read_bytes() != (trained.directory / "failure.onnx").read_bytes()
    assert another.card.targets["failure"].search.trials == 0


def alone(state: Outcome, table: JobTable) -> JobTable:
    return replace(table, outcome=np.full(len(table), state, np.uint8))


def blank(table: JobTable) -> JobTable:
    """Return a log with -1 everywhere: no ends, no run times, no states, no requests but the number of processors."""
    nothing, absent = np.full(len(table), np.nan), np.full(len(table), ABSENT)
    return replace(
        alone(Outcome.UNKNOWN, table),
        run_s=nothing, limit_s=nothing, mem_b=nothing, nodes=nothing, max_rss_b=nothing, start=absent, end=absent,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (alone(Outcome.COMPLETED, history(300)), "failure: 0 of 1.. labelled jobs"),
        (alone(Outcome.FAILED, history(300)), "failure: (1..) of \\1 labelled jobs"),
        (blank(history(300)), "failure: the log does not say how jobs ended; failure_or_cancel: .*timeout: .*walltime"),
        (history(10), "10 jobs are too few"),
        (history(60), "walltime: .. jobs with a known value|failure: .* labelled jobs"),
    ],
)
def test_a_log_that_teaches_nothing_is_one_line_and_the_champion_stays(
    trained: Trained, table: JobTable, words: str
) -> None:
    """No failures, failures alone, -1 everywhere, too few rows: no data, in words; the registry is as it was."""
    registry = Registry(trained.directory.parent)
    wanted = ("failure",) if table.outcome.min() == table.outcome.max() and table.end.max() > 0 else ()
    with pytest.raises(NoDataError, match=words) as error:
        train(source(table), registry, TrainingSettings(trials=0, threads=1, targets=wanted), created_utc=CREATED + 1)
    assert "\n" not in str(error.value)
    assert registry.champion() == trained.directory
    assert [entry.name for entry in registry.list()] == [trained.name]


def test_a_bundle_that_cannot_be_registered_leaves_the_champion(trained: Trained) -> None:
    """Another bundle of the same name is refused after the whole training, and the champion is as it was."""
    registry = Registry(trained.directory.parent)
    before = load_bundle(trained.directory).hash
    settings = TrainingSettings(trials=0, threads=1, targets=("failure",))
    with pytest.raises(ModelError, match="another bundle has this name"):
        train(source(history(400, seed=4)), registry, settings, created_utc=CREATED, promote=True)
    champion = registry.load_champion()
    assert champion is not None
    assert champion.hash == before


def test_one_user_and_rows_told_twice(trained: Trained) -> None:
    """One user's log is learnt and the card warns; repeats are left out and counted; the champion stays unasked."""
    table = history(400, seed=5)
    one = replace(table, user=replace(table.user, codes=np.zeros(400, np.int32)))
    twice = one.take(np.sort(np.concatenate([np.arange(400), np.arange(0, 400, 4)])))
    registry = Registry(trained.directory.parent)
    settings = TrainingSettings(trials=0, threads=1, targets=("failure",))
    made = train(source(twice), registry, settings, created_utc=CREATED + 2)
    assert not made.promoted
    assert registry.champion() == trained.directory
    assert made.card.jobs == 400
    assert made.card.left["repeated rows of a run"] == 100
    assert "All jobs are one user's" in made.card.warnings[0]


def test_unknown_targets_are_wrong_usage(tmp_path: Path) -> None:
    """The line names the targets that there are."""
    with pytest.raises(UsageError, match="known are failure, failure_or_cancel, timeout"):
        train(source(history(100)), Registry(tmp_path), TrainingSettings(targets=("waste",)), created_utc=CREATED)
