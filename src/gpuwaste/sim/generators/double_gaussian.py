"""Jobs of one length whose sizes follow two bell curves, as in the evaluation of the Flux emulator.

Sizes are read off the sum of two Gaussians at even points: the first peak takes the whole machine, the second 60 % of
it, and every job runs 6 minutes with a limit of 10. The centres and the widths of the curves are not published, and
neither is the order of the jobs: a seed draws them, so that a result is a distribution over seeds.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from gpuwaste.sim.generated_load import JobLog, Load
from gpuwaste.sim.parameters import SEED, Parameter

TITLE: Final = "jobs of 6 minutes; sizes follow two bell curves that peak at the full machine and at 60 % of it"
NEEDS_LOG: Final = False
PARAMETERS: Final[Mapping[str, Parameter]] = {
    "jobs": Parameter(100, 2, 1_000_000, "jobs to draw", whole=True),
    "processors": Parameter(100, 2, 10_000_000, "nodes of the machine", whole=True),
    "second": Parameter(0.6, 0.01, 1, "second peak, as a share of the machine"),
    "run": Parameter(360, 1, 86_400, "run time, seconds", whole=True),
    "limit": Parameter(600, 1, 86_400, "time limit, seconds", whole=True),
    "shuffle": Parameter(0, 0, 1, "1: jobs are submitted in a random order, 0: along the curve", whole=True),
    "seed": SEED,
}
_FIRST_AT, _SECOND_AT = (0.2, 0.35), (0.6, 0.8)  # centres, as shares of the row of jobs
_WIDTH = (0.06, 0.12)  # standard deviations, the same


def drawn(values: Mapping[str, float], log: JobLog | None) -> Load:
    """Draw a load; see generators."""
    del log
    rng = np.random.default_rng(int(values["seed"]))
    count, machine = int(values["jobs"]), int(values["processors"])
    at = np.linspace(0, 1, count)
    first = np.exp(-(((at - rng.uniform(*_FIRST_AT)) / rng.uniform(*_WIDTH)) ** 2) / 2)
    second = np.exp(-(((at - rng.uniform(*_SECOND_AT)) / rng.uniform(*_WIDTH)) ** 2) / 2)
    size = np.clip(np.rint(machine * (first / first.max() + values["second"] * second / second.max())), 1, machine)
    if values["shuffle"]:
        rng.shuffle(size)
    zeros = np.zeros(count, dtype=np.int64)
    run = np.full(count, int(min(values["run"], values["limit"])), dtype=np.int64)
    return Load(
        submit=zeros,
        run_s=run,
        limit_s=np.full(count, int(values["limit"]), dtype=np.int64),
        procs=size.astype(np.int64),
        user=zeros,
        account=zeros,
        processors=machine,
    )
