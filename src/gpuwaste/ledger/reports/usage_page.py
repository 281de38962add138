"""/me, /users/U, /accounts/A: what was wasted in a window of time, the line to change, the jobs behind it."""

from dataclasses import asdict, dataclass, replace
from typing import Final
from urllib.parse import urlencode

from gpuwaste.core.units import DAY_S, GpuTimeUnit
from gpuwaste.ledger.energy.energy_text import energy_titles, energy_words
from gpuwaste.ledger.reports.report_question import EVERY_LINE, LineFilter
from gpuwaste.ledger.reports.report_types import GpuTime, JobRow, NameRow, ReportDocument, unexplained_s
from gpuwaste.ledger.right_size.findings import SIZE_FINDINGS
from gpuwaste.show.environment import Frame, page
from gpuwaste.show.page_words import cut, date_words, share

ROWS: Final = 50
STATES: Final = (
    *("COMPLETED", "RUNNING", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "PREEMPTED", "NODE_FAIL"),
    *("REQUEUED", "SUSPENDED"),
)
_GROUPED: Final = {"many_small_jobs", *SIZE_FINDINGS}  # of several jobs together: no single line of the table has them
_MOST_OF_IT: Final = 0.5
_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """The parameters of a page of usage: the last `days` and today, or a start and an end (UTC seconds).

    `number` is from 1; `cluster` is "" for all clusters.
    """

    path: str
    start: int
    end: int
    days: int | None = None
    lines: LineFilter = EVERY_LINE
    number: int = 1
    cluster: str = ""

    @property
    def fields(self) -> dict[str, int | str]:
        """The parameters of the window and the clusters."""
        chosen: dict[str, int | str] = {"cluster": self.cluster} if self.cluster else {}
        return ({"days": self.days} if self.days else {"start": self.start, "end": self.end}) | chosen

    @property
    def query(self) -> str:
        """The parameters of the window, as in a URL."""
        return urlencode(self.fields)

    @property
    def permalink(self) -> str:
        """The URL of the page with the window in absolute times."""
        return f"{self.path}?{urlencode(replace(self, days=None).fields)}"

    def url(self, number: int, suffix: str = "") -> str:
        """Return the URL of another page of the table, or with a suffix of the same view in another format."""
        wanted = {name: value for name, value in asdict(self.lines).items() if value}
        pages = {"page": number} if number > 1 and not suffix else {}
        return f"{self.path}{suffix}?{urlencode({**self.fields, **wanted, **pages})}"


@dataclass(frozen=True, slots=True)
class Paging:
    """Which lines of the table are shown, and the URLs of those before and after."""

    first: int
    last: int
    all: int
    before: str | None
    after: str | None


def usage_page(report: ReportDocument, before: GpuTime | None, asked: UsageQuery, frame: Frame) -> str:
    """Return the page of a report; `before` are the totals of as many days or as much time before it."""
    framed = replace(frame, links={name: asked.url(1, f".{name}") for name in ("csv", "json")})
    return page(
        "usage",
        framed,
        title=f"{report.scope.capitalize()} {cut(report.name)}",
        report=report,
        sentence=_sentence(report, asked, frame),
        more=_more(report, before, asked),
        finding=next((finding for finding in report.findings if finding.fixes), None),
        levels=levels_of(report.totals),
        unit=GpuTimeUnit.of([report.totals.gpu_s]),
        energy=energy_words(report.energy),
        cluster_energy=energy_titles(row.energy for row in report.clusters),
        user_energy=energy_titles(row.energy for row in report.users),
        day_energy=energy_titles(row.energy for row in report.days),
        window=asked,
        clusters=_choice(report, asked),
        asked=asked.lines,
        filtered=asked.lines != EVERY_LINE,
        states=STATES,
        findings=[kind for kind in report.finding_counts if kind not in _GROUPED],
        paging=_paging(report, asked),
        job_link=job_link,
    )


def _choice(report: ReportDocument, asked: UsageQuery) -> list[str]:
    """Return the clusters to choose from; none if there is only one and none was chosen."""
    names = sorted({row.cluster for row in report.clusters} | ({asked.cluster} if asked.cluster else set()))
    return names if asked.cluster or len(names) > 1 else []


def levels_of(totals: GpuTime) -> dict[str, float]:
    """Return GPU-seconds by level; pending time counts as unknown."""
    return {
        "high": totals.high_s,
        "moderate": totals.moderate_s,
        "low": totals.low_s,
        "idle": totals.idle_s,
        "unknown": totals.unknown_s + totals.pending_s,
        "suspended": totals.suspended_s,
    }


