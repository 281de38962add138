"""Ctrl-C where Python would drop its exception, or C be harmed by it: the command ends all the same, a moment later."""

import subprocess
import sys
from importlib import import_module

import pytest

from gpuwaste.cli.interrupts import _CALLED_FROM_C
from gpuwaste.testing.patience import patient

START = """
import signal, sys, time
from gpuwaste.cli.interrupts import interruptible

def press():
    signal.raise_signal(signal.SIGINT)

def wait():
    until = time.monotonic() + 60
    while time.monotonic() < until:
        pass
"""
END = """
with interruptible(last=True):
    try:
        work()
    except KeyboardInterrupt:
        print(*told)
        sys.exit(130)
sys.exit(1)
"""
FINALIZER = """
told = []

class Thing:
    def __del__(self):
        press()
        told.append("ran on")

def work():
    thing = Thing()
    del thing
    wait()
"""
CALLBACK = """
import numpy as np, xgboost
told = []

class Batches(xgboost.DataIter):
    left = 1

    def next(self, input_data):
        if not self.left:
            return False
        self.left -= 1
        press()
        input_data(data=np.ones((8, 2), dtype=np.float32), label=np.ones(8))
        told.append("answered")
        return True

    def reset(self):
        self.left = 1

def work():
    xgboost.QuantileDMatrix(Batches())
    wait()
"""

IMPORT_BY_C = """
from gpuwaste.store import database
told, found = [], database._WithoutPandas.find_spec

def find_spec(name, *more):
    if name == "pandas" and not told:
        told.append("asked for pandas")
        press()
    return found(name, *more)

def work():
    store = database.Database.open(":memory:", "node")
    database._WithoutPandas.find_spec = find_spec
    store.execute("SELECT $a", {"a": 1.5})
    wait()
"""
IMPORT_BY_PYTHON = """
import importlib, sys
told = []

class Finder:
    @staticmethod
    def find_spec(name, *_):
        if name.startswith("nothing_here"):
            told.append(name)
            press()
            told.append("ran on")

def work():
    sys.meta_path.insert(0, Finder)
    HOW
    wait()
"""

COMMIT = """
import tempfile
from pathlib import Path
from gpuwaste.store.database import Database
told = []

def work():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.duckdb"
        store = Database.open(path, "node")
        store.execute("CREATE TABLE many (a BIGINT)")
        signal.signal(signal.SIGALRM, lambda *_: press())
        try:
            while True:
                store.execute("BEGIN")
                store.execute("INSERT INTO many SELECT hash(range) % 1000000 FROM range(1000000)")
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                store.execute("COMMIT")
                signal.setitimer(signal.ITIMER_REAL, 0)
        except BaseException as error:
            told.append(type(error).__name__)
            store.close()
            Database.open(path, "node").close()
            raise
"""


def ended(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program that presses Ctrl-C in the midst of itself."""
    words = [sys.executable, "-c", START + program + END]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=patient(120))


@pytest.mark.parametrize(("module", "name"), sorted(_CALLED_FROM_C))
def test_what_c_calls_is_still_called_so(module: str, name: str) -> None:
    """A library that renames one of its callbacks would have KeyboardInterrupt raised within it again."""
    pytest.importorskip(module.partition(".")[0], reason="the extras [train] and [sim] are not installed")
    found = import_module(module)
    classes = [each for each in vars(found).values() if isinstance(each, type)]
    assert any(hasattr(owner, name) for owner in (found, *classes))


def test_in_a_finalizer() -> None:
    """The exception that Python drops comes again behind the finalizer; nothing is printed about it."""
    done = ended(FINALIZER)
    assert (done.returncode, done.stderr) == (130, "")


def test_in_a_callback_of_c() -> None:
    """XGBoost has each batch that it asked for: it would go on with an answer that nobody gave, and crash."""
    pytest.importorskip("xgboost", reason="the extra [train] is not installed")
    done = ended(CALLBACK)
    assert (done.returncode, done.stderr) == (130, "")
    assert "answered" in done.stdout


def test_in_an_import_by_a_library_in_c() -> None:
    """DuckDB looks for pandas at each value, and drops what is raised meanwhile: the press is not lost."""
    done = ended(IMPORT_BY_C)
    assert (done.returncode, done.stdout, done.stderr) == (130, "asked for pandas\n", "")


@pytest.mark.parametrize(
    "how", ["import nothing_here", "from nothing_here import x", "importlib.import_module('nothing_here')"]
)
def test_in_an_import_by_python(how: str) -> None:
    """An import statement, which takes long for a large library, ends in its midst."""
    done = ended(IMPORT_BY_PYTHON.replace("HOW", how))
    assert (done.returncode, done.stdout, done.stderr) == (130, "nothing_here\n", "")


def test_in_a_commit() -> None:
    """DuckDB held the file for an interrupted COMMIT: to open it again, as an import does for its last words, hung."""
    done = ended(COMMIT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "KeyboardInterrupt\n", "")
