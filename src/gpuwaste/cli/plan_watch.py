"""`gpuwaste plan --watch JOB`: a line when the expected start of a job moves, until the job starts or ends."""

import argparse
import json
import sys
import time
from collections.abc import Callable

from msgspec import to_builtins

from gpuwaste.cli.hub_access import COMPILING_S, hub_client
from gpuwaste.cli.words import require_job
from gpuwaste.core.codec import convert
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, NoDataError, ParseError
from gpuwaste.core.job_states import QUEUED
from gpuwaste.core.text import harmless
from gpuwaste.plan.document import ExpectAnswer
from gpuwaste.plan.moves import StartForecast, moved, reason_words
from gpuwaste.plan.plan_text import clock
from gpuwaste.slurm.clients.commands import CommandClient

EVERY_S = 60.0
_FORMAT = "%S|%r|%T"
_COLUMNS = 3
Look = Callable[[], StartForecast]


def watch(config: Config, options: argparse.Namespace) -> int:
    """Follow a job. Raises NoDataError for one that slurmctld does not know."""
    job: str = options.watch
    require_job(job)
    client = CommandClient(config.common.slurm_conf, config.common.slurm_timeout_s)
    follow(job, lambda: _sight(config, client, job), as_json=options.json)
    return 0


def follow(job: str, look: Look, *, as_json: bool, pause: Callable[[float], None] = time.sleep) -> None:
    """Print the first sight, then each that moved, until the job no longer waits."""
    seen = look()
    _tell(job, seen, "" if seen.state not in QUEUED else reason_words(seen.reason), as_json=as_json)
    while seen.state in QUEUED:
        pause(EVERY_S)
        new = look()
        words = "" if new.state not in QUEUED else moved(seen, new)
        if words or new.state not in QUEUED:
            _tell(job, new, words, as_json=as_json)
            seen = new


def _tell(job: str, sight: StartForecast, words: str, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"document": "plan_watch", "job": job, "why": words, **to_builtins(sight)}) + "\n")
    else:
        sys.stdout.write(f"{clock(sight.at, sight.at, None)} {_line(job, sight, words)}\n")
    sys.stdout.flush()


def _line(job: str, sight: StartForecast, words: str) -> str:
    if sight.state not in QUEUED:
        return f"job {job} is {harmless(sight.state)}"
    start = "no expected start" if sight.start is None else f"expected start {clock(sight.start, sight.at, None)}"
    if sight.interval is not None:
        first, last = (clock(at, sight.at, None) for at in (sight.interval.p10, sight.interval.p90))
        start += f" (80 %: {first} to {last})"
    ahead = "" if sight.before is None else f", {sight.before} jobs before it"
    return f"job {job}: {start}{ahead}; {harmless(words)}"


def _sight(config: Config, client: CommandClient, job: str) -> StartForecast:
    """Ask the hub; where it has no answer squeue --start, which knows no interval."""
    now = int(time.time())
    try:
        found = convert(hub_client(config, COMPILING_S).expect_job(job), ExpectAnswer, "the hub's plan")
    except GpuwasteError:
        return _of_squeue(client, job, now)
    one = found.expected[0] if found.expected else None
    start = one.start if one else None
    return StartForecast(now, found.state, found.reason, start.p50 if start else None, start, found.place)


def _of_squeue(client: CommandClient, job: str, now: int) -> StartForecast:
    try:
        text = client.text("squeue", "--noheader", "--states=all", f"--jobs={job}", f"--format={_FORMAT}")
    except GpuwasteError as error:
        if "invalid job id" in str(error).lower():
            raise NoDataError(f"job {job}: not known to slurmctld") from None
        raise
    line = next(iter(text.splitlines()), "")
    if not line:
        raise NoDataError(f"job {job}: not known to slurmctld")
    row = line.split("|")
    if len(row) != _COLUMNS:
        raise ParseError(f"squeue: {len(row)} columns where {_COLUMNS} were requested: {line[:80]!r}")
    start, reason, state = row
    return StartForecast(now, state, reason, int(start) if start.isascii() and start.isdigit() else None)
