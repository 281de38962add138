"""Ctrl-C at a terminal, at drawn moments of long commands: exit code 130, one line at most, and nothing left behind."""

import fcntl
import os
import pty
import random
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from tests.integration.cli.hub_double import running_hub
from tests.unit.show.documents import report

from gpuwaste.advice.predict.bundle import load_bundle
from gpuwaste.cli.interrupts import EXIT_INTERRUPTED
from gpuwaste.cli.main import main
from gpuwaste.core.files import TEMPORARY
from gpuwaste.store.duckdb_connection import connect
from gpuwaste.testing.patience import patient

onnx = pytest.importorskip("onnx", reason="the extra [estimate] is not installed")
pytestmark = pytest.mark.long
INTERRUPTED = {130, -signal.SIGINT}  # the same for a shell; the second where Python was ending already
ROWS = 12_000
MOMENTS = 3
_PAGES = "SELECT count(*), sum(runs) FROM (SELECT DISTINCT position, runs FROM pages)"  # the last one is read again
_HANDLED_S = 0.1  # after the start of main(): what Python does before it is not ours
_NAME = "n" * 1000  # of a job: few rows are two pages
PROGRAM = (
    "import os, sys; from gpuwaste.cli.main import main; os.write(int(os.environ['READY']), b'x'); sys.exit(main())"
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, its lines on stderr, the seconds that it took to its end."""

    code: int
    lines: list[str]
    took_s: float


def pressed(words: list[str], moment_s: float, presses: int = 1) -> Ended:
    """Run a command in a terminal of its own, press Ctrl-C at a moment after its start, and wait for its end.

    No process of its session is left then.
    """
    terminal, its_side = pty.openpty()
    ready, tell = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        stdin=its_side,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=[tell],
        env={**os.environ, "READY": str(tell)},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 no thread runs here
    )
    os.close(its_side)
    os.close(tell)
    try:
        assert os.read(ready, 1) == b"x"
        time.sleep(moment_s)
        began = time.monotonic()
        for _ in range(presses):
            os.write(terminal, b"\x03")
            time.sleep(0.02)
        _, said = process.communicate(timeout=patient(120))
        took_s = time.monotonic() - began
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
        os.close(ready)
    left = [each for each in psutil.process_iter() if each.pid != os.getpid() and session_of(each.pid) == process.pid]
    _, alive = psutil.wait_procs(left, timeout=patient(5))
    assert [" ".join(each.cmdline()) for each in alive] == []
    return Ended(process.returncode, said.decode().splitlines(), took_s)


def session_of(pid: int) -> int:
    """Return a process's session, 0 where it is gone."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def check(
    words: list[str],
    whole_s: float,
    look: Callable[[Ended], None] = lambda _: None,
    *,
    before: Callable[[], None] = lambda: None,
    most_lines: int = 1,
) -> None:
    """Press Ctrl-C at drawn moments of a command that takes about `whole_s`, MOMENTS times before its end.

    The next run may be faster: after one that was done already the moments are earlier.
    """
    draw, latest_s, interrupted = random.Random(" ".join(words[:2])), max(0.3, 0.8 * whole_s), 0
    while interrupted < MOMENTS:
        before()
        end = pressed(words, draw.uniform(_HANDLED_S, latest_s))
        if end.code == 0 and latest_s > 2 * _HANDLED_S:
            latest_s /= 2
            continue
        assert end.code in INTERRUPTED, end
        assert (end.code == EXIT_INTERRUPTED) <= len(end.lines) <= most_lines, end
        assert end.took_s < patient(20), end
        look(end)
        interrupted += 1


