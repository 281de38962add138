"""Every part of the page, each in a process of its own."""

import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from gpuwaste.models.evaluate.log_evaluation import Prequential
from gpuwaste.models.training_rows import prepare
from tools.scorecard.carry_over import Log as Carrier
from tools.scorecard.carry_over import carry_over, section
from tools.scorecard.logs import CARRIED, Log
from tools.scorecard.page import page
from tools.scorecard.part import SEED, Part, make_part, read
from tools.scorecard.weekly import RETRAINED, replaced, weekly_of
from tools.scorecard.weekly import section as weekly_section


def make(logs: Sequence[Log], data: Path, processes: int) -> str:
    """Return the page for these logs."""
    spawn = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of the learning
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        carried = [
            pool.submit(carry, target, [log for log in logs if log.name in CARRIED[target]], data) for target in CARRIED
        ]
        largest_first = sorted(logs, key=lambda log: -(data / log.path).stat().st_size * log.seeds)
        parts = dict(zip(largest_first, pool.map(partial(_part, data=data), largest_first), strict=True))
        sections = [future.result() for future in carried]
        retrained = list(pool.map(partial(_weekly, data=data), [log for log in logs if log.name in RETRAINED]))
    last = SEED + max(log.seeds for log in logs) - 1
    return page([parts[log] for log in logs], "\n".join(s for s in sections if s), last, weekly_section(retrained))


def make_weekly(logs: Sequence[Log], data: Path, before: str) -> str:
    """Return a page with the section on retraining made again."""
    return replaced(before, weekly_section([_weekly(log, data) for log in logs if log.name in RETRAINED]))


def carry(target: str, logs: Sequence[Log], data: Path) -> str:
    """Return the table of how a model of each of these logs does on the others, "" for fewer than two."""
    if len(logs) < 2:  # noqa: PLR2004 one log carries nothing over
        return ""
    began = time.monotonic()
    known = [(log.name, prepare(read(log, data).table, log.name)) for log in logs]
    carriers = [Carrier(name, found.table, found.vectors) for name, found in known]
    results = carry_over(carriers, (target,), seed=SEED, threads=1)
    say(f"carry-over, {target}: {time.monotonic() - began:.0f} s")
    return section(results)


def _part(log: Log, data: Path) -> Part:
    began = time.monotonic()
    made = make_part(log, data)
    say(f"{log.name}: {time.monotonic() - began:.0f} s")
    return made


def _weekly(log: Log, data: Path) -> tuple[Log, Prequential]:
    began = time.monotonic()
    found = weekly_of(log, data)
    say(f"{log.name}, retrained: {time.monotonic() - began:.0f} s")
    return log, found


def say(text: str) -> None:
    """Tell how far it is."""
    sys.stderr.write(f"{text}\n")
