"""Never a false yes: drawn clusters with every fault that is known, against their truth, second by second."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from tests.examples import few
from tests.unit.ledger.idleness.idle_hub import IdleHub
from tests.unit.ledger.idleness.idle_truth import false_yes, long_idle
from tests.unit.ledger.idleness.idle_world import BEGIN, END, World, drawn_world

from gpuwaste.core.clock import Clock
from gpuwaste.ledger.idleness.agent_clocks import AgentClocks

pytestmark = [pytest.mark.long, pytest.mark.drawn]

HISTORIES = 10_000  # lives of runs and nodes; with the profile unit a few hundred
FEW = 500
ASKS = 3
BLOCKS = 8


@dataclass
class Found:
    """What a number of scenes gave."""

    histories: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    due: int = 0

    def add(self, world: World, clocks: Callable[[Clock], AgentClocks] = AgentClocks) -> None:
        """Ask about every job and node of a scene at some instants."""
        rng, hub = random.Random(world.seed + 1), IdleHub(world, clocks)
        names = [("job", name) for name in dict.fromkeys(run.printed_id for run in world.runs)]
        names += [
            ("job", str(run.array_job_id or run.het_job_id)) for run in world.runs if run.printed_id != str(run.job_id)
        ]
        names += [("node", node.name) for node in world.nodes]
        self.histories += len(world.runs) + len(world.nodes)
        for at in sorted(rng.randint(BEGIN + 3000, END - 1) for _ in range(ASKS)):
            hub.go_to(at)
            for about, name in dict.fromkeys(names):
                self._ask(world, hub, at, about, name, rng)
        hub.close()

    def _ask(self, world: World, hub: IdleHub, at: int, about: str, name: str, rng: random.Random) -> None:
        for_s = rng.choice([300, 600, 900, 1800])
        document = hub.ask(about, name, for_s, None if world.healthy else rng.choice([None, 600, 3600]))
        self.answers["none" if document is None else f"{about} {document.answer}"] += 1
        if document is None:
            return
        self.reasons.update(document.reasons)
        if document.answer == "yes" and (wrong := false_yes(world, document)):
            self.false.append(f"seed {world.seed}, {about} {name} asked at {at}: {wrong}")
        runs = [run for run in world.named(name) if run.submit <= at and (run.end is None or run.end > at - 120)]
        if world.healthy and about == "job" and runs and all(long_idle(world, run, at, for_s + 1200) for run in runs):
            self.due += 1
            if document.answer != "yes":
                self.missed.append(f"seed {world.seed}, job {name} asked at {at} for {for_s}: {document.reasons}")


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_yes_is_false_and_a_healthy_site_says_yes(block: int) -> None:
    """Of 10,000 lives of runs and nodes none gets a yes that its truth contradicts; idle ones of healthy sites get it."""
    found, seed = Found(), block
    while found.histories < (FEW if few() else HISTORIES) / BLOCKS:
        found.add(drawn_world(seed))
        seed += BLOCKS + 1
    assert not found.false
