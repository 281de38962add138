"""A replay of policies: nothing of the future is used, a model speaks after what it learnt from, an array is one."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.unit.advice.predict.bundles import manifest_of, probability_graph

from gpuwaste.advice.policy.policies_types import PolicyReplayRow
from gpuwaste.advice.policy.policy_loading import built_in, policy_from_toml
from gpuwaste.advice.policy.policy_set import PolicySet
from gpuwaste.advice.predict.bundle import Bundle, load_bundle, our_features
from gpuwaste.advice.predict.manifest import TargetModel
from gpuwaste.jobs.history.job_table import ABSENT, GpuUse, JobTable, known_at, table_of
from gpuwaste.models.bundle_export import write_files
from gpuwaste.models.event_replay import events_of
from gpuwaste.models.policy_backtest import ReplayPeriod, false_reject_ratio, replay_policies
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.site_defaults import SiteDefaults
from gpuwaste.slurm.submit.job_request import request_of
from gpuwaste.testing.histories import made_table, requests

if TYPE_CHECKING:
    from gpuwaste.jobs.verdict import Action

WARNS = '[policy]\nname = "w"\nmode = "warn"\n[targets.{0}]\nwarn = {1}\n[floor]\nprecision = 0\n'
ALWAYS = 1 << 40


def _policies(*texts: str) -> PolicySet:
    read = [policy_from_toml(text.encode(), f"{n}.toml") for n, text in enumerate(texts)]
    return PolicySet((*read, built_in()), "hash")


def _row(document: dict[str, Any], target: str = "all", would_be: str = "warn") -> PolicyReplayRow:
    row: PolicyReplayRow = next(r for r in document["rows"] if (r.target, r.would_be) == (target, would_be))
    return row


def _job(number: int, state: str = "FAILED", **more: Any) -> JobRecord:
    submit = 1_700_000_000 + 1000 * number
    values: dict[str, Any] = {
        "cluster": "c", "job_id": number, "submit": submit, "user": "alice", "name": "train", "partition": "gpu",
        "time_limit_s": 3600, "req_tres": "cpu=4,mem=8G,node=1,gres/gpu=4", "gpus": 4,
        "start": submit + 10, "end": submit + 610, "elapsed_s": 600, "state": state,
    }  # fmt: skip
    return JobRecord(**{**values, **more})


def test_events_tell_the_table_again() -> None:
    """Each run's request comes out as it went in, and its events in the order of time, each once."""
    table = made_table(600)
    asked = requests(table)
    told = list(events_of(table, 0, ALWAYS, "c"))
    assert [e.at for e in told] == sorted(e.at for e in told)
    assert all(request_of(e.job) == asked[e.row] for e in told if e.kind == "submitted")
    kinds = [(e.row, e.kind) for e in told]
    assert len(set(kinds)) == len(kinds)
    assert sum(e.kind == "submitted" for e in told) == len(table)
    assert sum(e.kind == "ended" for e in told) == int(np.count_nonzero(table.end != ABSENT))
    firsts = dict(reversed(kinds))
    assert set(firsts.values()) == {"submitted"}


def test_what_is_not_known_yet_is_not_there() -> None:
    """Before a moment: no later submission, start, end or ledger."""
    table = made_table(600)
    at = int(table.submit[300])
    known = known_at(table, at)
    assert len(known) == int(np.count_nonzero(table.submit < at))
    for column in (known.start, known.end, known.ledger_at):
        assert column.max() < at
    assert np.isnan(known.run_s[known.end == ABSENT]).all()
    assert np.isnan(known.gpus_active[known.ledger_at == ABSENT]).all()


@pytest.mark.long
@pytest.mark.parametrize("target", ["failure", "gpus", "walltime"])
def test_the_future_changes_nothing(target: str) -> None:
    """What is decided up to a moment is the same though all that was known later is another."""
    table = made_table(1500, users=5)
    if target == "gpus":  # many like runs that leave most of their GPUs idle, and none that fails
        ran = np.where(table.end == ABSENT, table.outcome, 1).astype(np.uint8)
        judged = table.end != ABSENT
        table = replace(
            table,
            gpus=np.full(len(table), 4.0),
            outcome=ran,
            used_ratio=np.where(judged, 0.2, np.nan),
            gpus_active=np.where(judged, 1.0, np.nan),
            gpu_coverage=np.where(judged, 1.0, np.nan),
            ledger_at=np.where(judged, table.end + 60, ABSENT),
        )
    at = int(table.submit[1000])
    late = table.end >= at
    other = replace(
        table,
        outcome=np.where(late, np.where(table.outcome == 2, 1, 2), table.outcome).astype(np.uint8),
        run_s=np.where(late, table.run_s + 500.0, table.run_s),
        gpus_active=np.where(table.ledger_at >= at, 4.0, table.gpus_active),
    )
    policies = _policies(WARNS.format(target, 0.5))

    def said(of: JobTable, start: int) -> dict[Any, Any]:
        document = replay_policies(of, policies, ReplayPeriod(start, at))
        return {(r.target, r.would_be): (r.jobs, r.users) for r in document["rows"]}

    assert said(table, int(table.submit[200])) == said(other, int(table.submit[200]))
    assert said(table, int(table.submit[200]))
    assert replay_policies(table, policies, ReplayPeriod(at, ALWAYS)) != replay_policies(
        other, policies, ReplayPeriod(at, ALWAYS)
    )


def test_where_the_replay_begins_changes_nothing() -> None:
    """The second half judged after a whole replay, and after the first half was taken in at once: the same."""
    table = made_table(1500, users=5)
    middle = int(table.submit[700])
    policies = _policies(WARNS.format("failure", 0.6))
    whole, first, second = (
        replay_policies(table, policies, ReplayPeriod(*window))["rows"]
        for window in ((0, ALWAYS), (0, middle), (middle, ALWAYS))
    )
    jobs = [sum(row.jobs for row in rows if row.target == "all") for rows in (whole, first, second)]
    assert jobs[0] == jobs[1] + jobs[2] > 20


