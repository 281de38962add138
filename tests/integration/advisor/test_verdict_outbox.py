"""The advisor's outbox of verdicts through kills of its process."""

import random
import subprocess
import sys
from pathlib import Path

from tests.unit.advisor.test_verdict_outbox import waiting
from tests.unit.advisor.verdicts import NOON_US, spent

from gpuwaste.advisor.verdict_outbox import VerdictOutbox

ROOT = Path(__file__).parents[3]


def test_nothing_is_lost_or_doubled_through_kills(tmp_path: Path) -> None:
    """A writer is killed at ten seeded moments: what put had promised is with the hub or here; budgets agree."""
    path = tmp_path / "state" / "verdicts.sqlite"
    rng = random.Random(21)
    promised, hub = set[int](), set[int]()
    for turn in range(10):
        command = [
            sys.executable,
            "-m",
            "tests.integration.advisor.verdict_writer",
            str(path),
            str(turn),
            str(1 + 10**6 * turn),
        ]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(rng.randint(1, 300))]
        writer.kill()
        lines += writer.stdout.readlines()
        writer.stdout.close()
        assert writer.wait() == -9
        for word, number in (line.split() for line in lines):
            (promised if word == b"put" else hub).add(int(number))
        outbox = VerdictOutbox(path)
        assert not outbox.set_aside
        here = set(waiting(outbox))
        assert promised <= hub | here
        day = outbox.day_of(NOON_US)
        counted = spent(outbox, "reject", "alice", day)
        outbox.close()
        assert sum(n % 2 for n in promised) <= counted == sum(n % 2 for n in hub | here)
    assert len(promised) > 100