def job_link(row: JobRow) -> str:
    """Return the id in the URL of the page of a line's job: for several array tasks that of the array."""
    return row.printed_id.partition("_[")[0]


def _sentence(report: ReportDocument, asked: UsageQuery, frame: Frame) -> str:
    totals, (who, theirs, of) = report.totals, _who(report, frame)
    when, idle_s = _when(report, asked), unexplained_s(report.totals)
    if not report.job_count:
        return f"{who[0].upper()}{who[1:]} {'have' if who == 'you' else 'has'} no jobs with GPUs {when}."
    unit = GpuTimeUnit.of([totals.gpu_s])
    hours = f"{theirs}{unit.words(totals.gpu_s)}{of} {when}"
    if not totals.coverage:
        return f"The use of {hours} is unknown."
    if not idle_s:
        return f"None of {hours} were idle without a known reason."
    share_idle = share(idle_s, totals.gpu_s)
    return f"{unit.number(idle_s)} of {hours} were idle without a known reason ({share_idle})."


def _when(report: ReportDocument, asked: UsageQuery) -> str:
    """Return the window in words; the days are UTC."""
    first, last = date_words(report.start), date_words(max(report.start, report.end - 1))
    if asked.days:
        same_year = first.rpartition(" ")[2] == last.rpartition(" ")[2]
        return f"since {date_words(report.start, year=not same_year)}"
    if first == last:
        return f"on {first}"
    begin, end = first.split(" "), last.split(" ")
    same = 2 if begin[1:] == end[1:] else 1 if begin[2] == end[2] else 0
    return f"from {' '.join(begin[: 3 - same])} to {last}"


def _who(report: ReportDocument, frame: Frame) -> tuple[str, str, str]:
    """Return whose jobs they are: as a subject, and before or after the GPU-hours."""
    if report.scope == "user" and report.name == frame.user:
        return "you", "your ", ""
    who = "the cluster" if report.scope == "cluster" else f"{report.scope} {cut(report.name)}"
    return who, "", f" of {who}"


def _more(report: ReportDocument, before: GpuTime | None, asked: UsageQuery) -> str:
    parts = [_worst(report.worst_name, report.totals), _trend(report.totals, before, asked.days)]
    return " ".join(part for part in parts if part)


def _worst(worst: NameRow | None, totals: GpuTime) -> str:
    if worst is None or not totals.wasted_s or worst.wasted_s < _MOST_OF_IT * totals.wasted_s:
        return ""
    part = "all" if worst.wasted_s == totals.wasted_s else share(worst.wasted_s, totals.wasted_s)
    of = "of the idle time, exempt time included" if totals.exempt_s else "of it"
    jobs = "Job" if worst.jobs == 1 else f"{worst.jobs} jobs named"
    return f"{jobs} {cut(worst.name)} caused {part} {of}."


def _trend(totals: GpuTime, before: GpuTime | None, days: int | None) -> str:
    if before is None or not before.coverage or not totals.coverage:
        return ""
    when = f"in the {days} days before" if days else "in as much time before"
    idle_before_s, idle_s = unexplained_s(before), unexplained_s(totals)
    old, new = share(idle_before_s, before.gpu_s), share(idle_s, totals.gpu_s)
    if old == new:
        return f"No change: {old} {when}."
    change = "Down" if idle_s * before.gpu_s < idle_before_s * totals.gpu_s else "Up"
    return f"{change} from {old} {when}."


def _paging(report: ReportDocument, asked: UsageQuery) -> Paging:
    first = (asked.number - 1) * ROWS
    last, matching = first + len(report.jobs), report.jobs_matching or 0
    return Paging(
        first + 1,
        last,
        matching,
        asked.url(asked.number - 1) if asked.number > 1 else None,
        asked.url(asked.number + 1) if last < matching else None,
    )


def asked_of(
    path: str,
    window: tuple[int | None, int | None, int | None],
    now: int,
    lines: LineFilter,
    number: int,
    *,
    cluster: str = "",
) -> UsageQuery:
    """Return the parameters of a window (days, start, end): that many UTC days before today and today, else the times.

    The default is 7 days.
    """
    days, start, end = window
    if start is None and end is None:
        days = days or _DAYS
        return UsageQuery(path, max(0, now - now % DAY_S - days * DAY_S), now, days, lines, number, cluster)
    until = now if end is None else end
    return UsageQuery(
        path, max(0, until - _DAYS * DAY_S) if start is None else start, until, None, lines, number, cluster
    )
