"""The odd host runs as any other process once the demo has ended."""

import os
import subprocess
import sys

import psutil
from tools.lift import lift

_TREE = """
import os, subprocess, sys, threading
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
threading.Thread(target=threading.Event().wait, daemon=True).start()
code = "import sys; print('up', flush=True); sys.stdin.read()"
child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
sys.stdin.read()
child.communicate()
"""


def policies(pid: int) -> set[int]:
    """Return the policies of a process's threads."""
    return {os.sched_getscheduler(thread.id) for thread in psutil.Process(pid).threads()}


def test_every_thread_of_every_process_below_is_lifted() -> None:
    """A process with a thread and a child, all SCHED_IDLE, is as any other afterwards; the caller is not touched."""
    mine = os.sched_getscheduler(0)
    with subprocess.Popen([sys.executable, "-c", _TREE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as tree:
        assert tree.stdout is not None
        assert tree.stdout.readline() == b"up\n"
        (child,) = psutil.Process(tree.pid).children()
        assert policies(tree.pid) | policies(child.pid) == {os.SCHED_IDLE}
        assert lift(tree.pid) == 3
        assert policies(tree.pid) | policies(child.pid) == {os.SCHED_OTHER}
        tree.communicate()
    assert os.sched_getscheduler(0) == mine


def test_a_process_that_is_gone_is_none() -> None:
    """Between the question and the answer it may end."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert lift(ended.pid) == 0
