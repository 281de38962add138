"""The daemons, imported only by the command that runs them, and what to install where a package is missing."""

import gc
import importlib
import re
import sys
from types import ModuleType
from typing import Final

from gpuwaste.core.errors import GpuwasteError

_PACKAGES: Final = {"predict": "models"}
"""Rooms whose package, gpuwaste-NAME, is named differently."""
_PARTS: Final = frozenset({"actor", "advisor", "agent", "estimate", "hub", "models", "sim"})
"""Names of the packages gpuwaste-NAME that are optional on a host."""


def load_program(name: str, extra: str = "hub", host: str = "the hub's host") -> ModuleType:
    """Import a daemon's module. Raises GpuwasteError where this installation lacks it or its dependencies.

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

    What is imported lives as long as the process: checking it for garbage meanwhile, and again at each full
    collection, takes up to a third of a daemon's start.
    """
    gc.disable()
    try:
        return load_program(name, extra, host)
    finally:
        gc.freeze()
        gc.enable()


def missing_words(error: ImportError) -> str:
    """Return what cannot be imported, and what to install; "" where it is a bug in gpuwaste."""
    name = error.name or ""
    package, _, rest = name.partition(".")
    if package == "gpuwaste":
        room = rest.partition(".")[0]
        own = _PACKAGES.get(room, room)
        what = f"install gpuwaste-{own}" if own in _PARTS else "the installation is incomplete: install gpuwaste again"
        return f"no module {name} on this host: {what}" if isinstance(error, ModuleNotFoundError) and room else ""
    if not package:
        return ""
    extras = _extras_with(package)
    wanted = " or ".join(f"gpuwaste[{extra}]" for extra in extras) or package
    return f"the Python package {package} cannot be loaded: {error}: install {wanted} for {sys.executable}"


def _extras_with(package: str) -> list[str]:
    """Return the extras of gpuwaste that require a package, by its name; none where every installation needs it."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("gpuwaste") or []
    except PackageNotFoundError:
        return []
    name = re.escape(package).replace("_", "[-_.]")
    wanted = re.compile(name + r"\b(?![-_.]).*extra == ['\"]([\w-]+)", re.IGNORECASE)
    return [found[1] for line in lines if (found := wanted.match(line))]
