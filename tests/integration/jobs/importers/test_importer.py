"""The bulk import: everything once, whatever is imported twice, cut off, damaged or changed."""

import lzma
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest
from tests.unit.jobs.importers.rows import T0, jobs_of, log, opened, row, step

from gpuwaste.core.errors import NoDataError, ParseError, StoreError
from gpuwaste.jobs.importers.bulk_import import import_again, import_source
from gpuwaste.jobs.importers.history_store import HistoryStore
from gpuwaste.jobs.importers.import_result import ImportResult
from gpuwaste.jobs.importers.sources.sacct import SacctFile
from gpuwaste.jobs.importers.sources.swf import SwfFile
from gpuwaste.jobs.importers.user_names import parse_user_names
from gpuwaste.jobs.run_store import history_events, runs_of_id
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.cluster_process import wait_until

BAD = row(901, Start="yesterday") + b"12|cut\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the store lies."""
    return tmp_path / "state" / "hub.duckdb"


def bring(store: HistoryStore, path: Path, file: Path, page_b: int = 2000, processes: int = 1) -> ImportResult:
    return import_source(store, path, SacctFile(file, "gw", page_b=page_b), processes=processes)


def test_runs_are_stored_with_their_steps_and_bad_rows_with_their_lines(path: Path, tmp_path: Path) -> None:
    """Each run once, its memory from its steps; a row that cannot be read is counted and kept with its line."""
    store = opened(path)
    result = bring(store, path, log(tmp_path / "a.txt", range(1, 101), BAD))
    assert (result.runs, result.changed, result.bad, result.end_rule) == (100, 100, 2, "accounting")
    assert result.pages > 5
    jobs = store.ask("jobs_of_id", {"cluster": "gw", "job_id": 50})
    assert [(job["max_rss_b"], job["start"], job["user"]) for job in jobs] == [(5 * 1024**2, T0 + 5010, "u2")]
    kept = store.ask("history_quarantine", {"limit": 9})
    assert sorted(row["first_line"] for row in kept) == [202, 203]
    assert store.ask("counts")[0]["events"] == 200


def test_importing_twice_changes_nothing(path: Path, tmp_path: Path) -> None:
    """The second import of a file reads no page; of a copy of it, it changes no run."""
    store = opened(path)
    file = log(tmp_path / "a.txt", range(1, 101), BAD)
    bring(store, path, file)
    before, counts = jobs_of(store), store.ask("counts")
    assert bring(store, path, file).pages == 0
    assert (jobs_of(store), store.ask("counts")) == (before, counts)
    copy = tmp_path / "b.txt"
    copy.write_bytes(file.read_bytes())
    assert bring(store, path, copy).changed == 0
    assert jobs_of(store) == before
    assert store.ask("counts")[0]["events"] == counts[0]["events"]


def test_a_file_that_grows_is_read_from_where_it_ended(path: Path, tmp_path: Path) -> None:
    """Steps that came later join their run, and earlier pages are not read again."""
    store = opened(path)
    file = log(tmp_path / "a.txt", range(1, 101), row(101))
    first = bring(store, path, file)
    with file.open("ab") as out:
        out.write(step(101, "9M") + row(102))
    again = bring(store, path, file)
    assert (again.changed, again.pages) == (2, 1)
    assert first.pages > 5
    assert store.ask("jobs_of_id", {"cluster": "gw", "job_id": 101})[0]["max_rss_b"] == 9 * 1024**2
    assert again.bad == 0


def test_a_file_that_was_replaced_is_read_whole(path: Path, tmp_path: Path) -> None:
    """Under the same name another log: nothing of it is missed."""
    store = opened(path)
    file = log(tmp_path / "a.txt", range(1, 101))
    bring(store, path, file)
    assert bring(store, path, log(file, range(150, 350))).changed == 200


def test_another_context_reads_the_file_again(path: Path, tmp_path: Path) -> None:
    """Times in another zone are another reading."""
    store = opened(path)
    file = log(tmp_path / "a.txt", range(1, 11))
    bring(store, path, file)
    other = SacctFile(file, "gw", zone="Europe/Oslo")
    assert import_source(store, path, other).pages > 0


