"""A static load like LUMI's: log-normal run times and sizes, all submitted at once by users of accounts.

The distributions are those that Marciani et al. fitted to the jobs of LUMI (Table 2 and section 3.4.1 of "Evaluating
the impact of task aggregation in workflows with shared resource environments"): shape, location and scale as SciPy
names them. Sizes are drawn again above the machine; both are rounded down. Each job belongs to one of the users, and
each user to one of the accounts, evenly. Limits are the run times, as the paper has no others.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.sim.generated_load import JobLog, Load, limits_of
from gpuwaste.sim.parameters import SEED, Parameter

TITLE: Final = "a static load like LUMI's (Marciani et al.): log-normal sizes and run times, all submitted at once"
NEEDS_LOG: Final = False
PARAMETERS: Final[Mapping[str, Parameter]] = {
    "jobs": Parameter(1000, 1, 5_000_000, "jobs to draw", whole=True),
    "processors": Parameter(360_448, 2, 10_000_000, "processors of the machine", whole=True),
    "users": Parameter(100, 1, 1_000_000, "users who submit", whole=True),
    "accounts": Parameter(100, 1, 1_000_000, "accounts that users belong to", whole=True),
    "overestimate": Parameter(0, 0, 1000, "time limits are the run time plus up to this many run times"),
    "seed": SEED,
}
_SIZE = (1.7195, -0.98930, 199.30)  # shape, location, scale
_RUN = (2.6766, 0.95007, 165.06)  # the same, seconds
_LONGEST_S: Final = 4_604_100  # the longest job of LUMI in the paper's table


def drawn(values: Mapping[str, float], log: JobLog | None) -> Load:
    """Draw a load; see generators."""
    del log
    rng = np.random.default_rng(int(values["seed"]))
    count, processors = int(values["jobs"]), int(values["processors"])
    procs = _log_normal(count, *_SIZE, least=1, most=processors, rng=rng)
    run = _log_normal(count, *_RUN, least=0, most=_LONGEST_S, rng=rng)
    users = int(values["users"])
    account_of = rng.integers(0, int(values["accounts"]), users)
    user = rng.integers(0, users, count)
    return Load(
        submit=np.zeros(count, dtype=np.int64),
        run_s=run,
        limit_s=limits_of(run, values["overestimate"], rng),
        procs=procs,
        user=user,
        account=account_of[user],
        processors=processors,
    )


def _log_normal(
    count: int, shape: float, location: float, scale: float, *, least: int, most: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return whole numbers, rounded down; those outside the bounds are drawn again, a hundred times at most."""
    found = np.full(count, -1.0)
    for _ in range(100):
        left = np.flatnonzero((found < least) | (found > most))
        if not len(left):
            break
        found[left] = np.floor(location + scale * np.exp(shape * rng.standard_normal(len(left))))
    whole: NDArray[np.int64] = np.clip(found, least, most).astype(np.int64)
    return whole
