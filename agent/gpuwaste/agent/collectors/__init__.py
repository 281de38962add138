"""One collector per file; a failure affects only that collector. Imports core and slurm.

A module of this package whose name does not begin with an underscore is a collector. It declares `KIND` ("gpu",
"profile", "host" or "package") and `create(settings)`, and is found without registration.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpuwaste.agent.bounded_calls import LIMIT_S
from gpuwaste.agent.facts.device_cgroup import CGROUP_ROOT
from gpuwaste.agent.readings import GpuCollector, HostCollector, PackageCollector, ProfileCollector
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.registry import ModuleRegistry


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """The settings that a collector may need; values, not files."""

    clock: Clock
    node: str
    mig_minors: Path
    spool_dir: Path  # slurmd's
    dcgm_url: str = ""
    pcp_url: str = "http://127.0.0.1:44322"  # pmproxy's own port
    cgroup_root: Path = CGROUP_ROOT
    proc_root: Path = Path("/proc")
    sys_root: Path = Path("/sys")
    scan_limit_s: float = LIMIT_S  # how long to wait for a library on a separate thread


COLLECTORS: Final[ModuleRegistry[Any]] = ModuleRegistry(__name__, "KIND", "create")
"""The collectors that are installed."""


@dataclass(slots=True)
class Collectors:
    """The collectors of this agent, GPU collectors in order of preference."""

    gpu: list[GpuCollector] = field(default_factory=list)
    host: list[HostCollector] = field(default_factory=list)
    profile: list[ProfileCollector] = field(default_factory=list)
    package: list[PackageCollector] = field(default_factory=list)


def check_names(names: Sequence[str]) -> None:
    """Raise ConfigError for a name that is not a collector."""
    for name in names:
        if name not in COLLECTORS:
            raise ConfigError(f"[agent] collectors: {name!r} is not one of {', '.join(COLLECTORS)}")


def create_collectors(names: Sequence[str], settings: CollectorSettings) -> Collectors:
    """Create the named collectors, in that order. Raises ConfigError for a name that is not a collector."""
    check_names(names)
    made = Collectors()
    for name in names:
        module = COLLECTORS[name]
        collector = module.create(settings)
        getattr(made, module.KIND).append(collector)
    return made
