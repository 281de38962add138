"""Campaigns with a known effect, for tests and the bench: users of a real or generated cluster, assigned and notified.

A population is what users idled, held and ran in each week. A draw takes users from it with replacement, assigns them
by the product's own keyed hash, and changes what those who are notified idle.
"""

from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from gpuwaste.act.campaigns.assignment import Assignment
from gpuwaste.act.campaigns.campaign_definition import Campaign, CampaignHead
from gpuwaste.act.campaigns.campaign_panel import NAMES, CampaignData
from gpuwaste.act.campaigns.randomisation import exposed
from gpuwaste.core.units import WEEK_S
from gpuwaste.store.duckdb_connection import connect

Table = npt.NDArray[np.float64]
Kind = Literal["always", "weeks", "users", "varied"]
_MONDAY: Final = date(2027, 5, 3)
_PHILLY_FROM: Final = 1_506_902_400  # 2 October 2017, a Monday, UTC
_PHILLY_WEEKS: Final = 10
_LONGEST_S: Final = 14 * 86_400


@dataclass(frozen=True, slots=True)
class Population:
    """What each user idled and held (GPU-hours), ran, failed and timed out (jobs), in each week: users x weeks."""

    name: str
    outcomes: dict[str, Table]

    @property
    def users(self) -> int:
        """How many users it has."""
        return len(self.outcomes["idle_h"])

    @property
    def weeks(self) -> int:
        """How many weeks it has."""
        return int(self.outcomes["idle_h"].shape[1])


@dataclass(frozen=True, slots=True)
class InjectedEffect:
    """What telling does: `share` of the idle GPU-hours is saved, on average.

    `kind`: always (each week of each user), weeks (some weeks lose all of it), users (some users do), varied (each
    user another share). `failed` is how many more of 100 jobs of those notified fail. `spill` is the part of the effect
    that those held back have too. `drift` is the standard deviation of the logarithm by which all weeks differ from
    the one before. With `giant` one user holds as much as all others.
    """

    share: float = 0.0
    kind: Kind = "always"
    failed: float = 0.0
    spill: float = 0.0
    drift: float = 0.2
    giant: bool = False


@dataclass(slots=True)
class DrawnCampaign:
    """A campaign's data, and what was really saved of the idle GPU-hours of those notified: a share, and GPU-hours."""

    data: CampaignData
    saved_share: float
    saved_h: float
    failed_more: float = field(default=0.0)


def campaign(weeks: int, *, held_back: float = 0.5, rollout_weeks: int = 0, before: int = 6) -> Campaign:
    """Return a campaign of some weeks."""
    head = CampaignHead(
        what=("digest",), start=_MONDAY, end=_MONDAY + timedelta(days=7 * weeks - 1),
        held_back=0.0 if rollout_weeks else held_back, rollout_weeks=rollout_weeks, weeks_before=before,
    )  # fmt: skip
    return Campaign("drawn", "drawn.toml", "", "", head)


def philly(folder: Path) -> Population:
    """Return the users of ten weeks of Philly (Jeon et al. 2019): multi-GPU jobs of five minutes and more.

    The idle share of a job is the share of its first four minutes and GPUs at 0 %; it is taken for the whole job, and
    jobs are cut after 14 days.
    """
    jobs, minutes = folder / "philly_sampled_jobs.parquet", folder / "philly_gpu_util_m10_p3.parquet"
    db = connect()
    rows = db.execute(
        "WITH use AS (SELECT jobid, avg((gpu_util = 0)::INT) AS idle FROM read_parquet($minutes)"
        " WHERE minute BETWEEN 0 AND 3 AND NOT isnan(gpu_util) GROUP BY jobid)"
        ' SELECT j."user", epoch(start_time), epoch(end_time), n_gpus, idle, status = \'Failed\''
        " FROM read_parquet($jobs) j JOIN use USING (jobid) WHERE epoch(start_time) BETWEEN $first AND $last",
        {
            "minutes": str(minutes), "jobs": str(jobs), "first": _PHILLY_FROM,
            "last": _PHILLY_FROM + _PHILLY_WEEKS * WEEK_S,
        },
    ).fetchall()  # fmt: skip
    places = {user: place for place, user in enumerate(sorted({row[0] for row in rows}))}
    found = {name: np.zeros((len(places), _PHILLY_WEEKS)) for name in NAMES}
    for user, start, end, gpus, idle, failed in rows:
        until = min(end, start + _LONGEST_S)
        for week in range(_PHILLY_WEEKS):
            edge = _PHILLY_FROM + week * WEEK_S
            hours = gpus * max(0.0, min(until, edge + WEEK_S) - max(start, edge)) / 3600
            found["held_h"][places[user], week] += hours
            found["idle_h"][places[user], week] += hours * idle
            if edge <= until < edge + WEEK_S:
                found["jobs"][places[user], week] += 1
                found["failed"][places[user], week] += failed
    return Population("Philly", found)


