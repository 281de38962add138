"""How a hub's process keeps its memory small: heaps that threads share, cycles that still go."""

import platform
import subprocess
import sys

import pytest

from gpuwaste.testing.patience import patient

HEAPS = """
import ctypes, threading
from gpuwaste.hub import hub_daemon
if {few}:
    hub_daemon.use_few_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.fopen.restype = ctypes.c_void_p, ctypes.c_void_p
libc.malloc_info.argtypes, libc.fclose.argtypes = (ctypes.c_int, ctypes.c_void_p), (ctypes.c_void_p,)
together = threading.Barrier(6)
def work():
    together.wait(60)
    libc.malloc(1000)
    together.wait(60)
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
out = libc.fopen(b"/dev/stdout", b"w")
libc.malloc_info(0, out)
libc.fclose(out)
"""
CYCLES = """
import gc, weakref
from gpuwaste.hub.hub_daemon import collect_seldom
collect_seldom()
class Node: pass
one = Node(); one.itself = one
gone = weakref.ref(one)
del one
kept = []
while gone() is not None and len(kept) < 1_000_000: kept.append([])
print(gc.get_freeze_count() > 0, gone() is None, len(kept) > 1000)
"""


def said(code: str) -> str:
    """Return what a process of its own prints."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=patient(120)
    ).stdout


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc has no such heaps")
def test_threads_share_two_heaps() -> None:
    """Six threads at work have two heaps after the call, and more without it."""
    assert said(HEAPS.format(few=False)).count("<heap nr=") > 2
    assert said(HEAPS.format(few=True)).count("<heap nr=") == 2


def test_garbage_goes_later_but_goes() -> None:
    """A cycle outlives a thousand new objects and not a million; what was there at the start is left alone."""
    assert said(CYCLES).split() == ["True"] * 3
