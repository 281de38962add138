"""What is learnt from: repeats, the time asked for, logs that lack too much."""

from dataclasses import replace

import numpy as np
import pytest
from tests.public_data import public

from gpuwaste.advice.predict.targets import TARGETS
from gpuwaste.core.errors import NoDataError
from gpuwaste.jobs.history.job_table import ABSENT
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.models.job_source import load_swf
from gpuwaste.models.training_rows import prepare, reason_of, warnings_of
from gpuwaste.testing.planted import planted_table


def test_repeats_are_left_out_and_the_rest_is_as_without_them() -> None:
    """A run told three times counts once; its neighbours' vectors are those of a log without the repeats."""
    table = planted_table(200)
    rows = np.sort(np.concatenate([np.arange(200), [50, 50, 199]]))
    told, once = prepare(table.take(rows), "x"), prepare(table, "x")
    assert told.repeated == 3
    assert np.array_equal(told.vectors, once.vectors, equal_nan=True)
    assert np.array_equal(told.table.job_id, table.job_id)


def test_earlier_jobs_stand_behind_the_vectors_alone() -> None:
    """With `since` the later rows have the same vectors as in the whole log."""
    table = planted_table(300)
    whole, late = prepare(table, "x"), prepare(table, "x", int(table.submit[100]))
    assert (late.earlier, len(late.table)) == (100, 200)
    assert np.array_equal(late.vectors, whole.vectors[100:], equal_nan=True)
    assert late.state.as_of == whole.state.as_of
    with pytest.raises(NoDataError, match="x since then: 10 jobs are too few"):
        prepare(table, "x", int(table.submit[290]))


def test_a_log_without_users_and_requests_is_no_data() -> None:
    """One line that names the log; users alone, or requests alone, are enough to go on."""
    table = planted_table(100)
    nothing = np.full(100, np.nan)
    bare = replace(table, limit_s=nothing, cpus=nothing, nodes=nothing, mem_b=nothing, gpus=np.zeros(100))
    nobody = replace(table.user, values=("",) * len(table.user.values))
    with pytest.raises(NoDataError, match=r"^a\.swf: has neither users nor requested resources"):
        prepare(replace(bare, user=nobody), "a.swf")
    assert len(prepare(bare, "x").table) == len(prepare(replace(table, user=nobody), "x").table) == 100


def test_the_synthetic_log_is_no_data() -> None:
    """lublin_256 has no users, requests or failures: one line, no model."""
    source = load_swf(public("swf/lublin_256.swf.xz"))
    with pytest.raises(NoDataError, match=r"lublin_256.*has neither users"):
        prepare(source.table, source.text)


def test_every_target_has_words_for_the_want_of_labels() -> None:
    """A log with nothing but requests gives each target a reason, and a full one gives none."""
    table = planted_table(100)
    assert [reason_of(target, table) for target in TARGETS] == [""] * len(TARGETS)
    nothing = np.full(100, np.nan)
    bare = replace(
        table,
        outcome=np.full(100, Outcome.UNKNOWN, np.uint8), run_s=nothing, max_rss_b=nothing, gpu_coverage=nothing,
        start=np.full(100, ABSENT), end=np.full(100, ABSENT), end_rule="submit + run",
    )  # fmt: skip
    assert all(reason_of(target, bare) for target in TARGETS)
    assert [words.split()[2] for words in warnings_of(bare)] == ["has", "does"]
