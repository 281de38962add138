"""A child process for the kill tests of the advisor's outbox: puts, ships and acknowledges until it is killed.

It writes `put NUMBER` after put returned, `hub NUMBER` when the hub of the test would have committed the verdict.
Every second verdict is a reject, and each is put twice now and then.
"""

import os
import random
import sys
from pathlib import Path

from tests.unit.advisor.verdicts import put, verdict

from gpuwaste.advisor.verdict_outbox import VerdictOutbox


def say(word: str, numbers: list[int]) -> None:
    os.write(1, "".join(f"{word} {number}\n" for number in numbers).encode())


def main(path: Path, seed: int, first: int) -> None:
    """Work forever, with numbers from `first` on."""
    rng = random.Random(seed)
    outbox = VerdictOutbox(path)
    number = first
    while True:
        if rng.random() < 0.6:
            numbers = list(range(number, number + rng.randint(1, 4)))
            number = numbers[-1] + 1
            rows = [verdict(n, action="reject" if n % 2 else "warn") for n in numbers]
            put(outbox, rows)
            if rng.random() < 0.3:
                put(outbox, rows)
            say("put", numbers)
        elif (batch := outbox.take(max_rows=rng.randint(1, 6))) is not None:
            say("hub", [int(row.id) for row in batch.rows])
            outbox.ack(batch)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
