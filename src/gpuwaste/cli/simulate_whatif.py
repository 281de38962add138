"""What `gpuwaste simulate what-if` adds: the case of the options, progress, partial results of an interruption."""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gpuwaste.cli.words import listed
from gpuwaste.core.config import Config

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from gpuwaste.advice.policy.policy_set import PolicySet
    from gpuwaste.core.errors import NoDataError
    from gpuwaste.jobs.history.job_table import JobTable
    from gpuwaste.models.job_source import JobSource
    from gpuwaste.sim.counterfactual import Counterfactual
    from gpuwaste.sim.document import SimulationDocument
    from gpuwaste.sim.schedule_metrics import Placed
    from gpuwaste.sim.trace import Ints
    from gpuwaste.sim.whatif import Refused, WhatIfCase

_MIN_S: Final = 0.5


def wanted_of(options: argparse.Namespace) -> tuple[tuple[str, str], ...]:
    """Return name and value of each what-if. Raises UsageError."""
    from gpuwaste.sim.whatif import parsed

    return parsed(listed(options.what_if))


def resource_of(options: argparse.Namespace, wanted: Sequence[tuple[str, str]]) -> str:
    """Return what the machine counts: as given, GPUs where GPU requests are changed, else processors."""
    from gpuwaste.sim.trace import GPUS, PROCESSORS

    default = GPUS if any(name == GPUS for name, _ in wanted) else PROCESSORS
    return options.resource or default


def past_of(
    options: argparse.Namespace, config: Config, history: "JobTable", places: "NDArray[np.intp]"
) -> "Ints | None":
    """Return what `--walltime model` believes of each row at `places` of the history; None for another walltime.

    It is the median of the user's ended jobs; with --model that model's median, where it predicts a job.
    """
    if options.walltime != "model":
        return None
    import numpy as np

    from gpuwaste.sim.believed_times import UNKNOWN, expected
    from gpuwaste.sim.simulation import BELIEVED_LEVEL

    found = expected(history, BELIEVED_LEVEL)
    if options.model not in {None, "none"}:
        from gpuwaste.cli.policy_commands import bundle_of, replay_progress
        from gpuwaste.cli.programs import load_program

        module = load_program("gpuwaste.models.event_replay", "predict", "this host")
        end = int(history.submit[places[-1]]) + 1
        said = module.expected_walltimes(
            history, bundle_of(options, config), end, f"{BELIEVED_LEVEL:g}", replay_progress()
        )
        found = np.where(said == UNKNOWN, found, said)
    return found[places]


def refused_by(
    options: argparse.Namespace, config: Config, source: "JobSource", places: "NDArray[np.intp]"
) -> "Refused":
    """Return a function for the rows at `places` of the history that policies would have rejected.

    The adviser of `gpuwaste policy replay` decides on every submission, in the order of time, by what was known then.
    """

    def refused() -> "NDArray[np.bool_]":
        from functools import cache

        from gpuwaste.cli.policy_commands import bundle_of, policies_of, replay_progress, site_of
        from gpuwaste.cli.programs import load_program
        from gpuwaste.core.groups import unix_groups

        module = load_program("gpuwaste.models.policy_backtest", "predict", "this host")
        history = source.table
        first, last = (int(history.submit[places[end]]) for end in (0, -1))
        period = module.ReplayPeriod(first, last + 1, "same", site_of(options, config), cache(unix_groups))
        policies = rejecting(policies_of(options, config))
        replayed = module.PolicyReplay(history, policies, period, bundle_of(options, config))
        replayed.run(replay_progress())
        found: NDArray[np.bool_] = replayed.refused[places]
        return found

    return refused


def rejecting(policies: "PolicySet") -> "PolicySet":
    """Return the policies with every one that is not off in the mode `reject`."""
    from gpuwaste.advice.policy.policy_set import PolicySet

    changed = [
        policy if policy.mode == "off" else replace(policy, policy=replace(policy.policy, mode="reject"))
        for policy in policies.policies
    ]
    return PolicySet(changed, policies.hash)


def with_what_ifs(
    document: "SimulationDocument",
    case: "WhatIfCase",
    plays: "Mapping[str, Ints | Placed]",
    wanted: Sequence[tuple[str, str]],
    past: "Ints | None",
    *,
    some: bool = False,
) -> "Counterfactual":
    """Return the answer with every change that was simulated; an interruption keeps those that were done before.

    With `some` a change that no job allows is left out, with a line on stderr, unless it is the only one. Raises
    UsageError, NoDataError, ConfigError.
    """
    from msgspec.structs import replace as struct_replace

    from gpuwaste.sim.counterfactual import Counterfactual, compared
    from gpuwaste.sim.difference import Run

    runs = {name: Run.of(case.trace, play, case.processors) for name, play in plays.items()}
    found = Counterfactual(document, runs)
    progress = SimulationProgress(len(wanted) * len(plays), len(case.trace))
    missing: list[NoDataError] = []
    left_out = missing.append if some else None
    try:
        for latest in compared(document, case, plays, wanted, past=past, progress=progress.step, left_out=left_out):
            found = latest
    except KeyboardInterrupt:
        undone = progress.total - progress.done
        words = f"Interrupted: {undone} of {progress.total} changed runs were not simulated."
        found = Counterfactual(struct_replace(found.document, stopped=words), found.runs)
    finally:
        progress.clear()
    if missing and len(missing) == len(wanted):
        raise missing[-1]
    for error in missing:
        sys.stderr.write(f"left out: {error}\n")
    return found


class SimulationProgress:
    """Counts simulated runs on a terminal's stderr, with their rate and the time left."""

    def __init__(self, total: int, jobs: int, stream: Any = None, now: "Callable[[], float]" = time.monotonic) -> None:
        """`jobs` are those of one run; `now` returns seconds."""
        self.total, self.done = total, 0
        self._jobs, self._stream = jobs, sys.stderr if stream is None else stream
        self._now, self._since = now, now()
        self._shown = False

    def step(self, name: str) -> None:
        """Count a run that is done."""
        self.done += 1
        took = self._now() - self._since
        if took < _MIN_S or not self._stream.isatty():
            return
        left = took / self.done * (self.total - self.done)
        rate = self.done * self._jobs / took
        line = f"{self.done} of {self.total} runs ({name[:30]}), {rate:,.0f} jobs/s, {left:.0f} s left"
        self._stream.write(f"\r{line:<79}")
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            self._stream.write(f"\r{'':<79}\r")
            self._stream.flush()
