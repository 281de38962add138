"""Children of a command: answers in order, limits that are kept and told, and none that is left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import psutil
import pytest

from gpuwaste.core.child_process import ChildEnded, ChildLimits, ChildProcess, call_in_child, map_in_children
from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient


def squared(number: int) -> int:
    """Return the square, later for smaller numbers; of the number 13 an error."""
    if number == 13:
        raise ParseError("thirteen")
    time.sleep(0.02 * (number % 3))
    return number * number


def computed(_: int) -> int:
    """Compute in C, holding Python's lock, for minutes: no signal handler of Python runs meanwhile."""
    return len(str(pow(3, 10**9)))


def grown(size_b: int) -> int:
    """Take memory."""
    return len(bytearray(size_b))


def slept(wall_s: float) -> None:
    """Wait without using anything."""
    time.sleep(wall_s)


def killed(_: int) -> None:
    """Die as the kernel has a process die that takes the last memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def unsendable(_: int) -> object:
    """Return what cannot be sent."""
    return lambda: None


def children() -> list[psutil.Process]:
    """Return the children of ours that run; other tests have left the trackers of Python's own workers."""
    found = [each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]
    return [each for each in found if "child_main" in " ".join(each.cmdline())]


def test_answers_come_in_the_order_of_the_items() -> None:
    """Whichever child is done first."""
    assert list(map_in_children(squared, iter(range(12)), 3)) == [number * number for number in range(12)]
    assert list(map_in_children(squared, iter(()), 2)) == []
    assert children() == []


def test_an_error_comes_after_the_answers_before_it() -> None:
    """One of a call, and one of the items."""

    def items() -> Iterator[int]:
        yield from (1, 2, 3)
        raise ParseError("cut")

    for source, words, first in ((iter([1, 13, 2]), "thirteen", [1]), (items(), "cut", [1, 4, 9])):
        found = []
        with pytest.raises(ParseError, match=words):
            for answer in map_in_children(squared, source, 2):
                found.append(answer)  # noqa: PERF402 what came before the error is looked at
        assert found == first
    assert children() == []


def test_a_limit_of_cpu_time_ends_what_never_looks_up() -> None:
    """A second of CPU: the child ends within a few, and the error says what was exceeded."""
    began = time.monotonic()
    with pytest.raises(ChildEnded, match=r"^took more than 1 s of CPU time$"):
        call_in_child(computed, 0, ChildLimits(cpu_s=1))
    assert time.monotonic() - began < 60


def test_a_limit_of_memory() -> None:
    """More than the limit is a MemoryError of the child, which the parent raises; less is answered."""
    limits = ChildLimits(memory_b=300 << 20)
    assert call_in_child(grown, 10 << 20, limits) == 10 << 20
    with pytest.raises(MemoryError):
        call_in_child(grown, 400 << 20, limits)


def test_a_limit_of_time() -> None:
    """A child that only waits is ended, too."""
    with pytest.raises(ChildEnded, match=r"^took longer than 0\.5 s$"):
        call_in_child(slept, 600.0, ChildLimits(wall_s=0.5))
    assert children() == []


def test_a_child_that_is_killed_is_told() -> None:
    """The kernel's out-of-memory killer leaves a signal, and nothing more."""
    with pytest.raises(ChildEnded, match=r"was ended by SIGKILL: out of memory\?"):
        list(map_in_children(killed, iter([1, 2]), 2))
    with pytest.raises(GpuwasteError, match="cannot be sent"):
        call_in_child(unsendable, 0, ChildLimits())


def test_a_child_ends_with_its_parent_and_not_by_ctrl_c(tmp_path: Path) -> None:
    """SIGINT to the group leaves the child at work from its first instruction on; the parent's SIGKILL ends it."""
    program = (
        "import sys, time; from gpuwaste.core.child_process import ChildProcess\n"
        "from tests.integration.core.test_child_process import slept\n"
        f"child = ChildProcess(slept); child.ask(600.0); open({str(tmp_path / 'ready')!r}, 'w').close()\n"
        "try:\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    time.sleep(600)\n"
    )
    root = Path(__file__).parents[3]
    parent = subprocess.Popen([sys.executable, "-c", program], start_new_session=True, stderr=subprocess.PIPE, cwd=root)
    wait_until((tmp_path / "ready").exists, 60, "the parent")
    (child,) = psutil.Process(parent.pid).children()
    for _ in range(5):
        os.killpg(parent.pid, signal.SIGINT)
        time.sleep(0.05)
    parent.kill()
    _, said = parent.communicate(timeout=patient(60))
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, 30, "the child's end")
    assert b"slept" not in said


def test_ctrl_c_just_before_a_child_starts_leaves_the_signal_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python raises it in the call that blocks SIGINT, once it has: the next Ctrl-C has to come through."""
    mask = signal.pthread_sigmask

    def pressed(how: int, signals: Collection[int]) -> set[int | signal.Signals]:
        before = mask(how, signals)
        if how == signal.SIG_BLOCK and signals:
            raise KeyboardInterrupt
        return before

    monkeypatch.setattr(signal, "pthread_sigmask", pressed)
    with pytest.raises(KeyboardInterrupt):
        ChildProcess(squared)
    assert signal.SIGINT not in mask(signal.SIG_BLOCK, ())


def test_a_child_that_is_gone_is_seen_at_its_answer() -> None:
    """To ask one that has died is no error of its own."""
    child = ChildProcess(killed)
    child.ask(1)
    wait_until(lambda: not child.alive, 60, "the child's end")
    child.ask(2)
    with pytest.raises(ChildEnded):
        child.answer()
    child.end()
    child.end()
