"""A made-up job history with a planted signal: programs of users that fail, overrun or waste GPUs at their own rates.

Every target has labels in it. What a program does is drawn once, what a job does is drawn from its program: a model
with history can learn it, one without cannot.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.job_table import Categories, JobTable
from gpuwaste.jobs.history.outcome import Outcome

BEGIN: Final = 1_700_000_000  # UTC s of the first submission
_PROGRAMS: Final = 3  # of each user
_GIB: Final = 2.0**30
_LIMITS: Final = np.array([600.0, 1800, 3600, 14_400, 43_200, 86_400])


def planted_table(jobs: int, seed: int = 1, users: int = 40, every_s: float = 60.0) -> JobTable:
    """Return a table of ended jobs, one submitted about every `every_s` seconds; equal seeds give equal tables."""
    rng = np.random.default_rng(seed)
    user = rng.choice(users, size=jobs, p=_shares(users))
    program = user * _PROGRAMS + rng.integers(_PROGRAMS, size=jobs)
    drawn = _Programs(users * _PROGRAMS, rng)
    submit = BEGIN + np.cumsum(rng.exponential(every_s, size=jobs)).astype(np.int64)
    start = submit + rng.exponential(120.0, size=jobs).astype(np.int64)
    limit = drawn.limit_s[program]
    wish = np.exp(rng.normal(np.log(drawn.run_s[program]), 0.4))
    fails = rng.random(jobs) < drawn.fails[program]
    wish = np.where(fails, wish * rng.random(jobs), wish)
    late = wish >= limit
    cancelled = ~late & (rng.random(jobs) < 0.03)  # noqa: PLR2004 some are
    outcome = np.select(
        [late, cancelled, fails & (rng.random(jobs) < 0.1), fails],  # noqa: PLR2004 a tenth of the failures
        [Outcome.TIMEOUT, Outcome.CANCELLED, Outcome.OUT_OF_MEMORY, Outcome.FAILED],
        Outcome.COMPLETED,
    )
    run_s = np.maximum(np.floor(np.minimum(wish, limit)), 1.0)
    end = start + run_s.astype(np.int64)
    gpus = drawn.gpus[program]
    idle = rng.random(jobs) < drawn.idles[program]
    used = np.where(idle, rng.uniform(0, 0.04, jobs), rng.uniform(0.2, 0.9, jobs))
    active = np.where(idle, 0.0, np.minimum(gpus, drawn.active[program]))
    return JobTable(
        job_id=np.arange(1, jobs + 1),
        submit=submit,
        user=_texts("u", user),
        account=_texts("a", user % 7),
        partition=_texts("p", (gpus > 0).astype(np.int64)),
        qos=_texts("q", np.zeros(jobs, np.int64)),
        name=_texts("train_", program),
        gpu_type=_texts("a", np.full(jobs, 100)),
        limit_s=limit,
        nodes=np.ones(jobs),
        cpus=drawn.cpus[program],
        mem_b=drawn.mem_b[program] * 4,
        gpus=gpus,
        is_array=np.zeros(jobs, np.bool_),
        interactive=np.zeros(jobs, np.bool_),
        start=start,
        end=end,
        run_s=run_s,
        alloc_cpus=drawn.cpus[program],
        outcome=outcome.astype(np.uint8),
        max_rss_b=np.floor(drawn.mem_b[program] * rng.lognormal(0.0, 0.2, jobs)),
        used_ratio=np.where(gpus > 0, used, np.nan),
        gpus_active=np.where(gpus > 0, active, np.nan),
        gpu_coverage=np.where(gpus > 0, 1.0, np.nan),
        ledger_at=np.where(gpus > 0, end + 900, -1),
    )


class _Programs:
    """What each program is like."""

    def __init__(self, count: int, rng: np.random.Generator) -> None:
        self.fails = rng.beta(0.4, 1.2, count)
        self.run_s = np.exp(rng.normal(np.log(1500.0), 1.2, count))
        place = np.searchsorted(_LIMITS, self.run_s * rng.uniform(1.2, 4.0, count))
        self.limit_s = _LIMITS[np.minimum(place, len(_LIMITS) - 1)]
        self.gpus = rng.choice([0.0, 1.0, 2.0, 4.0], count, p=[0.3, 0.4, 0.15, 0.15])
        self.active = rng.integers(1, 5, count).astype(np.float64)
        self.idles = rng.beta(0.4, 1.6, count)
        self.cpus = rng.choice([1.0, 4.0, 8.0, 32.0], count)
        self.mem_b = np.exp(rng.normal(np.log(2 * _GIB), 1.0, count))


def _shares(users: int) -> NDArray[np.float64]:
    """Return how busy each user is: few submit most jobs."""
    share: NDArray[np.float64] = 1.0 / np.arange(1, users + 1)
    share /= share.sum()
    return share


def _texts(prefix: str, numbers: NDArray[np.int64]) -> Categories:
    codes = numbers.astype(np.int32)
    return Categories(codes, tuple(f"{prefix}{i}" for i in range(int(codes.max(initial=0)) + 1)))
