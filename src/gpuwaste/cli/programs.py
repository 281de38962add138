"""The daemons, imported only by the command that runs them: a host may be installed without one of them."""

import importlib
from types import ModuleType

from gpuwaste.core.errors import GpuwasteError


def load_program(name: str, extra: str = "hub", host: str = "the hub's host") -> ModuleType:
    """Import a daemon's module. Raises GpuwasteError where this installation lacks it or what it needs."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise GpuwasteError(
            f"{name} cannot be loaded: no module {error.name}: install gpuwaste with its extra [{extra}] on {host}"
        ) from error
