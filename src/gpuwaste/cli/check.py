"""One line of the doctor, and what its checks read."""

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta

from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.codec import convert
from gpuwaste.core.config import Config
from gpuwaste.net.health_types import HealthAnswer
from gpuwaste.slurm.clients.client import SlurmClient


class Status(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Role(StrEnum):
    """The role of a host in gpuwaste; it may have several."""

    AGENT = "agent"
    HUB = "hub"
    ADVISOR = "advisor"
    LOGIN = "login"


EVERYWHERE = frozenset(Role)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor: what was checked, what was found, and how to fix it."""

    name: str
    status: Status
    found: str
    mend: Annotated[str, Meta(description="How to fix it; empty: nothing to do.")] = ""
    figures: Annotated[Mapping[str, float], Meta(description="For monitoring, by label with its unit in the name.")] = (
        field(default_factory=dict)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorDocument:
    """What `gpuwaste doctor --json` prints."""

    document: Literal["doctor"] = "doctor"
    host: str
    roles: Sequence[Role]
    status: Annotated[Status, Meta(description="The worst of the checks.")]
    checks: Sequence[Check]


class AskHub(Protocol):
    """Fetches a document from the hub."""

    def __call__(self, config: Config, path: str) -> object:
        """Return the document at `path`."""
        ...


def no_agent(_config: Config) -> dict[str, Any]:
    """Return the status of an agent of which nothing is known."""
    return {}


@dataclass(frozen=True)
class Surroundings:
    """What the checks read: the configuration, Slurm, the hub, the agent, and the user who runs them."""

    config: Config
    config_path: Path
    slurm: SlurmClient
    ask_hub: AskHub
    user: str  # who runs the checks
    roles: frozenset[Role] = EVERYWHERE
    ask_agent: Callable[[Config], dict[str, Any]] = no_agent
    clock: Clock = field(default_factory=SystemClock)

    def hub_health(self) -> HealthAnswer:
        """Return the hub's health. Raises GpuwasteError."""
        return convert(self.ask_hub(self.config, "/v1/health"), HealthAnswer, "the hub's health")

    @property
    def host(self) -> str:
        """This host's short name."""
        return socket.gethostname().partition(".")[0]

    @cached_property
    def state_dirs(self) -> dict[Role, Path]:
        """The state directories of the services of this host."""
        config = self.config
        every = {
            Role.AGENT: Path(config.agent.state_dir),
            Role.HUB: Path(config.hub.state_dir),
            Role.ADVISOR: Path(config.advisor.state_dir),
        }
        return {role: path for role, path in every.items() if role in self.roles}


def is_there(path: Path) -> bool:
    """Return whether a path exists as far as the caller can see; what they may not see counts as absent."""
    try:
        path.stat()
    except OSError:
        return False
    return True
