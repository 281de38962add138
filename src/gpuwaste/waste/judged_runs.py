"""JudgedRuns: the runs of a selection and their sums, by SQL over what was judged once and the few that are open.

Sums of GPU-time are cut at the edges of the window, so that those of two windows add up; counts of runs, devices and
findings, and the lines of the job table, are of runs as a whole.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self

from gpuwaste.core.units import DAY_S
from gpuwaste.store.database import Database
from gpuwaste.waste.day_sums import summed_days
from gpuwaste.waste.findings.many_small_jobs import groups
from gpuwaste.waste.job_lines import JobLine, job_lines
from gpuwaste.waste.judged import JudgedRun, finding_order, named
from gpuwaste.waste.kept_runs import KeptRuns
from gpuwaste.waste.ledger import Level
from gpuwaste.waste.ledger_settings import LedgerSettings
from gpuwaste.waste.load import Selection, judge_by_user
from gpuwaste.waste.tally import Tally, seconds

_ALL: Final = 2**53
TAKEN_RUNS: Final = 20_000  # about 15 MB
_NONE: Final = {"rules": -1}  # of rows that are in no table
_COUNTS: Final = (
    "jobs", "running", "beyond", "conflicts", "under_jobs", "under_devices", "under_ms", "asked_jobs", "asked_devices",
)  # fmt: skip
Group = tuple[str, str, str]
"""User, account and partition."""


@dataclass(frozen=True, slots=True)
class LineFilter:
    """Which lines of the job table: those of a run with all of this; None is "any". `name` is a part of the name."""

    state: str | None = None
    partition: str | None = None
    name: str | None = None
    finding: str | None = None


EVERY_LINE: Final = LineFilter()


@dataclass(slots=True)
class RunSums:
    """Sums over some runs: GPU-time of their own and shared GPUs, and counts."""

    own: Tally = field(default_factory=Tally)
    shared: Tally = field(default_factory=Tally)
    jobs: int = 0
    running: int = 0
    beyond: int = 0
    conflicts: int = 0
    under_jobs: int = 0
    under_devices: int = 0
    under_ms: int = 0
    asked_jobs: int = 0
    asked_devices: int = 0
    level_devices: list[int] = field(default_factory=lambda: [0] * len(Level))
    level_ms: list[int] = field(default_factory=lambda: [0] * len(Level))

    @classmethod
    def of(cls, sums: Iterable["RunSums"]) -> Self:
        """Add up sums."""
        total = cls()
        for other in sums:
            total.own.add_tally(other.own)
            total.shared.add_tally(other.shared)
            for name in _COUNTS:
                setattr(total, name, getattr(total, name) + getattr(other, name))
            for mine, theirs in ((total.level_devices, other.level_devices), (total.level_ms, other.level_ms)):
                mine[:] = map(sum, zip(mine, theirs, strict=True))
        return total

    def levels_json(self) -> dict[str, dict[str, Any]]:
        """Return devices and GPU-seconds by the level of each device's mean."""
        found = zip(Level, self.level_devices, self.level_ms, strict=True)
        return {str(level): {"devices": devices, "gpu_s": seconds(ms)} for level, devices, ms in found}

    def under_used_json(self) -> dict[str, Any]:
        """Return how many jobs have an under-used device, these devices and their time, and how many were judged."""
        return {
            "jobs": self.under_jobs,
            "devices": self.under_devices,
            "gpu_s": seconds(self.under_ms),
            "judged_jobs": self.asked_jobs,
            "judged_devices": self.asked_devices,
        }


