"""Asks about every job and node of drawn clusters, and compares the answers with the truth."""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tests.unit.ledger.idleness.idle_hub import IdleHub
from tests.unit.ledger.idleness.idle_truth import false_yes, long_idle
from tests.unit.ledger.idleness.idle_world import BEGIN, END, World

from gpuwaste.ledger.idleness.idleness_types import IdlenessDocument

ASKS: Final = 3
UNSHARED: Final = 20  # in one of so many scenes each answer reads its own runs


@dataclass
class IdleFindings:
    """What a number of scenes gave; `false` and `missed` say where."""

    histories: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    due: int = 0

    def add(self, world: World) -> None:
        """Ask about every job and node of a scene at some instants."""
        rng, hub = random.Random(world.seed + 1), IdleHub(world, shared=world.seed % UNSHARED > 0)
        self.histories += len(world.runs) + len(world.nodes)
        for at in sorted(rng.randint(BEGIN + 3000, END - 1) for _ in range(ASKS)):
            hub.go_to(at)
            for about, name in _names(world):
                for_s = rng.choice([300, 600, 900, 1800])
                document = hub.ask(about, name, for_s, None if world.healthy else rng.choice([None, 600, 3600]))
                self.answers["none" if document is None else f"{about} {document.answer}"] += 1
                if document is not None:
                    self._check(world, document, at)
        hub.close()

    def _check(self, world: World, document: IdlenessDocument, at: int) -> None:
        about, name = document.about, document.name
        self.reasons.update(document.reasons)
        if document.answer == "yes" and (wrong := false_yes(world, document)):
            self.false.append(f"seed {world.seed}, {about} {name} asked at {at}: {wrong}")
        runs = [run for run in world.named(name) if run.submit <= at and (run.end is None or run.end > at - 120)]
        long_s = document.for_s + 1200
        if world.healthy and about == "job" and runs and all(long_idle(world, run, at, long_s) for run in runs):
            self.due += 1
            if document.answer != "yes":
                self.missed.append(f"seed {world.seed}, job {name} asked at {at}: {document.reasons}")


def _names(world: World) -> list[tuple[str, str]]:
    """Return what can be asked about: each run by its printed id, arrays and het jobs, nodes."""
    whole = [run.array_job_id or run.het_job_id for run in world.runs]
    jobs = [*(run.printed_id for run in world.runs), *(str(number) for number in whole if number is not None)]
    return [*(("job", name) for name in dict.fromkeys(jobs)), *(("node", node.name) for node in world.nodes)]
