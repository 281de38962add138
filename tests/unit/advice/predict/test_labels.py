"""Labels: what a run can show of each target, never more than what its request let it take."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples

import gpuwaste.advice.predict
from gpuwaste.advice.predict.predictor import cap
from gpuwaste.advice.predict.targets import BY_NAME, TARGETS, labels, request_cap
from gpuwaste.advice.verdicts.hits import RunEnd, came_true
from gpuwaste.core.job_states import ENDED
from gpuwaste.jobs.history.job_table import GpuUse, JobTable, table_of
from gpuwaste.models.evaluate.method import truth
from gpuwaste.models.target_fit import learnable
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.testing.histories import made_table, requests

QUANTITIES = [target.name for target in TARGETS if target.kind == "quantiles"]
HOUR, GIB = 3600, 1 << 30


def label(target: str, use: GpuUse | None = None, **facts: Any) -> float:
    """Return the label of one run of an hour's limit, 4 GiB and two GPUs."""
    values: dict[str, Any] = {"state": "COMPLETED", "elapsed_s": 600, "time_limit_s": HOUR, "max_rss_b": GIB, **facts}
    values.setdefault("req_tres", "cpu=1,node=1,mem=4G,gres/gpu=2")
    job = JobRecord("c", 1, 1000, start=1000, end=1000 + (values["elapsed_s"] or 0), **values)
    return float(labels(target, table_of([job], use=[use]))[0])


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", ""])
def test_a_run_beyond_its_limit_shows_the_limit(state: str) -> None:
    """However a run ended, what it took after its limit is no walltime that anybody could have asked for."""
    assert label("walltime", state=state, elapsed_s=3 * HOUR) == HOUR
    assert label("walltime", state=state, elapsed_s=HOUR - 1) == HOUR - 1
    assert label("walltime", state=state, elapsed_s=3 * HOUR, time_limit_s=None) == 3 * HOUR
    assert label("walltime", state=state, elapsed_s=3 * HOUR, time_limit_s=0) == 3 * HOUR


def test_a_run_without_a_limit_has_no_timeout() -> None:
    """Where no limit was set, or one of 0, which is none, no run came to it."""
    assert label("timeout", state="FAILED", elapsed_s=HOUR) == 1
    assert label("timeout", state="FAILED", elapsed_s=HOUR - 1) == 0
    assert np.isnan(label("timeout", state="FAILED", time_limit_s=0))
    assert np.isnan(label("timeout", state="FAILED", time_limit_s=None))


@pytest.mark.parametrize("state", [*sorted(ENDED), ""])
@pytest.mark.parametrize("elapsed_s", [0, 600, HOUR])
@pytest.mark.parametrize("limit_s", [None, HOUR])
def test_labels_are_what_scores_judge_by(state: str, elapsed_s: int, limit_s: int | None) -> None:
    """Of each event, training's label is what verdicts/hits.py says of that end, by which the store scores."""
    at_limit = elapsed_s >= limit_s if limit_s and elapsed_s else None
    for target in (target.name for target in TARGETS if target.kind == "probability"):
        for used, under in ((0.9, False), (0.01, True)):
            end = RunEnd(state, under=under if elapsed_s else None, at_limit=at_limit)
            said = came_true(target, end)
            use = GpuUse(used, 2, 1.0, 5000)
            found = label(target, use, state=state, elapsed_s=elapsed_s, time_limit_s=limit_s)
            assert said == (None if np.isnan(found) else bool(found)), (target, end)


def test_no_other_module_says_which_states_are_a_failure_or_a_timeout() -> None:
    """advice/verdicts/hits.py is the one place of that: labels and the store's scores name no state of their own."""
    root = Path(next(iter(gpuwaste.advice.predict.__path__))).parent
    assert "Outcome.FAILED" not in (root / "predict/targets.py").read_text()
    for part in ("runs", "targets"):
        text = (root / f"queries/verdicts_{part}.sql").read_text()
        assert not re.search("FAILED|TIMEOUT|COMPLETED", text), part


def test_memory_beyond_the_request_shows_the_request() -> None:
    """Where memory is not enforced a task outgrows the request, and where it is the run ends just above."""
    assert label("memory", max_rss_b=6 * GIB) == 4 * GIB
    assert label("memory", max_rss_b=4 * GIB + 4096, state="OUT_OF_MEMORY") == 4 * GIB
    assert label("memory", max_rss_b=3 * GIB) == 3 * GIB
    assert label("memory", max_rss_b=6 * GIB, req_tres="cpu=1,node=1") == 6 * GIB
    assert label("memory", max_rss_b=6 * GIB, req_tres="cpu=1,mem=0,node=1") == 6 * GIB


def test_gpus_beyond_the_request_show_the_request() -> None:
    """No more GPUs are needed than were asked for."""
    assert label("gpus_needed", GpuUse(0.9, 3, 1.0, 5000)) == 2
    assert label("gpus_needed", GpuUse(0.9, 1, 1.0, 5000)) == 1


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), longer=st.floats(0.1, 100), larger=st.floats(1e-3, 1e6))
def test_no_label_is_above_what_was_asked_for(seed: int, longer: float, larger: float) -> None:
    """Of any log, what is learnt, judged and corrected by is bounded by the same request that bounds the answers."""
    table = _beyond(made_table(60, seed=seed), longer, larger)
    for target in QUANTITIES:
        found, most = labels(target, table), request_cap(target, table)
        known = np.isfinite(found)
        assert not (found[known] > most[known]).any()
        assert np.array_equal(truth(target, table), found, equal_nan=True)
        logs = learnable(BY_NAME[target], table)
        assert np.array_equal(np.isfinite(logs), known)
        bounded = known & (most >= 1)
        assert (logs[bounded] <= np.log(most[bounded]) + 1e-5).all()


def test_a_request_bounds_online_as_it_does_offline() -> None:
    """One request has the same bound as its row; an amount of 0 asks for no limit and is none."""
    table = made_table(300, seed=3)
    table.limit_s[::7] = 0.0
    for target in QUANTITIES:
        bounds = [cap(target, request) for request in requests(table)]
        offline = [None if np.isnan(value) else float(value) for value in request_cap(target, table)]
        assert bounds == offline
        assert 0 not in offline
    assert cap("failure", JobRequest("u", 1, time_limit_s=5)) is None


def _beyond(table: JobTable, longer: float, larger: float) -> JobTable:
    run_s, max_rss_b = table.run_s * longer, table.max_rss_b * larger
    return replace(table, run_s=run_s, max_rss_b=max_rss_b, gpus_active=table.gpus_active * 2)
