"""The preloaded clock of a machine of the field, in programs of this host."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tools.field.net import hosts

_HOUR_NS = 3600 * 10**9
_SCRIPT = """
import ctypes, time
print(time.time(), time.monotonic())
libc = ctypes.CDLL(None)
class Timespec(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
sem = ctypes.create_string_buffer(64)
libc.sem_init(sem, 0, 0)
until = time.time() + 0.2
began = time.monotonic()
libc.sem_timedwait(sem, ctypes.byref(Timespec(int(until), int(until % 1 * 10**9))))
print(time.monotonic() - began, 0)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the library and the file of its offset."""
    folder = tmp_path_factory.mktemp("clock")
    offset, built = folder / "offset", folder / "libclock.so"
    subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", f'-DFILE_OF_OFFSET="{offset}"', "-o", built,
         hosts.PRELOAD], check=True,
    )  # fmt: skip
    return built, offset


@pytest.mark.parametrize("ahead_ns", [0, _HOUR_NS, -_HOUR_NS, 2_999_999_999])
def test_clock_is_ahead_and_waits_end_in_time(library: tuple[Path, Path], ahead_ns: int) -> None:
    """A program sees the time with the offset, its monotonic clock without, and its timed waits end in time."""
    built, offset = library
    offset.write_bytes(ahead_ns.to_bytes(8, "little", signed=True))
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env={"LD_PRELOAD": str(built)}, capture_output=True, text=True, check=True
    )
    (wall, monotonic), (waited, _) = ([float(word) for word in line.split()] for line in done.stdout.splitlines())
    assert time.time() - 60 < wall - ahead_ns / 1e9 <= time.time()
    assert time.monotonic() - 60 < monotonic <= time.monotonic()
    assert 0.15 < waited < 30


def test_offset_changes_while_a_program_runs(library: tuple[Path, Path]) -> None:
    """A program that runs sees the clock jump when the file is written in place."""
    built, offset = library
    offset.write_bytes(bytes(8))
    script = "import sys, time\nfor _ in sys.stdin: print(time.time(), flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", script], env={"LD_PRELOAD": str(built)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as program:  # fmt: skip
        assert program.stdin is not None
        assert program.stdout is not None
        seen = []
        for ahead_ns in (0, _HOUR_NS, 0):
            hosts.set_offset(offset, ahead_ns)
            program.stdin.write("\n")
            program.stdin.flush()
            seen.append(float(program.stdout.readline()) - time.time())
        program.stdin.close()
    assert [round(ahead_s / 3600) for ahead_s in seen] == [0, 1, 0]