def test_several_processes_give_the_same(path: Path, tmp_path: Path) -> None:
    """The order of the pages is that of the file, however many parse it."""
    file = log(tmp_path / "a.txt", range(1, 101), BAD)
    one, two = opened(path), opened(tmp_path / "two.duckdb")
    bring(one, path, file)
    result = bring(two, tmp_path / "two.duckdb", file, processes=2)
    assert jobs_of(one) == jobs_of(two)
    assert one.ask("counts") == two.ask("counts")
    assert result.bad == 2
    assert not list(two.files.scratch.iterdir())


def test_a_file_of_something_else_leaves_the_store_as_it_is(path: Path, tmp_path: Path) -> None:
    """Rows that cannot be read, and none that can: one line says so, and nothing was stored."""
    store = opened(path)
    file = log(tmp_path / "a.txt", [], os.urandom(20000))
    with pytest.raises(NoDataError, match="no job in its first"):
        bring(store, path, file, page_b=10**6)
    assert not any(store.ask("counts")[0].values())
    assert store.ask("history_sources") == []
    assert not list(store.files.folder.rglob("*.z"))


def test_a_damaged_archive_gives_what_stands_before_the_damage(path: Path, tmp_path: Path) -> None:
    """The rows up to the cut are stored, the error is told, and the whole file goes on from there."""
    draw = random.Random(1)
    rows = [row(job, JobName=draw.randbytes(40).hex()) + step(job) for job in range(1, 2001)]
    whole = lzma.compress(log(tmp_path / "a.txt", [], b"".join(rows)).read_bytes())
    file = tmp_path / "a.xz"
    file.write_bytes(whole[: len(whole) * 2 // 3])
    store = opened(path)
    with pytest.raises(ParseError, match="cut off or damaged"):
        bring(store, path, file, page_b=30000)
    some = store.ask("counts")[0]["jobs"]
    assert 100 < some < 2000
    file.write_bytes(whole)
    bring(store, path, file, page_b=30000)
    counts = store.ask("counts")[0]
    assert (counts["jobs"], counts["quarantine"]) == (2000, 0)
    assert len(store.ask("jobs_of_id", {"cluster": "gw", "job_id": 1999})) == 1


def test_what_a_running_job_became_replaces_it(path: Path, tmp_path: Path) -> None:
    """Waiting, running, ended: one run in the end; an older file does not turn it back."""
    store = opened(path)
    files = {
        "waiting": row(1, Start="Unknown", End="Unknown", State="PENDING"),
        "running": row(1, End="Unknown", State="RUNNING"),
        "ended": row(1),
    }
    for order in (("waiting", "running", "ended"), ("running", "waiting")):
        for name in order:
            bring(store, path, log(tmp_path / f"{name}.txt", [2], files[name]))
        (job,) = store.ask("jobs_of_id", {"cluster": "gw", "job_id": 1})
        assert job["state"] == "COMPLETED"
        for name in files:
            (tmp_path / f"{name}.txt").write_bytes((tmp_path / f"{name}.txt").read_bytes() + row(3))
    events = Counter((e["kind"], e["job_id"]) for e in store.ask("history", {"after": 0, "limit": 99}) if e["kind"])
    assert events["ended", 1] == 1


def test_a_window_without_a_step_does_not_forget_it(path: Path, tmp_path: Path) -> None:
    """A window lists its own steps alone: the largest memory that was told stays, in either order."""
    store = opened(path)
    bring(store, path, log(tmp_path / "a.txt", [1], row(2)))
    assert bring(store, path, log(tmp_path / "b.txt", [2], row(1))).changed == 1
    assert bring(store, path, log(tmp_path / "c.txt", [], row(1) + row(2))).changed == 0
    assert [
        job["max_rss_b"] for id_ in (1, 2) for job in store.ask("jobs_of_id", {"cluster": "gw", "job_id": id_})
    ] == [5 * 1024**2] * 2


def test_runs_of_a_requeued_job_stay_apart(path: Path, tmp_path: Path) -> None:
    """Two runs that ended, with the submission unchanged and in different pages, are two, also when read again."""
    store = opened(path)
    second = row(1, Start=T0 + 500, End=T0 + 600)
    file = log(tmp_path / "a.txt", range(1, 40), second)
    bring(store, path, file)
    assert len(store.ask("jobs_of_id", {"cluster": "gw", "job_id": 1})) == 2
    copy = tmp_path / "b.txt"
    copy.write_bytes(file.read_bytes())
    assert bring(store, path, copy).changed == 0


def test_kept_pages_can_be_parsed_again(path: Path, tmp_path: Path) -> None:
    """From the raw pages alone the runs and the rows kept aside come out again, also where they were lost."""
    store = opened(path)
    file = log(tmp_path / "a.txt", range(1, 101), BAD)
    bring(store, path, file)
    before = jobs_of(store)
    file.unlink()
    (same,) = import_again(store, path)
    assert (same.runs, same.changed, same.bad) == (100, 0, 2)
    store.ask("quarantine_forget", {"source": f"sacct:{file}", "line": 0, "lines": 10**6})
    with store._db.transaction():
        store._db.execute("DELETE FROM jobs WHERE job_id % 2 = 0")
    (found,) = import_again(store, path)
    assert found.changed == 50
    assert jobs_of(store) == before
    assert store.ask("counts")[0]["quarantine"] == 2


@pytest.mark.parametrize("processes", [1, 2])
def test_users_of_another_cluster_get_their_names_of_the_hub_s_host(path: Path, tmp_path: Path, processes: int) -> None:
    """The table renames whom it lists; one that changed renames them from kept pages, and none gives the names back."""
    store = opened(path)
    source = SacctFile(log(tmp_path / "a.txt", range(1, 101)), "gw", page_b=2000)
    names = parse_user_names(b"cluster,user,person\ngw,u2,alice\nelsewhere,u1,mallory\n", "users.csv")

    def users() -> set[str]:
        return {str(name) for (name,) in store._db.execute('SELECT DISTINCT "user" FROM jobs').fetchall()}

    import_source(store, path, source, processes=processes, users=names)
    renamed = users()
    assert "alice" in renamed
    assert {"u2", "mallory"}.isdisjoint(renamed)
    import_again(store, path, users=parse_user_names(b"cluster,user,person\ngw,u2,bob\n", "users.csv"))
    assert users() == renamed - {"alice"} | {"bob"}
    import_again(store, path)
    assert users() == renamed - {"alice"} | {"u2"}


def test_a_page_that_was_damaged_is_named(path: Path, tmp_path: Path) -> None:
    """A page whose bytes changed on disk is not parsed."""
    store = opened(path)
    bring(store, path, log(tmp_path / "a.txt", range(1, 5)), page_b=10**6)
    (page,) = store.files.folder.rglob("*.z")
    page.write_bytes(page.read_bytes()[:-5])
    with pytest.raises(StoreError, match=r"the raw page is damaged"):
        import_again(store, path)


def test_logs_without_waits_are_told(path: Path, tmp_path: Path) -> None:
    """The rule by which ends are known is stored with the import."""
    file = tmp_path / "old.swf"
    file.write_text("; UnixStartTime: 1000\n" + "7 10 -1 30 4 -1 -1 4 600 -1 1 12 3 -1 -1 -1 -1 -1\n" * 3)
    store = opened(path)
    result = import_source(store, path, SwfFile(file, page_b=10))
    assert (result.end_rule, result.cluster, result.pages) == ("submit + run", "old", 4)
    (source,) = store.ask("history_sources")
    assert (source["end_rule"], source["cut_off"]) == ("submit + run", 0)
    (job,) = store.ask("jobs_of_id", {"cluster": "old", "job_id": 7})
    assert (job["submit"], job["start"], job["end"]) == (1010, 1010, 1040)


def test_a_store_that_a_hub_holds_is_one_line(path: Path) -> None:
    """It says what to do: another file, or the hub stopped."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=r"probably a running hub: write to another file with --into, or stop"):
            opened(path)
    finally:
        holder.kill()
        holder.wait()
        assert holder.stdout is not None
        assert holder.stdin is not None
        holder.stdout.close()
        holder.stdin.close()


HOLD = """
import sys, pathlib
from gpuwaste.core.clock import SystemClock
from gpuwaste.store.hub.hub_store import HubStore
store = HubStore.open(pathlib.Path(sys.argv[1]), SystemClock())
print("held", flush=True)
sys.stdin.read()
"""


def test_the_hub_opens_what_was_imported(path: Path, tmp_path: Path) -> None:
    """The store is the hub's own: its runs and its history stream are there."""
    store = opened(path)
    bring(store, path, log(tmp_path / "a.txt", range(1, 11)))
    store.close()
    hub = HubStore.open(path, store._clock)
    assert runs_of_id(hub, "gw", 5)[0].user == "u2"
    assert len(history_events(hub, 0, 100)) == 20
    hub.close()


# Imports and kills itself at the N-th event: a file that is opened or renamed, a process that starts, or, in the
# store's transactions, the time that is asked for.
DIE = """
import os, pathlib, signal, sys, threading
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.importers.bulk_import import import_source
from gpuwaste.jobs.importers.sources.sacct import SacctFile
from gpuwaste.jobs.importers.history_store import HistoryStore
from gpuwaste.jobs.importers.import_result import ImportResult
left = int(sys.argv[3])
def hook(event, args):
    global left
    if event in ("open", "os.rename", "os.remove", "clock"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
class Clock(SystemClock):
    def utc_us(self):
        sys.audit("clock")
        return super().utc_us()
path, file = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
source = SacctFile(file, "gw", page_b=4000)
sys.addaudithook(hook)
store = HistoryStore.open(path, Clock())
import_source(store, path, source)
store.close()
"""


@pytest.mark.long
def test_an_import_that_is_killed_goes_on(path: Path, tmp_path: Path) -> None:
    """Killed at many places, one after the other on one store, it ends with what an undisturbed import gives."""
    file = log(tmp_path / "a.txt", range(1, 301), BAD)
    killed = 0
    for at in (14, 29, 31, 35, 38, 40, 43, 47, 100000):
        done = subprocess.run([sys.executable, "-c", DIE, path, file, str(at)], check=False, capture_output=True)
        assert done.returncode in {0, -signal.SIGKILL}, done.stderr.decode()
        killed += done.returncode != 0
    assert done.returncode == 0
    assert killed >= 6
    store, whole = opened(path), opened(tmp_path / "whole.duckdb")
    bring(whole, tmp_path / "whole.duckdb", file)
    assert jobs_of(store) == jobs_of(whole)
    assert store.ask("counts")[0] | {"last_event": 0} == whole.ask("counts")[0] | {"last_event": 0}
    (source,) = store.ask("history_sources")
    assert source["cut_off"] >= 1
    assert not list(store.files.scratch.iterdir())


ORPHANS = """
import os, pathlib, psutil, signal, sys
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.importers.bulk_import import import_source
from gpuwaste.jobs.importers.sources.sacct import SacctFile
from gpuwaste.jobs.importers.history_store import HistoryStore
from gpuwaste.jobs.importers.import_result import ImportResult
path, file = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
def die(until, runs):
    print(*(child.pid for child in psutil.Process().children()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    store = HistoryStore.open(path, SystemClock())
    import_source(store, path, SacctFile(file, "gw", page_b=4000), processes=2, progress=die)
"""


def test_processes_of_a_killed_import_end_too(path: Path, tmp_path: Path) -> None:
    """Nobody waits for work that never comes."""
    file = log(tmp_path / "a.txt", range(1, 301))
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS)
    with subprocess.Popen([sys.executable, script, path, file], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pids = [int(word) for word in run.stdout.readline().split()]
    assert len(pids) == 2
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids), 30, "the processes to end")
