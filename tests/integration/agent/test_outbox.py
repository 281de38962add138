"""The agent's outbox through kills of its process."""

import random
import subprocess
import sys
from pathlib import Path

from tests.unit.agent.test_outbox import versions

from gpuwaste.agent.outbox import Outbox

WRITER = Path(__file__).with_name("outbox_writer.py")


def test_nothing_is_lost_through_kills(tmp_path: Path) -> None:
    """A writer is killed at ten seeded moments: what put had promised is with the hub or here, once by key."""
    path = tmp_path / "state" / "outbox.sqlite"
    rng = random.Random(20)
    promised: dict[int, int] = {}
    hub: dict[int, int] = {}
    for turn in range(10):
        command = [sys.executable, str(WRITER), str(path), str(turn), str(1 + 1_000_000 * turn)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(rng.randint(1, 300))]
        writer.kill()
        lines += writer.stdout.readlines()
        writer.stdout.close()
        assert writer.wait() == -9
        for word, key, version in (line.split() for line in lines):
            kept = promised if word == b"put" else hub
            kept[int(key)] = max(kept.get(int(key), 0), int(version))
        outbox = Outbox(path)
        assert not outbox.set_aside
        waiting = dict(versions(outbox))
        outbox.close()
        for job, seq in promised.items():
            assert max(hub.get(job, 0), waiting.get(job, 0)) >= seq, (turn, job)
    outbox = Outbox(path)
    while (batch := outbox.take(max_rows=10)) is not None:
        hub |= {taken.key[1]: max(taken.seq, hub.get(taken.key[1], 0)) for taken in batch.rows}
        outbox.ack(batch)
    assert {job: seq for job, seq in hub.items() if job in promised and seq < promised[job]} == {}
    assert len(promised) > 100
    assert {open_row.run_key.job_id for open_row in outbox.open_rows()} <= set(hub)
