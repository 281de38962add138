"""A machine's file, whatever its format: the format's file reads it, checked.py judges it."""

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import open_plain
from gpuwaste.sim.cluster import ClusterModel
from gpuwaste.sim.clusters import formats
from gpuwaste.sim.clusters.checked import checked
from gpuwaste.sim.clusters.described import DescribedCluster

_HEAD_B: Final = 1 << 16


class Format(Protocol):
    """A file of formats/."""

    TITLE: str

    def reads(self, path: Path, head: bytes) -> bool:
        """Tell whether a file is of this format."""
        ...

    def read(self, path: Path) -> DescribedCluster:
        """Return what the file describes."""
        ...


@cache
def all_formats() -> MappingProxyType[str, Format]:
    """Return the formats by name, which is their file's."""
    names = sorted(module.name for module in pkgutil.iter_modules(formats.__path__))
    return MappingProxyType({name: importlib.import_module(f"{formats.__name__}.{name}") for name in names})


def read_machine(path: Path) -> ClusterModel:
    """Return the model that a file or a directory describes.

    Raises ConfigError, which names file and line, for what cannot be read, is of no known format, or describes no
    machine that can be.
    """
    head = b""
    if not path.is_dir():
        try:
            with open_plain(path) as file:
                head = file.read(_HEAD_B)
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"{path}: cannot be read: {said or error}") from error
    for found in all_formats().values():
        if found.reads(path, head):
            return checked(found.read(path))
    titles = "; ".join(one.TITLE for one in all_formats().values())
    raise ConfigError(f"{path}: not a description of a machine: expected {titles}")
