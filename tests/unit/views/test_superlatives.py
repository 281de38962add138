"""Every view: who a sentence names as the most or the least is what its chart or table shows; shares say of what."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.views.sites import DAY, MONTH, NOW, document, job, jobs, store_of
from tests.unit.views.test_views import MONTH_LONG, busy

from gpuwaste.core.units import J_PER_KWH
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.show.chart import Bars, Lines
from gpuwaste.show.view_document import ViewDocument
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.hub_rows import HOUR, hour, record
from gpuwaste.views.narrative import PLACE
from gpuwaste.views.ranking import SHOWN, Superlative
from gpuwaste.views.view import all_views, look, view_named
from gpuwaste.views.view_query import ViewQuery, Window

_WORDS = re.compile(
    r"\b(most|least|largest|smallest|longest|shortest|slowest|fastest|fullest|deepest|emptiest|worst|best|highest|lowest)\b"
)
_LABELS = {"hour": "hour {}", "partition": "partition {}"}
Row = tuple[str, float]
WITH_ONE = [name for name, view in all_views().items() if view.superlatives and name not in {"waste", "energy"}]
"""Views with a superlative that jobs alone show; waste and energy need samples."""


def sized(number: int, cpus: int, wait_s: int, **more: Any) -> JobRecord:
    """Return a run of a log without partitions, GPUs and nodes."""
    submit = MONTH + number * 600
    ran = {"submit": submit, "start": submit + wait_s, "end": submit + wait_s + 3600}
    none: dict[str, Any] = {"partition": "", "gpus": None, "n_nodes": None, "nodes": ""}
    return job(number, cpus=cpus, **{**none, **ran, **more})


def slow_but_few() -> list[JobRecord]:
    """Return a log without partitions: 5 jobs of 1024 CPUs waited 17 days, 40 of 128 CPUs some hours, others less."""
    waits = [(1, 60, 60), (128, 7 * 3600, 40), (16, 3600, 30), (1024, 17 * DAY, 5)]
    ordered = [(cpus, wait + n) for cpus, wait, count in waits for n in range(count)]
    return [sized(number, cpus, wait) for number, (cpus, wait) in enumerate(ordered, 1)]


def beyond_limits() -> list[JobRecord]:
    """Return jobs of which a third ran three times as long as their limit, and half less than a third of it."""
    used = [3.0] * 10 + [0.3] * 9 + [0.05] * 6 + [0.9] * 5
    return [
        sized(number, 1, 60, end=MONTH + number * 600 + 60 + int(7200 * share), time_limit_s=7200, partition="")
        for number, share in enumerate(used, 1)
    ]


def many_groups() -> list[JobRecord]:
    """Return more groups than a chart has bars, the slowest of them with the fewest jobs."""
    return [
        replace(run, partition=f"p{group}", user=f"u{group}", account=f"a{group % 5}", job_id=run.job_id + 1000 * group)
        for group in range(30)
        for run in [sized(n, 4, 60 * (group + 1) + n, state="FAILED" if n < 30 - group else "COMPLETED")
                    for n in range(1, 60 - group)]
    ]  # fmt: skip


def of_accounts() -> list[JobRecord]:
    """Return jobs of a user whose failed jobs are in two accounts, neither of which is the first."""
    whose = [("alice", "a", 6), ("alice", "b", 6), ("bob", "a", 10), ("carol", "c", 40)]
    runs: list[JobRecord] = []
    for user, account, count in whose:
        for n in range(count):
            state = "COMPLETED" if user == "carol" else "FAILED"
            runs.append(job(len(runs) + 1, user=user, account=account, state=state, start=MONTH + 60 + n))
    return runs


TABLES: dict[str, Callable[[], list[JobRecord]]] = {
    "four weeks": busy,
    "without partitions": lambda: [replace(run, partition="") for run in busy()],
    "with and without partitions": lambda: [replace(run, partition="gpu" * (run.job_id % 2)) for run in busy()],
    "one group": lambda: [job(n, start=MONTH + 60 + n) for n in range(1, 40)],
    "all equal": lambda: [job(n, user=f"u{n % 3}", partition=f"p{n % 3}", state="FAILED") for n in range(1, 91)],
    "two equal": lambda: [
        job(n, user=("a", "b", "c")[n % 3], partition=f"p{n % 3}", start=MONTH + 60 * (n % 3 < 2),
            state="FAILED" if n % 3 < 2 else "COMPLETED") for n in range(1, 91)
    ],
    "unknown limits": lambda: [replace(run, time_limit_s=None) for run in busy()],
    "beyond limits": beyond_limits,
    "slow but few": slow_but_few,
    "many groups": many_groups,
    "of accounts": of_accounts,
    "nobody": lambda: [replace(run, user="", account="") for run in busy()],
    "unknown ends": lambda: [replace(run, state="") for run in busy()],
    "nothing": list,
}  # fmt: skip


def shown(found: ViewDocument, what: Superlative) -> list[Row]:
    """Return the rows that a reader sees, each with the value that the superlative is about."""
    if what.shown == "table":
        names = [column.name for column in found.columns]
        return [
            (" ".join(label_of(row[names.index(name)], name) for name in what.labels), float(value))
            for row in found.rows
            if isinstance(value := row[names.index(what.of)], int | float)
        ]
    charts = [chart for chart in found.charts if chart.title == what.of]
    assert len(charts) <= 1
    if not charts:
        return []
    (chart,) = charts
    assert isinstance(chart, Bars | Lines)
    series = [one for one in chart.series if not what.series or one.name in what.series]
    if what.shown == "series":
        return [(one.name, sum(y or 0 for y in one.y)) for one in series]
    labels = chart.x.categories or [f"hour {at:.0f}" for at in chart.at]
    assert len(set(labels)) == len(labels), "two bars of one name"
    points = zip(labels, zip(*(one.y for one in series), strict=True), strict=True)
    return [(label, sum(y or 0 for y in ys)) for label, ys in points if any(y is not None for y in ys)]


def label_of(cell: object, column: str) -> str:
    """Return a cell as a sentence names its row."""
    return f"no {column}" if cell == "" else _LABELS.get(column, "{}").format(cell)


def check(found: ViewDocument, what: Superlative) -> bool:
    """Compare a superlative with its rows; return whether there was one."""
    facts = {entry.id: entry for entry in found.facts}
    rows = with_enough(found, what, shown(found, what))
    named = facts.get(what.name or what.value)
    if named is None or named.value is None:
        lead = extreme([value for _, value in rows], least=what.least) if rows else 0
        first = [label for label, value in rows if value == lead]
        assert not rows or not lead or len(first) == len(rows) or first[0].startswith("no "), (what, rows[:3])
        return False
    assert rows, (what, "is named and nowhere shown")
    lead = extreme([value for _, value in rows], least=what.least)
    if what.name:
        first = [label for label, value in rows if value == lead]
        assert any(named.text.split(" (equal: ")[0] == label[: len(named.text)] for label in first), (named.text, first)
    if what.value:
        value = facts[what.value].value
        assert isinstance(value, int | float)
        assert value == pytest.approx(lead, abs=0.006 * SHOWN if what.shown == "series" else 0.006)
    if what.share and len(rows) < SHOWN:
        assert facts[what.share].value == pytest.approx(lead / sum(value for _, value in rows), rel=0.02)
    return True


def extreme(values: Sequence[float], *, least: bool) -> float:
    """Return the smallest or the largest value."""
    return min(values) if least else max(values)


def with_enough(found: ViewDocument, what: Superlative, rows: list[Row]) -> list[Row]:
    """Return the rows less those that the sentence says that it leaves out: groups of too few jobs."""
    sentences = [one for one in view_named(found.view).sentences if f"{{{what.name}}}" in one]
    if not any("{enough_jobs}" in one for one in sentences):
        return rows
    enough = next((int(entry.text.split()[0]) for entry in found.facts if entry.id == "enough_jobs"), None)
    if enough is None or what.shown != "table":
        return [] if enough is None else rows
    place = [column.name for column in found.columns].index("runs")
    return [one for one, row in zip(rows, found.rows, strict=True) if int(row[place] or 0) >= enough]


@pytest.mark.parametrize("name", WITH_ONE)
@pytest.mark.parametrize("table", TABLES)
def test_a_superlative_names_the_row_that_is_shown(table: str, name: str) -> None:
    """The named row has the largest value of its chart or table; the value is that row's, the share is of all rows."""
    found = document(TABLES[table](), name, MONTH_LONG)
    for what in view_named(name).superlatives:
        check(found, what)