class JudgedRuns:
    """Asks for the runs of one selection, within the transaction that `judged_runs` or `runs_judged_last` holds."""

    def __init__(
        self, db: Database, parameters: dict[str, Any], window: dict[str, Any], whole: tuple[int, int] | None = None
    ) -> None:
        """Take which runs: the sums of those that ended on the days of `whole`, UTC seconds, are stored."""
        self._db = db
        self._whole = whole
        self._runs = parameters | _whole(None)
        self._window = self._runs | window

    def sums(self) -> dict[Group, RunSums]:
        """Return the sums of each user, account and partition."""
        days, window = _whole(self._whole), self._window | _whole(self._whole)
        counts = self._db.rows("waste.judged_counts", self._runs | days)
        found = {_group(row): RunSums(**_without_group(row)) for row in counts}
        for row in self._db.rows("waste.judged_sums", window):
            sums = found.setdefault(_group(row), RunSums())
            sums.own = Tally(**row["own"])
            if row["shared"] is not None:
                sums.shared = Tally(**row["shared"])
        _add_reasons(found, self._db.rows("waste.judged_reasons", window))
        return found if self._whole is None else _added(found, self._of_whole_days())

    def _of_whole_days(self) -> dict[Group, RunSums]:
        """Return the stored sums."""
        scope = {name: value for name, value in self._runs.items() if name not in {"from_s", "to_s", "until"}}
        which = scope | _whole(self._whole)
        found = {}
        for row in self._db.rows("waste.day_totals", which):
            own, shared = Tally(**row.pop("own")), Tally(**row.pop("shared"))
            found[_group(row)] = RunSums(own=own, shared=shared, **_without_group(row))
        _add_reasons(found, self._db.rows("waste.day_total_reasons", which))
        return found

    def cut(self) -> int:
        """Return how many of the runs lie partly outside of the window."""
        return int(self._db.rows("waste.judged_cut")[0]["runs"])

    def lines(
        self, limit: int | None, runs: int, wanted: LineFilter = EVERY_LINE, offset: int = 0
    ) -> tuple[list[JobLine], int]:
        """Return the wanted lines of the largest waste after the first `offset`, and how many there are.

        `runs` is how many runs the lines of the selection are of.
        """
        fits = self._runs | asdict(wanted)
        limits = {"limit": _ALL if limit is None else limit, "offset": offset}
        self._db.run("waste.judged_lines", fits | limits)
        rows = self._db.rows("waste.judged_of_lines", self._runs)
        newest = {(row["cluster"], row["job_id"]): row["newest_start"] for row in rows}
        lines = job_lines(map(JudgedRun.from_row, rows), newest)
        if wanted == EVERY_LINE:  # cheaper than counting them
            return lines, runs - int(self._db.rows("waste.judged_rolled", self._runs)[0]["rolled"])
        return lines, int(self._db.rows("waste.judged_line_count", fits)[0]["lines"])

    def days(self) -> list[dict[str, Any]]:
        """Return the sums by the day on which runs ended (query judged_days)."""
        return self._db.rows("waste.judged_days", self._window | _whole(self._whole))

    def worst_name(self) -> dict[str, Any] | None:
        """Return the sums of the job name with the largest waste; None without any run."""
        return next(iter(self._db.rows("waste.judged_names", self._window)), None)

    def findings(self, limit: int | None) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
        """Return the findings of the largest waste, and the counts of all by kind."""
        small = [JudgedRun.from_row(row) for row in self._db.rows("waste.judged_small", self._runs)]
        found = [f.to_json() for f in groups(run.small for run in small if run.small is not None)]
        found = named(found, {(run.cluster, run.job_id): run.printed_id for run in small})
        counts = self._finding_counts(found)
        for row in self._db.rows("waste.judged_findings", {**self._runs, "limit": _ALL if limit is None else limit}):
            cause = json.loads(row["causes"])[row["place"]]
            ran = cause["runs"][0]
            found += named([cause], {(ran["cluster"], ran["jobid"]): row["printed_id"]})
        return sorted(found, key=finding_order)[:limit], counts

    def wasted(self) -> list[dict[str, Any]]:
        """Return what each user and account held, what of it was wasted, and what is unknown (judged_wasted)."""
        return self._db.rows("waste.judged_wasted", self._window)

    def account_causes(self) -> dict[str, dict[str, float]]:
        """Return the GPU-seconds that each cause wastes, by account; of whole runs."""
        found: dict[str, dict[str, float]] = {}
        for row in self._db.rows("waste.judged_account_causes", self._runs):
            found.setdefault(row["account"], {})[row["kind"]] = row["wasted_s"]
        return found

    def blocks(self, block_s: int) -> list[dict[str, Any]]:
        """Return what the runs that ended in each block of seconds held and wasted, GPU-milliseconds; whole runs."""
        return self._db.rows("waste.judged_blocks", {**self._runs, "block": block_s})

    def _finding_counts(self, groups_found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return the counts of findings by kind, that with the largest finding first."""
        rows = [
            (row["largest_s"], row["kind"], row["runs"], row["runs"], row["wasted_s"])
            for row in self._db.rows("waste.judged_causes", self._runs)
        ]
        if groups_found:
            wasted = [f["wasted_gpu_s"] for f in groups_found]
            jobs = sum(len(f["runs"]) for f in groups_found)
            rows.append((max(wasted), groups_found[0]["kind"], len(groups_found), jobs, sum(wasted)))
        return {
            kind: {"findings": findings, "jobs": jobs, "wasted_gpu_s": round(wasted_s, 3)}
            for _, kind, findings, jobs, wasted_s in sorted(rows, key=lambda row: (-row[0], row[1]))
        }

    def by_user(self) -> Iterator[list[JudgedRun]]:
        """Yield the runs of each user."""
        theirs: list[JudgedRun] = []
        for row in self._db.batches("waste.judged_by_user", self._runs):
            if theirs and theirs[0].user != row["user"]:
                yield theirs
                theirs = []
            theirs.append(JudgedRun.from_row(row))
        if theirs:
            yield theirs


@contextmanager
def judged_runs(
    db: Database,
    selection: Selection,
    settings: LedgerSettings,
    now: int,
    *,
    cut: bool = True,
    taken_runs: int = TAKEN_RUNS,
    kept: KeptRuns | None = None,
) -> Iterator[JudgedRuns]:
    """Select runs as of one instant: those that were judged by these settings, and the others, which are judged now.

    With `cut` sums of time are of what lies between the edges of the selection's window. A user's runs are read once
    for all sums, unless there are more than `taken_runs`. With `kept` the others are taken from there, and the instant
    is that of `kept`. Raises OutdatedError where the store has left it behind.
    """
    with db.transaction():
        standing = db.rows("waste.rules_standing", {"thresholds": settings.to_text()})
        rules, until = (standing[0]["id"], standing[0]["judged_until"]) if standing else (None, 0)
        if kept is not None:
            kept.check(rules, until, settings, selection.end)
            now = kept.now
        asked = selection.parameters(now)
        names = ("from_s", "to_s", "user", "account", "cluster", "accounts", "reader")
        which = {"rules": rules, "until": None if kept is None else kept.until} | {name: asked[name] for name in names}
        db.run("waste.judged_now_create")
        db.run("waste.judged_parts_create")
        if selection.user is not None and _taken(db, which, taken_runs):
            which["rules"] = None
        if kept is not None:
            kept.add_runs(db, which)
        else:
            for _ in judge_by_user(db, replace(selection, rules=rules, judged_until=until), settings, now):
                db.run("waste.judged_now_add", _NONE)
        if cut and (kept is None or not kept.add_parts(db, which)):
            for _ in judge_by_user(db, _edges(selection, kept), settings, now):
                db.run("waste.judged_parts_add", _NONE)
        yield JudgedRuns(db, which, {"cut": cut, "now": now}, summed_days(db, which | {"cut": cut}))


def _edges(selection: Selection, kept: KeptRuns | None) -> Selection:
    """Return the runs that the edges of a window cut: not those that ended after the instant of `kept`."""
    if kept is not None and selection.end == kept.now:
        selection = replace(selection, end=kept.now + DAY_S)
    return replace(selection, edges=True)


def _taken(db: Database, which: dict[str, Any], most: int) -> bool:
    """Read the stored runs of a selection into table judged_now; returns False, with none read, for too many."""
    (found,) = db.run("waste.judged_now_take", which | _whole(None) | {"most": most + 1}).fetchall()
    if int(found[0]) <= most:
        return True
    db.run("waste.judged_now_clear")
    return False


@contextmanager
def runs_judged_last(db: Database, *, some: bool) -> Iterator[JudgedRuns]:
    """Take the runs that were judged last on this connection and nothing else, or with not `some` none."""
    with db.transaction():
        db.run("waste.judged_now_create")
        db.run("waste.judged_parts_create")
        if some:
            db.run("waste.judged_now_add", _NONE)
        anything = dict.fromkeys(("rules", "until", "user", "account", "cluster", "accounts", "reader"))
        yield JudgedRuns(db, {**anything, "from_s": 0, "to_s": _ALL}, {"cut": False, "now": 0})


def _whole(days: tuple[int, int] | None) -> dict[str, int | None]:
    """Return the parameters of days whose runs are left out."""
    return dict(zip(("whole_from", "whole_to"), days or (None, None), strict=True))


def _add_reasons(sums: dict[Group, RunSums], rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        tally = getattr(sums[_group(row)], row["of"])
        getattr(tally, row["what"])[row["reason"]] = row["ms"]


def _added(sums: dict[Group, RunSums], more: dict[Group, RunSums]) -> dict[Group, RunSums]:
    """Return the sums of both, group by group."""
    both = {group: RunSums.of((sums[group], more[group])) for group in sums.keys() & more.keys()}
    return sums | more | both


def _group(row: dict[str, Any]) -> Group:
    return row["user"], row["account"], row["partition"]


def _without_group(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in {"user", "account", "partition"}}
