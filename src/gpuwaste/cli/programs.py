"""The daemons, imported only by the command that runs them: a host may be installed without one of them."""

import gc
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


def load_daemon(name: str, extra: str = "hub", host: str = "the hub's host") -> ModuleType:
    """Import the module of a daemon that this process becomes. Raises GpuwasteError as `load_program` does.

    What is imported lives as long as the process: to look for garbage in it meanwhile, and again at each full
    collection, takes up to a third of a daemon's start.
    """
    gc.disable()
    try:
        return load_program(name, extra, host)
    finally:
        gc.freeze()
        gc.enable()
