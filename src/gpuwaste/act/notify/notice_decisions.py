"""Which users get a digest of wasted GPU time, by rules over judged runs; sends no mail and reads no store."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from msgspec.structs import asdict, replace

from gpuwaste.act.notify.notice_types import Digest, DigestJob, JudgedWaste, StaffList, StaffRow, ToldRow
from gpuwaste.ledger.judged_run import JudgedRun, findings_json
from gpuwaste.ledger.reports.rows import JobLine, by_user, finding_rows, job_lines, job_row

Why = Literal[
    "", "no_jobs", "whole_node", "little_known", "little_waste", "small_share",
    "opted_out", "cooldown", "no_address", "mail_cap", "held_back",
]  # fmt: skip
HELD_BACK: Final = "held_back"  # by a campaign
_INFORMATION: Final = "memory_resident"  # a finding without blame


@dataclass(frozen=True, slots=True)
class NoticeRules:
    """When a user gets a digest; durations in seconds, shares 0..1."""

    min_wasted_s: float = 5 * 3600.0
    min_wasted_share: float = 0.25
    min_coverage: float = 0.8
    jobs: int = 5
    max_mails: int = 100
    cooldown_s: float = 6 * 86400.0


@dataclass(frozen=True, slots=True)
class UserState:
    """Data of users besides their jobs: who wants no mail, and the end of the period last reported to each."""

    opted_out: Collection[str] = ()
    last_told: Mapping[str, int] = field(default_factory=dict)


class NoticeDecision(ToldRow, kw_only=True, frozen=True):
    """One user in one period: gets a digest (`why` is empty) or not; GPU-seconds of the runs that could be judged."""

    start: int
    end: int
    digest: Digest | None = None

    @property
    def told(self) -> bool:
        """Whether a digest goes to the user."""
        return not self.why


def decide(
    jobs: Iterable[JudgedRun],
    period: tuple[int, int],
    rules: NoticeRules,
    standing: UserState,
) -> list[NoticeDecision]:
    """Decide on every user with runs that ended in `period` (UTC seconds); `jobs` are all runs of these users.

    They may go back as far as `reach_s`: after days without mail one digest covers them all.
    """
    ended = by_user(j for j in jobs if j.end is not None and j.end < period[1])
    decisions = [_decide(user, theirs, period, rules, standing) for user, theirs in ended.items()]
    return [d for d in decisions if d.why != "no_jobs"]


def addressed(
    decisions: Iterable[NoticeDecision], rules: NoticeRules, address_of: Callable[[str], str]
) -> list[NoticeDecision]:
    """Add the address of each digest, the largest waste first; no more digests than the rules allow.

    `address_of` returns an empty text for a user without an address; its errors are raised.
    """
    done: list[NoticeDecision] = []
    mails = 0
    for decision in sorted(decisions, key=lambda d: (-d.wasted_s, -d.gpu_s, d.user)):
        if not decision.told:
            done.append(decision)
            continue
        if mails >= rules.max_mails:
            done.append(replace(decision, why="mail_cap", digest=None))
            continue
        address = address_of(decision.user)
        mails += bool(address)
        done.append(replace(decision, address=address) if address else replace(decision, why="no_address", digest=None))
    return done


def reach_s(period: tuple[int, int], rules: NoticeRules) -> int:
    """Return how far before the period's end a digest may go back: the period, or the cooldown if that is longer."""
    return max(period[1] - period[0], int(rules.cooldown_s))


def staff_list(
    groups: Iterable[Sequence[JudgedRun]], period: tuple[int, int], min_coverage: float, users: int
) -> StaffList:
    """Return who wasted most by runs that ended in `period`; unclear runs are counted separately.

    Each group has all runs of some users.
    """
    rows: list[StaffRow] = []
    job_count = unclear = 0
    for jobs in groups:
        ended = [j for j in jobs if period[0] <= (j.end or 0) < period[1] and j.own.devices]
        judged = [j for j in ended if clear(j, min_coverage)]
        rows += _staff_rows(judged)
        job_count, unclear = job_count + len(judged), unclear + len(ended) - len(judged)
    wasting = sorted((row for row in rows if row.waste.wasted_s > 0), key=lambda r: (-r.waste.wasted_s, r.user))
    return StaffList(
        start=period[0],
        end=period[1],
        unclear_jobs=unclear,
        waste=JudgedWaste(
            job_count,
            round(sum(row.waste.gpu_s for row in rows), 3),
            round(sum(row.waste.wasted_s for row in rows), 3),
            round(sum(row.waste.exempt_s for row in rows), 3),
        ),
        users=wasting[:users],
        users_left_out=max(0, len(wasting) - users),
    )


