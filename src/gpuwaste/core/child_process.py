"""Child processes of a command: work done in parallel, or with limits of time and memory.

A child is a new interpreter. It never receives Ctrl-C, which a terminal sends to every process of a command: the
command receives it and ends its children. A child ends with the thread that started it, however that ends.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Final, TypeVar

from gpuwaste.core.errors import GpuwasteError

T = TypeVar("T")
R = TypeVar("R")
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_AHEAD: Final = 2  # items of each child that are computed before they are needed
_MIB_B: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What a child may use; None is no limit.

    `memory_b` limits what it allocates: files that it maps do not count. `wall_s` counts from `ask` on, also while
    the child waits.
    """

    cpu_s: int | None = None
    memory_b: int | None = None
    wall_s: float | None = None


NO_LIMITS: Final = ChildLimits()


class ChildEnded(GpuwasteError):  # noqa: N818 the name describes an end
    """A child ended, or was ended, before it had an answer; the message names the limit exceeded, if any."""


class ChildProcess:
    """One child that computes `call(item)` for each item it receives; `call` is a function of a module."""

    def __init__(self, call: Callable[[Any], Any], limits: ChildLimits = NO_LIMITS) -> None:
        """Start the child. Raises GpuwasteError where the host has no process or memory left."""
        self._limits = limits
        self._until = 0.0
        self.pipe, theirs = Pipe()
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import child_main; "
            f"child_main({theirs.fileno()}, {os.getpid()})"
        )
        try:
            self._process = _started(
                [sys.executable, "-IBS", "-c", program], theirs.fileno(), quiet=limits != NO_LIMITS
            )
        except OSError as error:
            self.pipe.close()
            raise GpuwasteError(f"{sys.executable}: cannot be started: {error.strerror}") from error
        except BaseException:
            self.pipe.close()
            raise
        finally:
            theirs.close()
        with suppress(OSError):  # a child that has ended is noticed by `answer`
            self.pipe.send((call, limits))

    @property
    def alive(self) -> bool:
        """Return whether the child runs."""
        return self._process.poll() is None

    def ask(self, item: Any) -> None:
        """Send an item to the child, which must have none."""
        self._until = time.monotonic() + self._limits.wall_s if self._limits.wall_s is not None else float("inf")
        with suppress(OSError):
            self.pipe.send(item)

    def answer(self) -> Any:
        """Wait for the answer and return it. Raises what the call raised, and ChildEnded."""
        left = None if self._until == float("inf") else max(0.0, self._until - time.monotonic())
        if not self.pipe.poll(left):
            self.end()
            raise ChildEnded(f"took longer than {self._limits.wall_s:g} s")
        try:
            ok, value = self.pipe.recv()
        except (EOFError, OSError):
            raise ChildEnded(self._end_words(self._process.wait())) from None
        if ok:
            return value
        raise value

    def end(self) -> None:
        """Kill the child at once; a second call does nothing."""
        self.pipe.close()
        self._process.kill()
        self._process.wait()

    def _end_words(self, code: int) -> str:
        limits = self._limits
        if code == -signal.SIGXCPU:
            return f"took more than {limits.cpu_s} s of CPU time"
        how = f"ended with exit code {code}" if code >= 0 else f"was ended by {_signal_name(-code)}"
        if limits.memory_b is not None:
            return f"its process {how}: it may use {limits.memory_b // _MIB_B} MiB of memory"
        return f"its process {how}" + (": out of memory?" if code == -signal.SIGKILL else "")


def call_in_child(call: Callable[[T], R], item: T, limits: ChildLimits) -> R:
    """Return `call(item)`, computed within limits. Raises what the call raised, and ChildEnded."""
    child = ChildProcess(call, limits)
    try:
        child.ask(item)
        answer: R = child.answer()
        return answer
    finally:
        child.end()


