"""Accounting over a long time: windows that meet, marks that move with them, and going on after a cut."""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.jobs.importers.rows import COLUMNS, T0, jobs_of, opened, row, step

from gpuwaste.core.errors import SlurmError
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.importers.accounting_windows import AccountingPeriod, window_pages
from gpuwaste.jobs.importers.bulk_import import import_source
from gpuwaste.jobs.importers.history_store import Resume
from gpuwaste.jobs.importers.sources.sacct import SacctLive
from gpuwaste.jobs.importers.sources.slurmrestd import Slurmrestd
from gpuwaste.slurm.accounting.sacct_file import Cut


class Accounting:
    """Answers with the jobs that overlap a window; fails at the window that holds `down_at`."""

    def __init__(self, jobs: range, down_at: int | None = None) -> None:
        self.jobs = jobs
        self.down_at = down_at
        self.asked: list[tuple[int, int]] = []
        self.clusters: set[str] = set()

    def accounting_columns(self) -> tuple[str, ...]:
        return COLUMNS

    def accounting_lines(self, start: int, end: int, delimiter: bytes, cluster: str = "") -> Generator[bytes]:
        self.asked.append((start, end))
        self.clusters.add(cluster)
        for job in self.jobs:
            if T0 + job * 100 <= end and T0 + job * 100 + 70 >= start:
                yield row(job).replace(b"|", delimiter)
                yield step(job).replace(b"|", delimiter)
        if self.down_at is not None and start <= self.down_at < end:
            raise SlurmError("sacct: slurmdbd is down")

    def pages(self, start: int, end: int) -> Iterator[bytes]:
        self.asked.append((start, end))
        yield b'{"jobs": [], "errors": []}'
        yield b'{"jobs": [], "errors": []}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the store lies."""
    return tmp_path / "hub.duckdb"


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 10**5))
def test_windows_meet_without_a_gap(start: int, length: int, window_s: int) -> None:
    """From the start to the end each second is in a window; the mark is at the end after the last one."""
    window_s = max(window_s, length // 50 + 1)
    asked: list[tuple[int, int]] = []

    def read(begin: int, end: int) -> Iterator[Cut]:
        asked.append((begin, end))
        yield from ()

    pages = list(window_pages("k", AccountingPeriod(start, start + length, window_s=window_s), read, None))
    assert [a for a, _ in asked] == [start, *(b for _, b in asked[:-1])]
    assert asked[-1][1] == pages[-1].mark == start + length


@pytest.mark.long
def test_a_run_across_windows_is_one_run(path: Path) -> None:
    """Days and months cut nothing: a run is told in each window that it overlaps, and stored once."""
    store = opened(path)
    period = AccountingPeriod(T0, T0 + 20_000, window_s=1000)
    slurm = Accounting(range(1, 151))
    result = import_source(store, path, SacctLive(slurm, "gw", period))
    assert len(slurm.asked) == 20
    assert result.runs > result.changed == 150
    assert len(jobs_of(store)) == 150
    assert store.mark("sacct-live:gw") == T0 + 20_000


@pytest.mark.long
def test_where_accounting_fails_the_next_import_goes_on(path: Path) -> None:
    """What was read is stored; the same period goes on at the window that failed, another one begins at its start."""
    store = opened(path)
    period = AccountingPeriod(T0, T0 + 10_000, window_s=1000)
    with pytest.raises(SlurmError, match="slurmdbd is down"):
        import_source(store, path, SacctLive(Accounting(range(1, 90), down_at=T0 + 5500), "gw", period))
    assert 40 <= len(jobs_of(store)) < 60
    slurm = Accounting(range(1, 90))
    import_source(store, path, SacctLive(slurm, "gw", period))
    assert slurm.asked[0] == (T0 + 4000, T0 + 5000)
    assert len(jobs_of(store)) == 89
    again = Accounting(range(1, 90))
    assert import_source(store, path, SacctLive(again, "gw", period)).changed == 0
    assert again.asked[0][0] == T0


@pytest.mark.parametrize("asked", ["", "east"])
def test_another_cluster_is_asked_for_by_its_name(path: Path, asked: str) -> None:
    """Each window names the cluster to slurmdbd, and the own one is not named."""
    slurm = Accounting(range(1, 20))
    import_source(
        opened(path), path, SacctLive(slurm, "east", AccountingPeriod(T0, T0 + 3000, window_s=1000), asked=asked)
    )
    assert slurm.clusters == {asked}


def test_without_a_start_it_begins_where_the_last_one_was(path: Path) -> None:
    """The first import goes back so many days; the next reads the last window again, and some overlap."""
    store = opened(path)
    first = Accounting(range(1, 5))
    import_source(store, path, SacctLive(first, "gw", AccountingPeriod(None, T0 + DAY_S, first_s=3 * DAY_S)))
    assert first.asked[0][0] == T0 - 2 * DAY_S
    later = Accounting(range(1, 900))
    import_source(store, path, SacctLive(later, "gw", AccountingPeriod(None, T0 + 2 * DAY_S)))
    assert later.asked[0][0] == T0 - 3600
    assert len(jobs_of(store)) == 899


@pytest.mark.parametrize(("ended", "begun", "expected"), [(False, T0, T0 + 500), (True, T0, T0), (False, T0 + 1, T0)])
def test_only_an_import_that_was_cut_off_is_gone_on_with(ended: bool, begun: int, expected: int) -> None:
    """Who asks for a period again gets all of it."""
    resume = Resume(position=T0 + 500, until=T0 + 600, digest="", context={"from": str(begun)}, ended=ended)
    assert AccountingPeriod(T0, T0 + 1000).begin(resume) == expected


def test_answers_of_slurmrestd_are_pages(path: Path) -> None:
    """Each answer of a window is a page of its own; the mark moves with the last."""
    store = opened(path)
    slurm = Accounting(range(1))
    result = import_source(store, path, Slurmrestd(slurm, "gw", AccountingPeriod(T0, T0 + 2000, window_s=1000)))
    assert (result.pages, result.bad, store.mark("slurmrestd:gw")) == (4, 0, T0 + 2000)
