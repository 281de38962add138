"""A child process for the kill tests: puts, ships and acknowledges in a loop until it is killed.

It writes a line to standard output for each thing that has happened: `put JOB SEQ` after put returned, `hub JOB SEQ`
when the hub of the test would have committed the row (before ack). A line is one write: it is there or it is not.
"""

import os
import random
import sys
from pathlib import Path

from gpuwaste.agent.outbox import Outbox
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.slurm.run_key import RunKey

HOUR = 1_700_002_800


def row(job: int, seq: int, *, final: bool) -> AllocationHour:
    return AllocationHour(
        RunKey("gw", job, HOUR), "gpu1", "GPU-1", HOUR, seq, HOUR * 1000, HOUR * 1000 + seq, final=final
    )


def say(word: str, rows: list[tuple[int, int]]) -> None:
    os.write(1, "".join(f"{word} {job} {seq}\n" for job, seq in rows).encode())


def main(path: Path, seed: int, first_job: int) -> None:
    """Work forever: jobs from `first_job` on, each put a few times with rising seq, the last one final."""
    rng = random.Random(seed)
    outbox = Outbox(path)
    seqs: dict[int, int] = {}
    next_job = first_job
    while True:
        if rng.random() < 0.6:
            while len(seqs) < 5:
                seqs[next_job] = 0
                next_job += 1
            chosen = rng.sample(sorted(seqs), rng.randint(1, 3))
            for job in chosen:
                seqs[job] += 1
            outbox.put([row(job, seqs[job], final=seqs[job] >= 4) for job in chosen])
            say("put", [(job, seqs[job]) for job in chosen])
            seqs = {job: seq for job, seq in seqs.items() if seq < 4}
        else:
            batch = outbox.take(max_rows=rng.randint(1, 6))
            if batch is not None:
                say("hub", [(taken.key[1], taken.seq) for taken in batch.rows])
                outbox.ack(batch)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