@settings(max_examples=examples(30))
@given(jobs(), st.lists(st.sampled_from(["", "p", "q"]), min_size=24, max_size=24), st.sampled_from(WITH_ONE))
def test_superlatives_of_drawn_jobs(runs: list[JobRecord], partitions: list[str], name: str) -> None:
    """The same of any few jobs, in partitions and in none."""
    placed = [replace(run, partition=partitions[place % 24]) for place, run in enumerate(runs)]
    found = document(placed, name, (MONTH - 4 * DAY, MONTH + 10 * DAY))
    for what in view_named(name).superlatives:
        check(found, what)


@cache
def sampled() -> HubStore:
    """Return a store with samples: alice wastes most in two accounts together, bob in the account that wastes most."""
    store = HubStore.open(":memory:", FakeClock(HOUR + 10 * DAY))
    whose = [
        ("alice", "a", 3),
        ("alice", "b", 3),
        ("bob", "a", 4),
        ("carol", "c", 5),
        *((f"u{n}", f"x{n}", 1) for n in range(25)),
    ]
    runs: list[JobRecord] = []
    hours = []
    for user, account, count in whose:
        for n in range(count):
            number = len(runs) + 1
            idle = user != "carol" and (user[0] != "u" or n % 2 == 0)
            runs.append(record(number, user, account))
            use: dict[str, Any] = {"util_ms": {0: 1_800_000}, "idle_run_ms": 1_800_000, "proc_seen": number % 3 == 0}
            energy: dict[str, Any] = {"energy_j": J_PER_KWH, "energy_ms": 1_800_000, "idle_energy_j": J_PER_KWH * idle}
            key = RunKey("gw", number, HOUR)
            hours.append(
                hour(number, final=True, gpu_uuid=f"G{number}", run_key=key, **energy, **(use if idle else {}))
            )
    upsert_jobs(store, runs)
    upsert_hours(store, hours)
    return store