def timed(words: list[str]) -> float:
    """Run a command as a whole; returns the seconds."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from gpuwaste.cli.main import main; sys.exit(main())", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=patient(300),
    )
    assert done.returncode == 0, done.stderr
    return time.monotonic() - began


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write what sacct lists of some jobs, several pages of it."""
    path = tmp_path_factory.mktemp("sacct") / "jobs.txt"
    lines = ["JobIDRaw|JobID|JobName|User|Account|Partition|Submit|Eligible|Start|End|State|AllocTRES|Timelimit"]
    for number in range(1, ROWS + 1):
        at = f"2024-0{1 + number // 9000}-{1 + number // 400 % 28:02d}T{number // 17 % 24:02d}:{number % 60:02d}"
        tres = "cpu=4,gres/gpu=1,mem=4G,node=1"
        who = f"{number}|{number}|job{number % 50}{_NAME}|user{number % 40}|lab|gpu"
        state = "COMPLETED" if number % 5 else "FAILED"
        lines.append(f"{who}|{at}:00|{at}:00|{at}:10|{at}:50|{state}|{tres}|01:00:00")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def store(listed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Import them."""
    path = tmp_path_factory.mktemp("store") / "hub.duckdb"
    assert main(["history", "import", "--sacct", str(listed), "-M", "gw", "--into", str(path)]) == 0
    return path


@pytest.mark.parametrize("threads", ["1", "3"])
def test_an_import(listed: Path, tmp_path: Path, threads: str) -> None:
    """A new store is gone again, or has complete pages: the one line names it, and the same command continues."""
    into = tmp_path / "new" / "hub.duckdb"
    words = ["history", "import", "--sacct", str(listed), "-M", "gw", "--threads", threads, "--into", str(into)]

    def look(end: Ended) -> None:
        if not into.exists():
            assert not into.parent.exists()
            assert end.lines in ([], ["gpuwaste: interrupted"])
            return
        with connect(into, {}) as found:
            pages = found.execute(_PAGES).fetchone()
            runs = found.execute("SELECT count(*) FROM jobs").fetchone()
        assert pages is not None
        assert pages[0] > 0
        assert runs == (pages[1],)

    whole_s = timed([*words[:-1], str(tmp_path / "whole.duckdb")])
    check(words, whole_s, look, before=lambda: shutil.rmtree(into.parent, ignore_errors=True))
    assert main(words) == 0
    with connect(into, {}) as found:
        assert found.execute("SELECT count(*) FROM jobs").fetchone() == (ROWS,)


def test_an_import_again(store: Path) -> None:
    """The store stays as it was."""
    words = ["history", "import", "--again", "--into", str(store)]
    check(words, timed(words))
    with connect(store, {}) as found:
        assert found.execute("SELECT count(*) FROM jobs").fetchone() == (ROWS,)


def test_a_training(store: Path, tmp_path: Path) -> None:
    """No bundle is in the registry, or a whole one, never a part; the progress lines before Ctrl-C are our own."""
    models = tmp_path / "models"
    words = [
        "model",
        "train",
        "--store",
        str(store),
        "--models-dir",
        str(models),
        "--trials",
        "1",
        "--targets",
        "failure",
    ]

    def look(end: Ended) -> None:
        assert not any("Traceback" in line or "bug" in line for line in end.lines), end
        assert not list(models.glob(f"{TEMPORARY}*"))
        for bundle in filter(Path.is_dir, models.glob("[!.]*")):
            load_bundle(bundle)  # pressed between the rename that publishes it and the end of the command

    whole_s = timed([*words[:5], str(tmp_path / "whole"), *words[6:]])
    check(words, whole_s, look, before=lambda: shutil.rmtree(models, ignore_errors=True), most_lines=100)


@pytest.mark.parametrize("scheduler", ["easy", "conservative"])
def test_a_simulation(scheduler: str) -> None:
    """Compiled loops of a scheduler, too."""
    words = ["simulate", "run", "--generate", "lublin:jobs=4000", "--scheduler", scheduler, "--json"]
    check(words, timed(words))


def test_an_estimate(tmp_path: Path) -> None:
    """A library in C++ that holds Python's lock: it works in a child, and the child ends."""
    helper, kind, count = onnx.helper, onnx.TensorProto.FLOAT, 60_000
    nodes = [helper.make_node("Relu", [f"x{place}"], [f"x{place + 1}"]) for place in range(count)]
    given, made = (helper.make_tensor_value_info(name, kind, [2, 3]) for name in ("x0", f"x{count}"))
    path = tmp_path / "deep.onnx"
    path.write_bytes(helper.make_model(helper.make_graph(nodes, "deep", [given], [made])).SerializeToString())
    words = ["estimate", str(path)]
    check(words, timed(words))


@pytest.fixture
def many_rows(tmp_path: Path) -> Iterator[Path]:
    """Serve a report of many jobs; yields the configuration."""
    with running_hub(tmp_path) as hub:
        answer = report()
        hub.answers = {"/v1/report": {**answer, "jobs": answer["jobs"] * 4_000}}
        yield tmp_path / "gpuwaste.toml"


def test_a_report_of_many_rows(many_rows: Path) -> None:
    """While the answer is sent, read or printed."""
    words = ["report", "--csv", "--allusers", "--config", str(many_rows)]
    check(words, timed(words))


def test_a_second_press_ends_at_once(listed: Path, tmp_path: Path) -> None:
    """Whoever presses three times within a moment gets the same quiet end."""
    into = tmp_path / "new" / "hub.duckdb"
    words = ["history", "import", "--sacct", str(listed), "-M", "gw", "--into", str(into)]
    for moment_s in (0.3, 0.8, 1.5):
        end = pressed(words, moment_s, presses=3)
        assert end.code in INTERRUPTED, end
        assert len(end.lines) <= 1, end
