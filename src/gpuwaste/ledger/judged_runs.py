"""JudgedRuns: the runs of a selection and their sums, by SQL over the stored judged runs and the few open ones.

Sums of GPU-time are cut at the edges of the window, so that those of two windows add up; counts of runs, devices and
findings, and the lines of the job table, are of complete runs.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, Final

from gpuwaste.core.units import DAY_S
from gpuwaste.ledger.few_runs import FEW_RUNS, FewRuns, finding_counts, groups_of
from gpuwaste.ledger.findings import CAUSE_ORDER
from gpuwaste.ledger.judged_run import Group, JudgedRun, RunSums, add_reasons, added, finding_order, group_of, named
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.open_runs import PARTS, RUNS, OpenRunSnapshot, OutdatedError
from gpuwaste.ledger.reports.report_question import EVERY_LINE, LineFilter
from gpuwaste.ledger.reports.rows import JobLine, by_user, job_lines
from gpuwaste.ledger.run_judging import Selection, add_judged, judge_into
from gpuwaste.ledger.tally import Tally
from gpuwaste.store.database import Database, query_text

_ALL: Final = 2**53
TAKEN_RUNS: Final = 20_000  # about 15 MB


class JudgedRuns:
    """Queries for the runs of one selection, in the transaction that `judged_runs` or `runs_judged_last` holds."""

    def __init__(
        self,
        db: Database,
        parameters: dict[str, Any],
        window: dict[str, Any],
        *,
        whole: tuple[int, int] | None = None,
        few: FewRuns | None = None,
    ) -> None:
        """Set which runs: for those that ended on the days of `whole` (UTC seconds) the stored sums are used.

        `few` has all runs of the selection, if they were read.
        """
        self._db = db
        self._whole = whole
        self._few = few
        self._runs = parameters | _whole(None)
        self._window = self._runs | window

    def sums(self) -> dict[Group, RunSums]:
        """Return the sums of each user, account, partition and cluster."""
        if self._few is not None:
            return self._few.sums()
        days, window = _whole(self._whole), self._window | _whole(self._whole)
        counts = self._db.rows("judged_counts", self._runs | days)
        found = {group_of(row): RunSums.of_row(row) for row in counts}
        for row in self._db.rows("judged_sums", window):
            sums = found.setdefault(group_of(row), RunSums())
            sums.own = Tally.of_own(row)
            if row["shared"] is not None:
                sums.shared = Tally(**row["shared"])
        add_reasons(found, self._db.rows("judged_reasons", window))
        return found if self._whole is None else added(found, self._of_whole_days())

    def _of_whole_days(self) -> dict[Group, RunSums]:
        """Return the stored sums."""
        scope = {name: value for name, value in self._runs.items() if name not in {"from_s", "to_s", "until", "users"}}
        which = scope | _whole(self._whole)
        found = {}
        for row in self._db.rows("day_totals", which):
            sums = found[group_of(row)] = RunSums.of_row(row)
            sums.own, sums.shared = Tally.of_own(row), Tally(**row["shared"])
        add_reasons(found, self._db.rows("day_total_reasons", which))
        return found

    def cut(self) -> int:
        """Return how many of the runs are partly outside the window."""
        if self._few is not None:
            return self._few.cut()
        return int(self._db.rows("judged_cut")[0]["runs"])

    def lines(
        self, limit: int | None, runs: int, wanted: LineFilter = EVERY_LINE, offset: int = 0
    ) -> tuple[list[JobLine], int]:
        """Return the matching lines, the largest waste first, after the first `offset`, and how many there are.

        `runs` is the number of runs behind the lines of the selection.
        """
        if self._few is not None and wanted.name is None:  # only the store folds the case of names
            return self._few.lines(limit, runs, wanted, offset)
        fits = self._runs | asdict(wanted)
        limits = {"limit": _ALL if limit is None else limit, "offset": offset}
        self._db.run("judged_lines", fits | limits)
        rows = self._db.rows("judged_of_lines", self._runs)
        newest = {(row["cluster"], row["job_id"]): row["newest_start"] for row in rows}
        lines = job_lines(map(JudgedRun.from_row, rows), newest)
        if wanted == EVERY_LINE:  # cheaper than counting them
            return lines, runs - int(self._db.rows("judged_rolled", self._runs)[0]["rolled"])
        return lines, int(self._db.rows("judged_line_count", fits)[0]["lines"])

    def days(self) -> list[dict[str, Any]]:
        """Return the sums by the day on which runs ended (query judged_days)."""
        if self._few is not None:
            return self._few.days()
        return self._db.rows("judged_days", self._window | _whole(self._whole))

    def worst_name(self) -> dict[str, Any] | None:
        """Return the sums of the job name with the largest waste; None without any run."""
        if self._few is not None:
            return self._few.worst_name()
        return next(iter(self._db.rows("judged_names", self._window)), None)

    def findings(self, limit: int | None) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
        """Return the findings with the largest waste, and the counts of all by kind."""
        if self._few is not None:
            return self._few.findings(limit)
        found = groups_of(JudgedRun.from_row(row) for row in self._db.rows("judged_small", self._runs))
        kinds = self._db.rows("judged_causes", self._runs)
        counts = finding_counts(((row["largest_s"], row["kind"], row["runs"], row["wasted_s"]) for row in kinds), found)
        for row in self._db.rows("judged_findings", {**self._runs, "limit": _ALL if limit is None else limit}):
            cause = json.loads(row["causes"])[row["place"]]
            ran = cause["runs"][0]
            found += named([cause], {(ran["cluster"], ran["jobid"]): row["printed_id"]})
        return sorted(found, key=finding_order)[:limit], counts

    def wasted(self) -> list[dict[str, Any]]:
        """Return the GPU-time that each user and account held, wasted, and that is unknown (judged_wasted)."""
        return self._db.rows("judged_wasted", self._window)

    def account_causes(self) -> dict[str, dict[str, float]]:
        """Return the GPU-seconds wasted in the window by account and cause; each second has one cause."""
        found: dict[str, dict[str, float]] = {}
        for row in self._db.rows("judged_account_causes", {**self._window, "order": list(CAUSE_ORDER)}):
            found.setdefault(row["account"], {})[row["kind"]] = row["wasted_s"]
        return found

    def blocks(self, block_s: int) -> list[dict[str, Any]]:
        """Return the GPU-milliseconds that complete runs held and wasted, by block of seconds in which they ended."""
        return self._db.rows("judged_blocks", {**self._runs, "block": block_s})

    def energy(self, step_s: int) -> list[dict[str, Any]]:
        """Return the measured energy of own GPUs and of CPUs, joules, by user, account and step in which runs ended."""
        return self._db.rows("judged_energy", {**self._window, "step": step_s})

    def by_user(self) -> Iterator[list[JudgedRun]]:
        """Yield the runs of each user."""
        theirs: list[JudgedRun] = []
        for row in self._db.batches("judged_by_user", self._runs):
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
    few_runs: int = FEW_RUNS,
    kept: OpenRunSnapshot | None = None,
) -> Iterator[JudgedRuns]:
    """Select runs as of one instant: those already judged by these settings, and the others, which are judged now.

    With `cut` sums of time cover only the selection's window. The runs of a user or account are read once for all sums,
    unless there are more than `taken_runs`, and added up in Python up to `few_runs`. With `kept` the others are taken
    from that snapshot, and the instant is its own. Raises OutdatedError where the snapshot no longer fits the store.
    """
    with db.transaction():
        which, until = _which(db, selection, settings, now, kept)
        due = replace(selection, rules=which["rules"], judged_until=until)
        if (selection.user is not None or selection.account is not None) and _taken(db, which, taken_runs):
            which["rules"] = None
        if kept is not None:
            now = kept.now
            kept.add_runs(db, which)
        else:
            judge_into(db, RUNS, due, settings, now)
        if cut and (kept is None or not kept.add_parts(db, which)):
            judge_into(db, PARTS, _edges(selection, kept), settings, now)
        window = {"cut": cut, "now": now}
        if which["rules"] is None and _are_few(db, few_runs):
            yield JudgedRuns(db, which, window, few=FewRuns(*_read(db), which | window))
        else:
            yield JudgedRuns(db, which, window, whole=_summed_days(db, which | window))


def runs_of_users(
    db: Database, users: Collection[str], window: tuple[int, int], settings: LedgerSettings, kept: OpenRunSnapshot
) -> dict[str, FewRuns]:
    """Read the runs of several users in a window at once, as `judged_runs` does for one of them with `kept`.

    A user with many runs is left out; with too many runs together all users are. Raises OutdatedError where `kept` no
    longer fits the store, or has no parts for the window.
    """
    with db.transaction():
        which, _ = _which(db, Selection(*window), settings, kept.now, kept)
        which["users"] = sorted(users)
        if not _taken(db, which, TAKEN_RUNS):
            return {}
        kept.add_runs(db, which)
        if not kept.add_parts(db, which):
            raise OutdatedError("the parts of runs are not kept for this window")
        runs, parts = map(by_user, _read(db))
        found = ((user, runs.get(user, ()), parts.get(user, ())) for user in users)
        edges = which | {"cut": True, "now": kept.now}
        return {user: FewRuns(whole, cut, edges) for user, whole, cut in found if len(whole) + len(cut) <= FEW_RUNS}


def _which(
    db: Database, selection: Selection, settings: LedgerSettings, now: int, kept: OpenRunSnapshot | None
) -> tuple[dict[str, Any], int]:
    """Create empty tables for what a document judges itself; return the selection's parameters and `judged_until`.

    All runs that ended by `judged_until`, UTC seconds, are judged. Raises OutdatedError.
    """
    standing = db.rows("rules_standing", {"thresholds": settings.to_text()})
    rules, until = (standing[0]["id"], standing[0]["judged_until"]) if standing else (None, 0)
    if kept is not None:
        kept.check(rules, until, settings, selection.end)
    _create(db)
    asked = selection.parameters(now)
    names = ("from_s", "to_s", "user", "account", "clusters", "accounts", "reader")
    own = {"rules": rules, "until": None if kept is None else kept.until, "users": None}
    return own | {name: asked[name] for name in names}, until


def _create(db: Database) -> None:
    """Create empty tables for what a document judges itself."""
    for table in (RUNS, PARTS):
        db.execute(query_text("judged_now_create").replace(RUNS, table))


def _edges(selection: Selection, kept: OpenRunSnapshot | None) -> Selection:
    """Return the selection of runs that the edges of a window cut, without those that ended after `kept` was taken."""
    if kept is not None and selection.end == kept.now:
        selection = replace(selection, end=kept.now + DAY_S)
    return replace(selection, edges=True)


def _taken(db: Database, which: dict[str, Any], most: int) -> bool:
    """Read the stored runs of a selection into table judged_now; for too many read none and return False."""
    (found,) = db.run("judged_now_take", which | _whole(None) | {"most": most + 1}).fetchall()
    if int(found[0]) <= most:
        return True
    db.run("judged_now_clear")
    return False


def _are_few(db: Database, most: int) -> bool:
    """Return whether tables judged_now and judged_parts have at most `most` rows."""
    return int(db.rows("judged_now_count")[0]["rows"]) <= most


def _read(db: Database) -> tuple[list[JudgedRun], list[JudgedRun]]:
    """Return the rows of tables judged_now and judged_parts."""
    runs, parts = (
        [JudgedRun.from_row(row) for row in db.batches(query)] for query in ("judged_now_all", "judged_parts_all")
    )
    return runs, parts


def _summed_days(db: Database, which: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the last days without a gap, from and to UTC seconds, whose stored sums replace their runs in a window.

    Days that end after `until`, where that is not None, are left out.
    """
    asked = {name: which[name] for name in ("rules", "from_s", "to_s", "cut")}
    if which["until"] is not None:
        asked["to_s"] = min(asked["to_s"], which["until"] + 1)
    first = last = None
    for row in db.rows("summed_days_within", asked):
        if first is not None and row["day"] != first - DAY_S:
            break
        first = row["day"]
        last = last or first + DAY_S
    return None if first is None or last is None else (first, last)


@contextmanager
def runs_judged_last(db: Database, *, some: bool) -> Iterator[JudgedRuns]:
    """Select only the runs that were judged last on this connection; without `some`, no runs."""
    with db.transaction():
        _create(db)
        if some:
            add_judged(db, RUNS)
        anything = dict.fromkeys(("rules", "until", "user", "users", "account", "clusters", "accounts", "reader"))
        yield JudgedRuns(db, {**anything, "from_s": 0, "to_s": _ALL}, {"cut": False, "now": 0})


def _whole(days: tuple[int, int] | None) -> dict[str, int | None]:
    """Return the parameters of days whose runs are left out."""
    return dict(zip(("whole_from", "whole_to"), days or (None, None), strict=True))