@pytest.mark.parametrize("name", ["waste", "energy"])
def test_superlatives_of_samples(name: str) -> None:
    """Waste and energy by user, account and cause: a user's accounts are added up, and not all accounts have a bar."""
    with sampled().reader() as db:
        found = look(view_named(name), ViewQuery(db, Window(HOUR - 60, HOUR + 3600, HOUR + 10 * DAY))).document
    told = [check(found, what) for what in view_named(name).superlatives]
    assert all(told)
    if name == "waste":
        facts = {entry.id: entry.value for entry in found.facts}
        assert (facts["top_user"], facts["top_account"]) == ("alice", "a")
        causes = next(chart for chart in found.charts if "cause" in chart.title)
        assert isinstance(causes, Bars)
        assert causes.x.categories[-1].endswith("other accounts")


def test_a_user_s_accounts_are_added_up() -> None:
    """Alice's 12 failed jobs are of two accounts, bob's 10 of one: alice has the most, in sentence and chart."""
    found = document(of_accounts(), "states", MONTH_LONG)
    facts = {entry.id: entry.value for entry in found.facts}
    assert (facts["top_user"], facts["top_user_failed"]) == ("alice", 12)
    assert "User alice had the most failed jobs: 12 jobs, 55 % of all that failed." in found.narrative


def test_the_largest_kind_is_named_first() -> None:
    """7 of 10 jobs are array tasks and 2 of these are short: the first sentence names array tasks; of no kind, none."""
    array = [job(n, array_job_id=1, array_task_id=n, end=MONTH + (200 if n < 3 else 3660)) for n in range(1, 8)]
    found = document([*array, *(job(n) for n in range(20, 23))], "kinds", MONTH_LONG)
    assert found.narrative[0] == "70 % of the 10 jobs that ran and ended were array tasks."
    plain = document([job(1)], "kinds", MONTH_LONG)
    assert plain.narrative[0].startswith("0 % of the jobs were array tasks; ")


def sentences() -> Iterator[tuple[str, str]]:
    """Yield each view with each of its sentences."""
    for name, view in all_views().items():
        yield from ((name, sentence) for sentence in view.sentences)


def test_each_superlative_of_a_sentence_is_declared() -> None:
    """A sentence with a word such as most or slowest has a fact that its view declares, so the tests above see it."""
    for name, sentence in sentences():
        declared = {fact for what in view_named(name).superlatives for fact in (what.name, what.value, what.share)}
        if _WORDS.search(sentence):
            assert declared & {fact for fact, _ in PLACE.findall(sentence)}, sentence


def test_each_share_says_of_what() -> None:
    """Behind a share or at its beginning a sentence says "of", and what the fact means names the whole as well."""
    for _, sentence in sentences():
        for place in PLACE.finditer(sentence):
            if place[1].endswith("_share"):
                behind = re.match(r" of (the|them|theirs|their|all|it|that)\b", sentence[place.end() :])
                before = re.fullmatch(r"Of the \{\w+\} [^{},]+, ", sentence[: place.start()])
                assert behind or before, sentence
    for table, name in ((table, name) for table in ("four weeks", "beyond limits") for name in all_views()):
        for entry in document(TABLES[table](), name, MONTH_LONG).facts:
            if entry.unit == "share":
                assert " of " in entry.means or " over " in entry.means, entry


def test_groups_that_are_left_out_are_named() -> None:
    """5 jobs waited 17 days: sentence and chart are of the groups with enough jobs, and a note names the others."""
    found = document(slow_but_few(), "waits", MONTH_LONG)
    (sentence,) = (one for one in found.narrative if "CPUs" in one)
    assert sentence.startswith("Jobs of 65-128 CPUs waited longest: ")
    assert sentence.endswith("(of the groups with 20 jobs or more).")
    chart = found.charts[0]
    assert isinstance(chart, Bars)
    assert list(chart.x.categories) == ["65-128 CPUs", "9-16 CPUs", "1 CPU"]
    assert "Groups with fewer than 20 jobs are only in the table: 513-1024 CPUs." in found.notes
    assert [row[1] for row in found.rows] == ["65-128 CPUs", "9-16 CPUs", "1 CPU", "513-1024 CPUs"]


