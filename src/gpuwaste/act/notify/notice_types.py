"""The types of notices: the digest to a user, the weekly list to staff, and what operators see of both.

Their waste is that without what is exempt, of ended runs that can be judged: other figures than those of the reports'
rows. A digest is stored until its mail is sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from gpuwaste.core.fields import (
    DatedDocument,
    Document,
    GpuSeconds,
    MaybeRatio,
    MaybeUtc,
    Name,
    Number,
    Recorded,
    Table,
    Utc,
)
from gpuwaste.ledger.reports.report_types import FindingRow

MAX_NOTICES: Final = 10_000


@dataclass(frozen=True)
class NoticeQuestion:
    """Whose notices, of which time, and how many; None is "any", or the default."""

    user: Name | None = None
    start: Number | None = None
    end: Number | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_NOTICES)] = 1000


class NoticeRunQuestion(Struct, forbid_unknown_fields=True):
    """The body of POST /v1/notices/run."""

    dry_run: Annotated[bool, Meta(description="Decide only: record and send nothing.")]


class NoticeWish(Struct, forbid_unknown_fields=True):
    """The body of POST /v1/notices/wish."""

    mail: Annotated[bool, Meta(description="Whether the caller wants digests.")]


_Counts = Annotated[Mapping[str, int], Meta(description="Users who get no mail, by reason.")]
_Why = Annotated[str, Meta(description="Why the user gets no mail; empty: the user gets one.")]
_Wasted = Annotated[float, Meta(description="GPU-seconds wasted, without what is exempt.")]


class DigestJob(Struct, kw_only=True, frozen=True):
    """A job, or the tasks of an array, in a digest."""

    printed_id: str
    name: str
    partition: str
    state: str
    tasks: int
    gpus: int
    gpu_s: GpuSeconds
    mean_util_pct: Annotated[float | None, Meta(description="Percent; null: not known.")]
    end: MaybeUtc
    wasted_s: _Wasted


class JudgedWaste(Struct, frozen=True):
    """The GPU-time of runs of which enough is known."""

    jobs: int
    gpu_s: GpuSeconds
    wasted_s: _Wasted
    exempt_s: GpuSeconds


class Digest(Document, kw_only=True, frozen=True):
    """A user's digest of a period."""

    user: str
    start: Utc
    end: Utc
    unclear_jobs: Annotated[int, Meta(description="Jobs with too little known GPU time.")]
    waste: JudgedWaste
    jobs: list[DigestJob]
    jobs_left_out: int
    findings: list[FindingRow]


class StaffRow(Struct, kw_only=True, frozen=True):
    """One user in the weekly list."""

    user: str
    accounts: list[str]
    waste: JudgedWaste


class StaffList(Document, kw_only=True, frozen=True):
    """Who wasted most by runs that ended in a period."""

    start: Utc
    end: Utc
    unclear_jobs: int
    waste: JudgedWaste
    users: list[StaffRow]
    users_left_out: int
    campaigns: Annotated[list[str], Meta(description="What each campaign has shown, a sentence each.")] = []  # noqa: RUF012 copied


class LimitJob(Struct, kw_only=True, frozen=True):
    """A running job that will probably reach its time limit."""

    printed_id: str
    name: str
    partition: str
    time_limit_s: Annotated[int, Meta(description="Seconds.")]
    limit_at: Utc
    p: Annotated[float, Meta(description="The probability that it reaches its limit, 0 to 1.")]


class LimitNotice(Document, kw_only=True, frozen=True):
    """The notice to a user about jobs that will probably reach their time limits."""

    user: str
    generated: Utc
    jobs: Annotated[list[LimitJob], Meta(description="In the order in which they reach their limits.")]


class NoticeRow(Struct, kw_only=True, frozen=True):
    """One notice: who got it, or did not, and why."""

    kind: Annotated[str, Meta(description="digest, staff, or limit.")]
    user: str
    period_start: Utc
    period_end: Utc
    dry: Annotated[bool, Meta(description="Whether the mail was recorded and not sent.")]
    status: str
    why: _Why
    detail: Annotated[str, Meta(description="Status of the mail.")]
    address: str
    at_utc: Utc
    jobs: int
    gpu_s: GpuSeconds
    wasted_s: _Wasted
    exempt_s: GpuSeconds
    coverage: MaybeRatio
    tries: int
    next_utc: Annotated[int, Meta(description="Time of the next attempt, UTC seconds.")]


class ToldRow(Struct, kw_only=True, frozen=True):
    """One user who gets a digest."""

    user: str
    why: _Why
    jobs: int
    gpu_s: GpuSeconds
    wasted_s: _Wasted
    exempt_s: GpuSeconds
    coverage: MaybeRatio
    address: str


class ReplayedUser(Struct, kw_only=True, frozen=True):
    """How many digests one user would have got, and for how much waste."""

    user: str
    times: int
    jobs: int
    gpu_s: GpuSeconds
    wasted_s: _Wasted


class ReplayedPeriod(Struct, kw_only=True, frozen=True):
    """Who would have got a digest for one period."""

    start: Utc
    end: Utc
    not_told: _Counts
    told: list[ToldRow]


class NoticeDocument(DatedDocument, kw_only=True, frozen=True):
    """The common fields of all answers on notices."""

    recorded: Recorded = False
    start: Annotated[int, Meta(description="Start of the period, or of the queried time, UTC seconds.")]
    end: Utc


class NoticesDocument(NoticeDocument, kw_only=True, frozen=True):
    """Who got a notice and who did not, the newest period first."""

    ROWS: ClassVar[str] = "notices"
    HIDDEN: ClassVar[tuple[str, ...]] = ("next_utc",)
    document: Literal["notices"] = "notices"
    notices: list[NoticeRow]
    dry_run: bool


class NoticePreview(NoticeDocument, kw_only=True, frozen=True):
    """The digest that a user would get if a period ended now."""

    document: Literal["notice-preview"] = "notice-preview"
    user: str
    why: _Why
    jobs: int | UnsetType = UNSET
    gpu_s: GpuSeconds | UnsetType = UNSET
    wasted_s: _Wasted | UnsetType = UNSET
    exempt_s: GpuSeconds | UnsetType = UNSET
    coverage: MaybeRatio | UnsetType = UNSET
    address: str | UnsetType = UNSET
    subject: str
    text: str
    to: str

    def table(self, _: str = "") -> Table:
        """Return one row, which is empty where no digest would be sent."""
        return ToldRow.__struct_encode_fields__, [to_builtins(self)]


class NoticeReplay(NoticeDocument, kw_only=True, frozen=True):
    """Who would have got digests in a window of time."""

    ROWS: ClassVar[str] = "users"
    document: Literal["notice-replay"] = "notice-replay"
    periods: list[ReplayedPeriod]
    users: Annotated[list[ReplayedUser], Meta(description="The largest waste first.")]


class NoticeRun(NoticeDocument, kw_only=True, frozen=True):
    """What was decided on the newest period."""

    ROWS: ClassVar[str] = "told"
    document: Literal["notice-run"] = "notice-run"
    dry_run: bool
    news: Annotated[bool, Meta(description="Whether this request decided it.")]
    missing: Annotated[str, Meta(description="What is missing so far; empty: nothing.")]
    not_told: _Counts
    told: list[ToldRow]


class NoticeWished(NoticeDocument, kw_only=True, frozen=True):
    """Whether the caller wants mail."""

    document: Literal["notice-wish"] = "notice-wish"
    user: str
    mail: bool
