"""Jobs of the same user and name that are queued already: whether a job is one of many, or one of a chain."""

from typing import Final, NamedTuple

from gpuwaste.core.errors import ParseError
from gpuwaste.core.units import parse_duration_s
from gpuwaste.plan.site import CommandRunner
from gpuwaste.slurm.formats.run_texts import task_count

_FORMAT: Final = "--format=%i|%l|%r"
_COLUMNS: Final = 3
_ONE_BY_ONE: Final = "%1]"  # how Slurm ends the id of an array that runs one task at a time
_MOST: Final = 1000  # jobs that are counted: beyond it many are many


class QueuedJobs(NamedTuple):
    """Jobs that wait, array tasks one by one: those that wait for another one of their user, and those that do not."""

    after: int = 0
    alone: int = 0


def queued_jobs(shown: CommandRunner, user: str, name: str, longest_s: int) -> QueuedJobs:
    """Ask for the user's jobs of that name with a limit of at most `longest_s`. Raises SlurmError.

    One RPC, for this user alone. squeue takes commas as separators, so that a name with one finds nothing.
    """
    words = ("--noheader", f"--user={user}", f"--name={name}", "--states=PENDING", _FORMAT)
    after = alone = 0
    for line in shown.text("squeue", *words).splitlines()[:_MOST]:
        row = line.split("|")
        if len(row) != _COLUMNS or not _short(row[1], longest_s):
            continue
        printed, _, reason = row
        if reason.startswith("Dependency") or printed.endswith(_ONE_BY_ONE):
            after += task_count(printed)
        else:
            alone += task_count(printed)
    return QueuedJobs(min(after, _MOST), min(alone, _MOST))


def _short(text: str, longest_s: int) -> bool:
    try:
        limit_s = parse_duration_s(text)
    except ParseError:
        return False
    return limit_s is not None and limit_s <= longest_s
