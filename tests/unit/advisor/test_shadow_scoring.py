"""Models on trial are scored for the record alone: in time, within a share of a core, never at an answer's cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpuwaste.advisor.advisor_models import Question, ShadowScoring
from gpuwaste.core.errors import ModelError
from gpuwaste.testing.clocks import FakeClock

BOTH = frozenset({"failure", "timeout"})


@dataclass
class FakeModel:
    """Gives each vector its first number as the probability of failure."""

    hash: str = "aa"
    error: Exception | None = None
    asked: list[int] = field(default_factory=list)

    @property
    def bundle(self) -> Any:
        return SimpleNamespace(hash=self.hash)

    def probabilities(self, vectors: np.ndarray, wanted: frozenset[str]) -> dict[str, list[float]]:
        self.asked.append(len(vectors))
        if self.error is not None:
            raise self.error
        return {target: vectors[:, 0].tolist() for target in sorted({"failure"} & wanted)}


class Cpu:
    """A thread's CPU clock that goes on by a step at each look."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def question(clock: FakeClock, p: float = 0.5, wanted: frozenset[str] = BOTH, spent_us: int = 0) -> Question:
    """Return a submission that came some time ago and has 5 ms in all."""
    now = clock.mono_us()
    return Question(np.full(3, p, np.float32), wanted, now - spent_us, now - spent_us + 5000)


def scoring(models: Sequence[FakeModel], clock: FakeClock, **more: Any) -> ShadowScoring:
    found = ShadowScoring(clock, **{"cpu_s": Cpu(0.0), **more})
    found.models = tuple(models)  # type: ignore[arg-type]
    return found


def test_each_model_says_what_was_asked_for() -> None:
    """By bundle hash and target, of targets that the model in use was asked for too; a batch is one call."""
    clock = FakeClock()
    first, second = FakeModel("aa"), FakeModel("bb")
    shadow = scoring((first, second), clock)
    asked = [question(clock, 0.25), question(clock, 0.75, frozenset({"timeout"})), question(clock, wanted=frozenset())]
    assert shadow.scores(asked) == [{"aa": {"failure": 0.25}, "bb": {"failure": 0.25}}, {}, {}]
    assert (first.asked, second.asked) == ([2], [2])
    assert shadow.counts == {"scored": 2, "late": 0}


def test_without_models_nothing_is_done_or_counted() -> None:
    """As installed: no trial."""
    clock = FakeClock()
    shadow = scoring((), clock)
    assert shadow.scores([question(clock)]) == [{}]
    assert not shadow.counts


def test_a_submission_that_is_late_is_left_out_and_counted() -> None:
    """Half of the time until the answer is due is gone: the answer goes out, the others are scored."""
    clock = FakeClock()
    model = FakeModel()
    shadow = scoring((model,), clock)
    late = question(clock, spent_us=2600)
    assert shadow.scores([late, question(clock, spent_us=2400)]) == [{}, {"aa": {"failure": 0.5}}]
    assert shadow.counts == {"scored": 1, "late": 1}


def test_the_share_of_a_core_is_kept() -> None:
    """Each batch takes half a second of CPU: after the second one nothing is left until quiet time has brought some."""
    clock = FakeClock()
    shadow = scoring((FakeModel(),), clock, share=0.05, cpu_s=Cpu(0.6))
    for _ in range(4):
        shadow.scores([question(clock)])
    assert shadow.counts == {"scored": 2, "late": 0, "budget": 2}
    clock.advance(30)
    assert shadow.scores([question(clock)]) == [{"aa": {"failure": 0.5}}]


def test_a_share_of_nothing_scores_nothing() -> None:
    """shadow_cpu_pct = 0."""
    clock = FakeClock()
    shadow = scoring((FakeModel(),), clock, share=0.0)
    clock.advance(60)
    assert shadow.scores([question(clock)]) == [{}]
    assert shadow.counts == {"budget": 1}


@pytest.mark.parametrize("error", [ModelError("failure.onnx: does not run"), ZeroDivisionError("a defect")])
def test_a_model_that_fails_costs_nothing_but_its_own_scores(error: Exception, caplog: Any) -> None:
    """What the other model said before it is kept; the trouble is said once and counted."""
    clock = FakeClock()
    shadow = scoring((FakeModel("aa"), FakeModel("bb", error)), clock)
    for _ in range(2):
        assert shadow.scores([question(clock)]) == [{"aa": {"failure": 0.5}}]
    assert shadow.counts["failed"] == 2
    assert len(caplog.records) == 1
