"""The types of the list of verdicts: the advice at submissions, and how the jobs ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import UNSET, Meta, defstruct, to_builtins

from gpuwaste.core.codec import annotated
from gpuwaste.core.fields import DatedDocument, Interval, Name, Number, Recorded, Table, Utc
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.ledger.reports.job_types import Appeal

MAX_VERDICTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class VerdictQuestion:
    """Which verdicts; None is "any", or the default."""

    user: Name | None = None
    policy: Name | None = None
    start: Number | None = None
    end: Number | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_VERDICTS)] = 1000


SCHEMA: Final = 1
FOR_USERS: Final = (
    *("id", "at_utc_us", "op", "action", "user", "account", "partition", "qos", "name", "is_array", "gpus"),
    *("time_limit_s", "override", "lines", "job_ids", "states", "stands", "started", "start_within"),
)


@dataclass(slots=True, kw_only=True)
class JudgedVerdict(Verdict):
    """A verdict and how its job ended, as an operator sees it."""

    node: Annotated[str, Meta(description="The advisor's host.")]
    taken_utc: Annotated[int, Meta(description="When the hub accepted it, UTC seconds.")]
    week: Annotated[str, Meta(description="The ISO week of the submission, UTC.")]
    runs: Annotated[int, Meta(description="Runs that carry the token.")]
    hit: Annotated[bool | None, Meta(description="Whether a predicted target came true; null without an outcome.")]
    started: Annotated[int | None, Meta(description="The first start where one was expected, UTC seconds.")] = None
    start_within: Annotated[
        bool | None, Meta(description="Whether that start was in the expected interval, a minute more on either side.")
    ] = None
    stands: Literal["rejected", "ended", "open", "no job"]
    job_ids: Annotated[list[str], Meta(description="The jobs that carry the token, as Slurm prints them.")]
    states: Annotated[list[str], Meta(description="The states of their runs.")]


if TYPE_CHECKING:

    class VerdictRow(JudgedVerdict):
        """A verdict and how its job ended; operators see every field, users only the advice that they got."""

else:
    VerdictRow = defstruct(
        "VerdictRow",
        [
            (part.name, kind, *(() if part.name in FOR_USERS else (UNSET,)))
            for part, kind, _ in annotated(JudgedVerdict)
        ],
        kw_only=True,
    )
    VerdictRow.__doc__ = (
        "A verdict and how its job ended; operators see every field, users only the advice that they got."
    )


def expected_of(quantiles: Mapping[str, Mapping[str, float]], target: str) -> Interval | None:
    """Return the expected start or end of a verdict, None where it has none."""
    found = quantiles.get(target, {})
    if not {"0.1", "0.5", "0.9"} <= set(found):
        return None
    return Interval(p10=int(found["0.1"]), p50=int(found["0.5"]), p90=int(found["0.9"]))


_COLUMNS: Final = (
    *("id", "at_utc_us", "op", "policy", "mode", "action", "would_be", "held", "sampled", "override", "user"),
    *("account", "partition", "qos", "name", "is_array", "gpus", "time_limit_s", "job_ids", "states", "stands", "hit"),
    *("lines", "latency_us", "model_hash"),
)


class VerdictsDocument(DatedDocument, kw_only=True, frozen=True):
    """Verdicts, the newest first."""

    document: Literal["verdicts"] = "verdicts"
    recorded: Recorded = False
    start: Utc
    end: Utc
    verdicts: list[VerdictRow]
    appeals: Annotated[list[Appeal], Meta(description="Newest appeals of job owners; for operators.")] = []  # noqa: RUF012 copied

    def table(self, _: str = "") -> Table:
        """Return the verdicts; lists are one cell."""
        rows = map(to_builtins, self.verdicts)
        lists = ("job_ids", "states", "lines")
        return _COLUMNS, ({**row, **{name: "; ".join(row[name]) for name in lists}} for row in rows)
