"""Parts of a daemon: each made once, started in their order, ended from the last to the first."""

from typing import ClassVar, Self

import pytest

from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.worker import Worker
from gpuwaste.testing.clocks import FakeClock


class _Told(list[str]):
    """What the parts did, in order."""


class _Noted(Part):
    """Notes what is done to it."""

    def __init__(self, told: _Told) -> None:
        self.told = told

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        return cls(parts.get(_Told))

    def before_start(self) -> None:
        self.told.append(f"start {type(self).__name__}")

    def close(self) -> None:
        self.told.append(f"close {type(self).__name__}")


class _Store(_Noted):
    @property
    def reloads(self) -> Reloads:
        return {("agent.retention_days",): lambda c: self.told.append(f"keep {c.agent.retention_days}")}


class _Reader(_Noted):
    """Needs the store."""

    late: ClassVar[bool] = True

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        parts.get(_Store)
        return super().part_of(parts)


class _First(Part):
    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        parts.get(_Second)
        return cls()


class _Second(Part):
    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        parts.get(_First)
        return cls()


class _Waiting(Worker):
    """A worker that notes how long it waits before its first step, and that it is ended."""

    def __init__(self, told: _Told) -> None:
        super().__init__("waiting", lambda: None, FakeClock())
        self._told = told

    def start(self, first_s: float | None = 0.0) -> None:
        self._told.append(f"worker after {first_s}")

    def stop(self, timeout_s: float | None = None) -> None:
        del timeout_s
        self._told.append("worker ends")


@pytest.fixture
def parts() -> Parts:
    made = Parts(_Told())
    made.make((_Reader, _Store))
    return made


def test_a_part_is_made_once_behind_what_it_needs(parts: Parts) -> None:
    """The reader asks for the store, which is made first, and is the same for everybody."""
    assert [type(part) for part in parts.all()] == [_Store, _Reader]
    assert parts.get(_Store) is parts.all()[0]


def test_the_last_part_ends_first_and_its_worker_before_it(parts: Parts) -> None:
    """Every part has started before any worker runs; late ones wait; whoever uses another ends before it."""
    told = parts.get(_Told)
    parts.get(_Reader).worker = _Waiting(told)  # type: ignore[attr-defined]  # as a part's constructor sets it
    parts.start(late_s=7.0)
    parts.close()
    assert told == [
        "start _Store", "start _Reader", "worker after 7.0", "worker ends", "close _Reader", "close _Store",
    ]  # fmt: skip


def test_what_a_reload_changes_is_what_the_parts_say(parts: Parts) -> None:
    """The keys of all parts are in one table, with what puts each in force."""
    ((keys, apply),) = parts.reloads().items()
    apply(Config())
    assert (keys, parts.get(_Told)) == (("agent.retention_days",), [f"keep {Config().agent.retention_days}"])


def test_parts_that_need_each_other_are_a_defect() -> None:
    """The message names the circle."""
    with pytest.raises(TypeError, match="_First -> _Second"):
        Parts().get(_First)


def test_a_class_that_is_no_part_has_to_be_given() -> None:
    """What nobody gave cannot be made."""
    with pytest.raises(TypeError, match="_Told is not a part"):
        Parts().get(_Told)
