"""Answers that are kept: made once for all who ask at once, made anew after a failure and when they are too old."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from gpuwaste.core.response_cache import ResponseCache
from gpuwaste.testing.clocks import FakeClock

READERS: Final = 8


def test_readers_at_once_share_one_making() -> None:
    """Eight threads ask while the first one makes: it is made once, all have it, and nothing of the making stays."""
    kept, made, begun, go_on = ResponseCache(FakeClock()), [], threading.Event(), threading.Event()

    def make() -> bytes:
        made.append(1)
        begun.set()
        assert go_on.wait(60)
        return b"answer"

    with ThreadPoolExecutor(READERS) as pool:
        first = pool.submit(kept.made, "key", 60.0, make)
        assert begun.wait(60)
        others = [pool.submit(kept.made, "key", 60.0, make) for _ in range(READERS - 1)]
        go_on.set()
        assert {one.result(60) for one in (first, *others)} == {b"answer"}
    assert (len(made), kept._making) == (1, {})


def test_a_failure_is_nobody_elses() -> None:
    """What the making raises reaches who asked; the next one makes it, and a third has it from there."""
    kept = ResponseCache(FakeClock())
    with pytest.raises(ZeroDivisionError):
        kept.made("key", 60.0, lambda: b"x" * (1 // 0))
    assert kept.made("key", 60.0, lambda: b"second") == b"second"
    assert kept.made("key", 60.0, lambda: b"third") == b"second"


def test_an_old_answer_is_made_anew() -> None:
    """After the seconds for which it is kept, another one is made; another key has its own."""
    clock = FakeClock()
    kept = ResponseCache(clock)
    assert kept.made("key", 60.0, lambda: b"old") == b"old"
    assert kept.made("other", 60.0, lambda: b"other") == b"other"
    clock.advance(61.0)
    assert kept.made("key", 60.0, lambda: b"new") == b"new"