def test_what_has_no_partition_is_called_one_thing() -> None:
    """A log without partitions names sizes alone; one with some says "no partition", in chart and sentence."""
    for table in ("without partitions", "with and without partitions", "slow but few"):
        found = document(TABLES[table](), "waits", MONTH_LONG)
        chart = found.charts[0]
        assert isinstance(chart, Bars)
        texts = [*found.narrative, *chart.x.categories]
        assert not any("none" in text for text in texts)
        some = "with and" in table
        assert any(text.endswith("in no partition") for text in chart.x.categories) is some
        assert any("partition" in text for text in texts) is some


def test_time_beyond_a_limit_is_no_use_of_it() -> None:
    """A third ran beyond their limit and half used less than a third of it: that is what is said, not a sum of both."""
    found = document(beyond_limits(), "limits", MONTH_LONG)
    facts = {entry.id: entry.value for entry in found.facts}
    assert facts["beyond_share"] == pytest.approx(1 / 3)
    assert facts["used_share"] == pytest.approx((10 + 9 * 0.3 + 6 * 0.05 + 5 * 0.9) / 30)
    assert facts["used_p50_share"] == pytest.approx(0.31)
    assert facts["tenth_share"] == pytest.approx(0.2)
    assert facts["beyond_s"] == 10 * 2 * 7200
    bars = found.charts[1]
    assert isinstance(bars, Bars)
    assert list(bars.series[0].y) == [6, 0, 0, 9, 0, 0, 0, 0, 0, 5, 10]
    assert any("33 % of the jobs" in sentence and "beyond" in sentence for sentence in found.narrative)


def test_a_job_that_is_stopped_at_its_limit_is_not_beyond_it() -> None:
    """Slurm ends a job some seconds after its limit, and later by a part of a long one: neither ran on beyond it."""
    late = [(600, 659), (86400, 86400 + 3600)]
    runs = [sized(n, 1, 0, time_limit_s=limit, end=MONTH + n * 600 + used) for n, (limit, used) in enumerate(late, 1)]
    facts = {entry.id: entry.value for entry in document(runs, "limits", MONTH_LONG).facts}
    assert (facts["beyond_share"], facts["used_p50_share"], facts["used_share"]) == (0, 1, 1)


def imported(store: HubStore, kind: str) -> None:
    """Note that the store's jobs come from a log of a kind."""
    with store.writing() as db:
        db.execute("DELETE FROM imports")
        if kind:
            values = {"kind": kind, "now": NOW}
            db.execute("INSERT INTO imports VALUES (1, $kind, 'key', 'one', '{}', 0, $now, 'accounting')", values)


@pytest.mark.parametrize(
    ("name", "unknown"),
    [("states", "timeout_share"), ("limits", "timeout_share"), ("kinds", "array_share"), ("kinds", "interactive_share"),
     ("node_failures", "failed_share")],
)  # fmt: skip
def test_what_a_log_has_no_word_for_is_unknown(name: str, unknown: str) -> None:
    """A log in Standard Workload Format has no timeouts, arrays, failed nodes: no share of them, and a note why."""
    store = store_of(busy())
    try:
        for kind in ("swf", "sacct"):
            imported(store, kind)
            with store.reader() as db:
                found = look(view_named(name), ViewQuery(db, Window(*MONTH_LONG, NOW))).document
            assert (unknown in {entry.id for entry in found.facts}) is (kind == "sacct")
            assert any("does not record" in note for note in found.notes) is (kind == "swf")
    finally:
        imported(store, "")


def test_an_end_that_is_not_known_is_in_no_share() -> None:
    """Half of the ends are not known: shares are of the others, which a sentence says; of none known there is none."""
    runs = [replace(run, state="") if run.job_id % 2 else run for run in busy()]
    known = [run for run in runs if run.state]
    for name, share, states in (("states", "failed_share", {"FAILED"}), ("jobs", "completed_share", {"COMPLETED"})):
        found = document(runs, name, MONTH_LONG)
        expected = sum(run.state in states for run in known) / len(known)
        assert {entry.id: entry.value for entry in found.facts}[share] == pytest.approx(expected)
        assert any(
            "The end state of 140 jobs is unknown; the shares are without them." in one for one in found.narrative
        )
        nothing = document(TABLES["unknown ends"](), name, MONTH_LONG)
        assert not any("%" in sentence for sentence in nothing.narrative)