def generated(users: int = 300, weeks: int = 24, seed: int = 1) -> Population:
    """Return users whose GPU-hours are log-normal, with weeks without jobs, and idle shares of their own."""
    rng = np.random.default_rng(seed)
    size = rng.lognormal(4.0, 1.5, users)[:, None]
    there = rng.random((users, weeks)) < rng.beta(2, 2, users)[:, None]
    held = size * rng.lognormal(0.0, 1.0, (users, weeks)) * there
    idle = held * np.clip(rng.beta(1, 4, users)[:, None] + rng.normal(0, 0.1, (users, weeks)), 0, 1)
    jobs = (rng.poisson(np.minimum(size / 10, 200), (users, weeks)) + 1) * there
    rates = rng.beta(1, 6, users)[:, None]
    found = {
        "held_h": held, "idle_h": idle, "unknown_h": np.zeros_like(held), "jobs": jobs.astype(float),
        "failed": rng.binomial(jobs, rates).astype(float), "timed_out": rng.binomial(jobs, rates / 4).astype(float),
    }  # fmt: skip
    return Population("generated", found)


def drawn(population: Population, planned: Campaign, users: int, effect: InjectedEffect, seed: int) -> DrawnCampaign:
    """Return a complete campaign with drawn users and an injected effect."""
    rng = np.random.default_rng(seed)
    before, weeks = planned.head.weeks_before, planned.weeks
    who = rng.integers(0, population.users, users)
    span = (rng.integers(0, population.weeks, users)[:, None] + np.arange(before + weeks)) % population.weeks
    tables = {name: table[who[:, None], span].copy() for name, table in population.outcomes.items()}
    trend = np.exp(np.cumsum(rng.normal(0, effect.drift, before + weeks)))
    for name in ("held_h", "idle_h"):
        tables[name] *= trend
        if effect.giant:
            tables[name][0] = rng.exponential(tables[name][1:].sum(axis=0))
    assignment = Assignment(rng.bytes(32))
    notified_from = np.array(
        [assignment.notified_from(planned, f"user{number}") for number in range(users)], dtype=np.int64
    )
    notified: npt.NDArray[np.bool_] = exposed(notified_from, weeks) > 0
    without = tables["idle_h"][:, before:].copy()
    kept = _kept(effect, notified, rng)
    tables["idle_h"][:, before:] *= kept
    more = _fail(tables, before, notified, effect.failed / 100, rng)
    known = np.ones(weeks, dtype=bool)
    data = CampaignData(
        [f"user{number}" for number in range(users)], notified_from,
        {name: table[:, :before] for name, table in tables.items()},
        {name: table[:, before:] for name, table in tables.items()}, known, planned.weeks,
    )  # fmt: skip
    saved = float((without * (1 - kept))[notified].sum())
    return DrawnCampaign(data, saved / max(float(without[notified].sum()), 1e-12), saved, more)


def _kept(effect: InjectedEffect, notified: npt.NDArray[np.bool_], rng: np.random.Generator) -> Table:
    """Return which part of the idle GPU-hours is left, units x weeks."""
    units, weeks = notified.shape
    share = effect.share
    if effect.kind == "weeks":
        saved = 1.0 * rng.binomial(1, share, (units, weeks))
    elif effect.kind == "users":
        saved = 1.0 * np.tile(rng.binomial(1, share, (units, 1)), weeks)
    elif effect.kind == "varied" and share:
        saved = np.tile(rng.beta(2, 2 * (1 - share) / share, (units, 1)), weeks)
    else:
        saved = np.full((units, weeks), share)
    return 1 - np.where(notified, saved, effect.spill * saved)


def _fail(
    tables: dict[str, Table], before: int, notified: npt.NDArray[np.bool_], more: float, rng: np.random.Generator
) -> float:
    """Let more jobs of those notified fail; return by how much their share of failures grew."""
    jobs, failed = tables["jobs"][:, before:], tables["failed"][:, before:]
    if not more:
        return 0.0
    added = rng.binomial((jobs - failed).astype(int), min(1.0, more)) * notified
    failed += added
    return float(added[notified].sum() / max(jobs[notified].sum(), 1.0))
