"""Whose jobs a look has, what was not read, and what only an agent can tell: with the figures of the cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from gpuwaste.core.text import harmless
from gpuwaste.core.units import HOUR_S, say_hours
from gpuwaste.show.terminal_cells import local_time
from gpuwaste.slurm.clients.kept_commands import ReadMachine, Viewer
from gpuwaste.views.look.slices import ReadingResult
from gpuwaste.views.look.use import UseInAccounting
from gpuwaste.views.view_query import ViewQuery

_LONGEST: Final = 64


@dataclass(frozen=True, slots=True)
class LookContext:
    """What is known beside the jobs: who looks, the machine, what was not read."""

    viewer: Viewer = field(default_factory=Viewer)
    machine: ReadMachine | None = None
    reading: ReadingResult = field(default_factory=lambda: ReadingResult([], ""))
    unread: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class LookScope:
    """The jobs of a store, in sums; see query look_scope."""

    jobs: int
    users: int
    user: str | None
    accounts: int
    gpu_jobs: int
    unknown_gpus: int
    gpu_s: int

    @classmethod
    def of(cls, asking: ViewQuery) -> Self:
        """Query the sums. Raises StoreError."""
        return cls(**asking.rows("look_scope")[0])

    def has_all_jobs(self, viewer: Viewer) -> bool:
        """Return whether no user's jobs are missing, as far as is known."""
        return not viewer.restricted and (self.users > 1 or viewer.restricted is False)


def whose(scope: LookScope, viewer: Viewer) -> str:
    """Return whose jobs these are: sacct leaves out jobs that it does not show, without an error."""
    if viewer.restricted is False:
        return f"Jobs of all users: {_counted(scope)}."
    if scope.users > 1:
        hidden = f" Slurm hides jobs of others from {_name(viewer.name)} (PrivateData)." if viewer.restricted else ""
        return f"{_counted(scope)}.{hidden}"
    own = f"Jobs of one user only, {_name(scope.user or viewer.name)}: {scope.jobs:,}"
    why = "Slurm hides jobs of others" if viewer.restricted else "Slurm may hide jobs of others"
    return f"{own}. {why} (PrivateData); an operator who runs the same command gets the jobs of all users."


def not_read(around: LookContext, folder: str) -> list[str]:
    """Return a sentence on each part that was not read."""
    sentences = list(around.unread)
    if gaps := around.reading.unread:
        first, last = local_time(gaps[0][0], None), local_time(gaps[-1][1], None)
        parts = "" if len(gaps) == 1 else f", {len(gaps)} parts of it"
        sentences.append(
            f"Accounting from {first} to {last}{parts} was not read: {around.reading.reason}. Run the same command"
            f" again to read the rest into {folder}."
        )
    return sentences


def with_an_agent(scope: LookScope, around: LookContext, use: UseInAccounting, window_s: int) -> list[str]:
    """Return what this cluster would know with an agent on its nodes with GPUs."""
    held = say_hours(scope.gpu_s / HOUR_S)
    if scope.unknown_gpus == scope.jobs:
        return [
            "Accounting does not name the GPUs of jobs: add gres/gpu to AccountingStorageTRES.",
            "An agent records the GPUs of each job from its first hour.",
        ]
    nodes = [] if around.machine is None else [node for node in around.machine.model.nodes if node.gpu_count]
    idle = use.unknown(scope.gpu_s)
    agent = "An agent on the nodes with GPUs records it by job, GPU and cause, and names the line that changes it."
    if not nodes:
        return [f"Jobs held {held} GPU-hours. {idle}", agent]
    gpus, jobs = sum(node.gpu_count for node in nodes), "These jobs" if around.viewer.restricted else "Jobs"
    had = f"{say_hours(gpus * window_s / HOUR_S)} GPU-hours of {_several(gpus, 'GPU')}"
    return [f"{jobs} held {held} of the {had} on {_several(len(nodes), 'node')}. {idle}", agent]


def _counted(scope: LookScope) -> str:
    users, accounts = _several(scope.users, "user"), _several(scope.accounts, "account")
    return f"{_several(scope.jobs, 'job')} of {users} in {accounts}, {scope.gpu_jobs:,} of them with GPUs"


def _several(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _name(user: str) -> str:
    return harmless(user)[:_LONGEST] or "this user"