def test_unused_gpus_come_true_by_the_ledger() -> None:
    """From the third job on, two having used 1 of 4 GPUs; the hours are those of the three idle ones; one was used."""
    jobs = [_job(n, "COMPLETED") for n in range(1, 7)]
    used = [GpuUse(0.2, 4 if n == 6 else 1, 1.0, jobs[n - 1].submit + 700) for n in range(1, 7)]
    document = replay_policies(table_of(jobs, use=used), _policies(WARNS.format("gpus", 0.9)), ReplayPeriod(0, ALWAYS))
    row = _row(document, "gpus")
    assert (row.jobs, row.right, row.wrong, row.said) == (4, 3, 1, 4)
    assert row.gpu_hours == pytest.approx(3 * 3 * 600 / 3600)
    whole = ReplayPeriod(0, ALWAYS, site=SiteDefaults(whole=frozenset({"gpu"})))
    assert replay_policies(table_of(jobs, use=used), _policies(WARNS.format("gpus", 0.9)), whole)["rows"] == []


def test_a_shorter_limit_comes_true_by_what_runs_show() -> None:
    """A shorter limit is right for runs below it and wrong for those at the old one; a broken node is neither."""
    past = [_job(n, "COMPLETED") for n in range(1, 7)]
    ends = {
        7: ("COMPLETED", 500), 8: ("COMPLETED", 3605), 9: ("TIMEOUT", 3605), 10: ("NODE_FAIL", 5),
        11: ("FAILED", 500), 12: ("NODE_FAIL", 3700),
    }  # fmt: skip
    later = [
        _job(n, state, submit=1_700_100_000, end=1_700_100_010 + run, start=1_700_100_010, elapsed_s=run)
        for n, (state, run) in ends.items()
    ]
    document = replay_policies(
        table_of([*past, *later]), _policies(WARNS.format("walltime", 0.5)), ReplayPeriod(1_700_050_000, ALWAYS)
    )
    row = _row(document, "walltime")
    assert (row.jobs, row.right, row.wrong, row.unknown) == (6, 2, 2, 2)


def test_the_tasks_of_an_array_are_one_submission() -> None:
    """Ten tasks of one second: one decision, right where half of them failed, and one reject of the budget."""
    past = [_job(n) for n in range(1, 5)]
    tasks = [
        _job(100 + n, "FAILED" if n < 5 else "COMPLETED", submit=1_700_100_000, array_job_id=100, array_task_id=n)
        for n in range(10)
    ]
    tasks = [replace(t, start=t.submit + 10, end=t.submit + 610) for t in tasks]
    document = replay_policies(
        table_of([*past, *tasks]), _policies(WARNS.format("failure", 0.9)), ReplayPeriod(1_700_050_000, ALWAYS)
    )
    assert document["submissions"] == 1
    row = _row(document)
    assert (row.jobs, row.right, row.wrong) == (1, 1, 0)
    assert row.gpu_hours == pytest.approx(5 * 4 * 600 / 3600, abs=1e-3)


def _bundle(folder: Path, until: int) -> Bundle:
    """Return a bundle that says of every job that it fails; it learnt from jobs up to `until`."""
    features = our_features()
    graph = probability_graph("failure", features.names.index("name_length"), features)
    target = TargetModel("failure", "failure.onnx", thresholds={"warn": 0.5}, rows=9)
    manifest = replace(manifest_of("m", features=features), targets=(target,), window=(0, until))
    write_files(folder, manifest, {"failure.onnx": graph}, features)
    return load_bundle(folder)


def test_a_model_speaks_after_what_it_learnt_from(tmp_path: Path) -> None:
    """Jobs up to its last one are judged by history alone, as they were then."""
    jobs = [_job(n, "COMPLETED") for n in range(1, 11)]
    bundle = _bundle(tmp_path / "m", jobs[5].submit)
    document = replay_policies(
        table_of(jobs), _policies(WARNS.format("failure", '"model"')), ReplayPeriod(0, ALWAYS), bundle
    )
    assert (document["by_history"], document["by_model"]) == (6, 4)
    row = _row(document)
    assert (row.jobs, row.wrong) == (4, 4)


def test_a_bad_policy_falls_back_to_shadow_in_the_replay() -> None:
    """Its warnings were wrong and have ended: from then on the floor holds them back."""
    states = ["FAILED"] * 3 + ["COMPLETED"] * 12
    policy = WARNS.format("failure", 0.2).replace("precision = 0", "precision = 0.5\nmin_verdicts = 4")
    document = replay_policies(
        table_of([_job(n, state) for n, state in enumerate(states, 1)]), _policies(policy), ReplayPeriod(0, ALWAYS)
    )
    row = _row(document)
    assert (row.said, document["held"]["floor"]) == (4, row.jobs - 4)


def test_the_ratio_of_false_rejects() -> None:
    """Of the judged would-be rejects; none where none was judged."""
    counts: tuple[tuple[str, Action, int, int], ...] = (
        ("all", "reject", 3, 1), ("all", "warn", 0, 9), ("gpus", "reject", 0, 9)
    )  # fmt: skip
    rows = [
        PolicyReplayRow(
            policy="site", target=target, would_be=would_be, jobs=9, said=9, right=right, wrong=wrong, unknown=0,
            gpu_hours=0.0, users=1,
        )
        for target, would_be, right, wrong in counts
    ]  # fmt: skip
    assert false_reject_ratio(rows) == pytest.approx(0.25)
    assert false_reject_ratio(rows[1:]) is None
