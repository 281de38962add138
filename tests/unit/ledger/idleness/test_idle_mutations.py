"""Judges of idleness that believe too much: the drawn clusters' truth catches each of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.ledger.idleness.idle_findings import IdleFindings
from tests.unit.ledger.idleness.idle_hub import IdleHub
from tests.unit.ledger.idleness.idle_truth import false_yes
from tests.unit.ledger.idleness.idle_world import BEGIN, World, WorldNode, WorldRun, drawn_world

from gpuwaste.ledger.idleness import idle_judge, idle_node, idleness_reads
from gpuwaste.ledger.idleness.agent_clocks import TRANSIT_MS, AgentClocks, ClockOffset
from gpuwaste.ledger.idleness.idle_judge import IdleKnowledge, IdleLimits, Stretch, judge_gpu, judge_run
from gpuwaste.ledger.idleness.idleness_types import IdleGpu, IdleRun
from gpuwaste.ledger.idleness.run_proofs import GpuProof, RunProof

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
SCENES = 30
Patch = pytest.MonkeyPatch


def trusts_clocks(patch: Patch) -> None:
    """Take every agent's clock for the hub's."""
    patch.setattr(AgentClocks, "offset", lambda *_: ClockOffset(TRANSIT_MS))


def ignores_gaps(patch: Patch) -> None:
    """Take time that nobody measured for idle."""

    def judged(proof: GpuProof, limits: IdleLimits, known: IdleKnowledge) -> tuple[IdleGpu, Stretch | None]:
        return judge_gpu(replace(proof, known_from_ms=proof.known_from_ms and 0), limits, known)

    patch.setattr(idle_judge, "judge_gpu", judged)


def means_now(patch: Patch) -> None:
    """Take what was idle at the last report for idle now."""
    patch.setattr(ClockOffset, "earliest_ms", lambda *_: 2**50)


def ignores_silent_gpus(patch: Patch) -> None:
    """Judge a run by those of its GPUs that were reported."""

    def judged(proof: RunProof, limits: IdleLimits, known: IdleKnowledge) -> IdleRun:
        gpus = [one for one in proof.gpus if one.known_from_ms is not None and "missing" not in one.gpu.gpu_uuid]
        proof.run.job = replace(proof.run.job, gpus=len(gpus))
        return judge_run(RunProof(proof.run, gpus, proof.beyond), limits, known)

    patch.setattr(idle_judge, "confirmed", lambda *_: [])
    patch.setattr(idleness_reads, "judge_run", judged)


def asks_accounting_only(patch: Patch) -> None:
    """Believe accounting, however far it is behind slurmctld."""
    patch.setattr(idle_judge, "confirmed", lambda *_: [])
    patch.setattr(idleness_reads, "others_of", lambda *_: [])
    patch.setattr(idle_node, "_of_slurmctld", lambda *_: [])
    ignores_the_queue(patch)


def ignores_the_queue(patch: Patch) -> None:
    """Believe that accounting has what slurmctld has forgotten."""
    patch.setattr(IdleKnowledge, "nothing_forgotten", lambda *_: True)


def forgets_ended_runs(patch: Patch) -> None:
    """Overlook the runs that were on the node and have ended."""
    stretch: Callable[..., Stretch] = idle_node._stretch

    def found(*more: Any) -> Stretch:
        own = stretch(*more)
        return Stretch(own.as_of - 7200, own.as_of) if not more[1] else own

    patch.setattr(idle_node, "_stretch", found)


MUTATIONS: dict[Callable[[Patch], None], int] = {
    trusts_clocks: 10,
    ignores_gaps: 1,
    means_now: 0,
    ignores_silent_gpus: 6,
    forgets_ended_runs: 22,
    ignores_the_queue: 397,
}
"""From which scene on: each was caught by the first."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_judge_that_believes_too_much_is_caught(
    mutation: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these judges soon says a yes that the truth contradicts."""
    first = MUTATIONS[mutation]
    sound = IdleFindings()
    sound.add(drawn_world(first))
    assert not sound.false, "the judge as it is must be right here"
    mutation(monkeypatch)
    found = IdleFindings()
    for seed in range(first, first + SCENES):
        found.add(drawn_world(seed))
        if found.false:
            return
    raise AssertionError(found.answers)


@pytest.mark.parametrize("asks", [True, False])
def test_slurmdbd_that_is_behind_slurmctld_empties_no_node(asks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accounting has the end of one run and not yet the start of the next: only slurmctld knows that the node works."""
    ended = WorldRun(1, "1", BEGIN - 100, BEGIN, BEGIN + 4000, gpus={"n0": ["GPU-0"]}, active={"GPU-0": []})
    works = WorldRun(
        2,
        "2",
        BEGIN + 4790,
        BEGIN + 4800,
        None,
        gpus={"n0": ["GPU-0"]},
        active={"GPU-0": [(BEGIN + 4800, BEGIN + 9000)]},
    )
    world = World(1, healthy=False, nodes=[WorldNode("n0", ["GPU-0"])], runs=[ended, works], slurmdbd_lag_s=900)
    if not asks:
        asks_accounting_only(monkeypatch)
    hub = IdleHub(world)
    hub.go_to(BEGIN + 5500)
    document = hub.ask("node", "n0", 300)
    hub.close()
    assert document is not None
    if asks:
        assert (document.answer, document.reasons) == ("unknown", ["mismatch", "accounting"])
    else:
        assert document.answer == "yes"
        assert "2 was there" in false_yes(world, document)
