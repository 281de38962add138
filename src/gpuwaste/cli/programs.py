"""The daemons, imported only by the command that runs them: a host may be installed without one of them."""

import importlib
from types import ModuleType
from typing import Final

from gpuwaste.core.errors import GpuwasteError

_PACKAGES: Final = {"predict": "models"}
"""Rooms whose package, gpuwaste-NAME, has another name than theirs."""


def load_program(name: str, extra: str = "hub", host: str = "the hub's host") -> ModuleType:
    """Import a daemon's module. Raises GpuwasteError where this installation lacks it or what it needs.

    The line names the RPM, and the extra for an installation by pip.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        room = name.split(".")[1]
        raise GpuwasteError(
            f"{name} cannot be loaded: no module {error.name}: install gpuwaste-{_PACKAGES.get(room, room)},"
            f" or gpuwaste{f' with its extra [{extra}]' if extra else ''}, on {host}"
        ) from error