def counted_ms(run: JudgedRun) -> int:
    """Return the waste of a run without what is exempt, GPU-milliseconds."""
    return run.own.wasted_ms - exempt_ms(run)


def exempt_ms(run: JudgedRun) -> int:
    """Return the exempt part of a run's waste, GPU-milliseconds."""
    return sum(run.own.exempt.values())


def clear(run: JudgedRun, min_coverage: float) -> bool:
    """Return whether enough of an ended run is known, and none of its data is pending."""
    own = run.own
    return bool(own.devices) and not run.running and not own.pending_ms and (_coverage([run]) or 0.0) >= min_coverage


def _decide(
    user: str,
    jobs: Sequence[JudgedRun],
    period: tuple[int, int],
    rules: NoticeRules,
    standing: UserState,
) -> NoticeDecision:
    last = standing.last_told.get(user)
    since = max(period[1] - reach_s(period, rules), last or 0)
    ended = [j for j in jobs if since <= (j.end or 0) and j.own.devices]
    found = NoticeDecision(
        user=user, why="no_jobs", start=since, end=period[1], coverage=None, address="", **asdict(_waste([]))
    )
    if not ended or not user:
        return found
    own = [j for j in ended if not j.whole_node]
    judged = [j for j in own if clear(j, rules.min_coverage)]
    found = replace(found, coverage=_coverage(own), **asdict(_waste(judged)))
    why = _why(found, own, rules)
    if not why and user in standing.opted_out:
        why = "opted_out"
    if not why and last is not None and last + rules.cooldown_s > period[1]:
        why = "cooldown"
    digest = None if why else _digest(found, judged, len(own) - len(judged), rules)
    return replace(found, why=why, digest=digest)


def _staff_rows(judged: Iterable[JudgedRun]) -> list[StaffRow]:
    return [
        StaffRow(user=user, accounts=sorted({j.account for j in theirs}), waste=_waste(theirs))
        for user, theirs in by_user(judged).items()
    ]


def _why(found: NoticeDecision, own: Sequence[JudgedRun], rules: NoticeRules) -> Why:
    """Return the rule by which a user gets no digest, empty for none."""
    if not own:
        return "whole_node"
    if not found.jobs or (found.coverage or 0.0) < rules.min_coverage:
        return "little_known"
    if found.wasted_s < rules.min_wasted_s or found.wasted_s <= 0:
        return "little_waste"
    return "small_share" if found.wasted_s < rules.min_wasted_share * found.gpu_s else ""


def _waste(jobs: Sequence[JudgedRun]) -> JudgedWaste:
    return JudgedWaste(
        len(jobs),
        sum(j.own.alloc_ms for j in jobs) / 1000,
        sum(counted_ms(j) for j in jobs) / 1000,
        sum(exempt_ms(j) for j in jobs) / 1000,
    )


def _coverage(jobs: Sequence[JudgedRun]) -> float | None:
    active = sum(j.own.alloc_ms - j.own.suspended_ms for j in jobs)
    return sum(j.own.known_ms for j in jobs) / active if active > 0 else None


def _digest(found: NoticeDecision, judged: Sequence[JudgedRun], unclear: int, rules: NoticeRules) -> Digest:
    """Return the content of the mail."""
    lines = sorted(job_lines(j for j in judged if counted_ms(j) > 0), key=lambda line: -_line_ms(line))
    named = lines[: rules.jobs]
    runs = [task for line in named for task in line.tasks]
    findings = [f for f in finding_rows(findings_json(runs)) if f.kind != _INFORMATION and not f.provisional]
    return Digest(
        user=found.user,
        start=found.start,
        end=found.end,
        unclear_jobs=unclear,
        waste=JudgedWaste(found.jobs, found.gpu_s, found.wasted_s, found.exempt_s),
        jobs=[_row(line) for line in named],
        jobs_left_out=len(lines) - len(named),
        findings=findings[: rules.jobs],
    )


def _row(line: JobLine) -> DigestJob:
    values = {name: getattr(job_row(line), name) for name in DigestJob.__struct_fields__}
    return DigestJob(**values | {"wasted_s": _line_ms(line) / 1000})


def _line_ms(line: JobLine) -> int:
    return sum(counted_ms(task) for task in line.tasks)
