"""The releases of Slurm that we promise, and where each comes from."""

from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Release:
    """One release: `suite` is the Debian suite that has it, "" where it is the host's own Slurm."""

    name: str
    suite: str
    parallel: bool
    """slurmctld takes submissions at the same time (since 23.02)."""
    lua_error_rejects: bool
    """job_submit/lua rejects a job where the script raises an error (since 26.05)."""


RELEASES: Final = (
    Release("22.05", "", parallel=False, lua_error_rejects=False),
    Release("24.11", "trixie", parallel=True, lua_error_rejects=False),
    Release("26.05", "sid", parallel=True, lua_error_rejects=True),
)


def release(name: str) -> Release:
    """Return one release by name. Raises ConfigError."""
    for item in RELEASES:
        if item.name == name:
            return item
    raise ConfigError(f"no release {name!r} in the matrix; there are: {', '.join(item.name for item in RELEASES)}")