def map_in_children(call: Callable[[T], R], items: Iterator[T], processes: int) -> Iterator[R]:
    """Yield `call(item)` of each item in order, computed by `processes` children a few items ahead.

    Raises what a call, or the items, raised, after the earlier answers; and ChildEnded. No child is left running.
    """
    pool = _Pool(call, items, processes)
    try:
        wanted = 0
        while pool.give(wanted) or pool.busy or wanted in pool.answers:
            while wanted not in pool.answers:
                pool.take()
            ok, answer = pool.answers.pop(wanted)
            if not ok:
                raise answer
            yield answer
            wanted += 1
    finally:
        pool.end()


class _Pool:
    """Children and their items: `answers` maps an item's number to (True, answer) or (False, error)."""

    def __init__(self, call: Callable[[Any], Any], items: Iterator[Any], processes: int) -> None:
        self._items: Iterator[Any] | None = items
        self._given = 0
        self._children = [ChildProcess(call) for _ in range(processes)]
        self._idle = list(self._children)
        self.busy: dict[Connection, tuple[ChildProcess, int]] = {}
        self.answers: dict[int, tuple[bool, Any]] = {}

    def give(self, wanted: int) -> bool:
        """Send items to idle children, up to the limit ahead of `wanted`; return whether there was one."""
        before = self._given
        while self._idle and self._items is not None and self._given - wanted < len(self._children) * _AHEAD:
            try:
                item = next(self._items)
            except StopIteration:
                self._items = None
                break
            except GpuwasteError as error:
                self.answers[self._given] = False, error
                self._items = None
                break
            child = self._idle.pop()
            child.ask(item)
            self.busy[child.pipe] = child, self._given
            self._given += 1
        return self._given > before

    def take(self) -> None:
        """Wait for an answer, and take all that have arrived."""
        for pipe in wait(list(self.busy)):
            child, number = self.busy.pop(pipe)  # type: ignore[call-overload]
            self._idle.append(child)
            try:
                self.answers[number] = True, child.answer()
            except Exception as error:  # noqa: BLE001 raised in the order of the items
                self.answers[number] = False, error

    def end(self) -> None:
        """End the children."""
        for child in self._children:
            child.end()


def child_main(descriptor: int, parent: int) -> None:
    """Run a child: answer until the parent closes the pipe."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return
    with Connection(descriptor) as pipe, suppress(EOFError, OSError):
        call, limits = pipe.recv()
        _hold(limits)
        while True:
            _reply(pipe, call, pipe.recv())


def _reply(pipe: Connection, call: Callable[[Any], Any], item: Any) -> None:
    """Send (True, answer) or (False, error). Raises OSError where the parent has ended."""
    try:
        answer = True, call(item)
    except Exception as error:  # noqa: BLE001 the parent raises it
        error.add_note(traceback.format_exc())  # missing from the parent's traceback
        answer = False, error
    try:
        pipe.send(answer)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 an answer that cannot be sent is replaced by its error text
        pipe.send((False, GpuwasteError(f"{type(answer[1]).__name__} cannot be sent: {error}")))


def _hold(limits: ChildLimits) -> None:
    if limits.cpu_s is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + 1))
    if limits.memory_b is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (limits.memory_b, limits.memory_b))
    if limits != NO_LIMITS:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _started(argv: list[str], descriptor: int, *, quiet: bool) -> "subprocess.Popen[bytes]":
    """Start a process with SIGINT blocked from its first instruction on. Raises OSError."""
    silent = subprocess.DEVNULL
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    process = None
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # raises an earlier Ctrl-C, SIGINT is then blocked
        # a library that runs out of memory writes its own lines
        process = subprocess.Popen(
            argv, stdin=silent, stdout=silent, stderr=silent if quiet else None, pass_fds=[descriptor]
        )
        signal.pthread_sigmask(signal.SIG_SETMASK, before)  # a Ctrl-C in the meantime is raised here
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if process is not None:
            process.kill()
            process.wait()
        raise
    return process


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
