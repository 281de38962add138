"""A machine's file in any known format: the format's module reads it, model_checks.py checks it."""

from pathlib import Path
from typing import Final, Protocol

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import open_plain
from gpuwaste.slurm.site import machine_conf, machine_toml
from gpuwaste.slurm.site.cluster_model import ClusterModel
from gpuwaste.slurm.site.model_checks import DescribedModel, checked

_HEAD_B: Final = 1 << 16


class MachineFormat(Protocol):
    """A module that reads one format."""

    TITLE: str

    def reads(self, path: Path, head: bytes) -> bool:
        """Return whether a file is of this format, by its path and first bytes; a directory has no bytes."""
        ...

    def read(self, path: Path) -> DescribedModel:
        """Return what the file describes."""
        ...


FORMATS: Final[tuple[MachineFormat, ...]] = (machine_conf, machine_toml)


def read_machine(path: Path) -> ClusterModel:
    """Return the model that a file or a directory describes.

    Raises ConfigError, which names file and line, for a file that cannot be read, is of no known format, or describes
    an impossible machine.
    """
    head = b""
    if not path.is_dir():
        try:
            with open_plain(path) as file:
                head = file.read(_HEAD_B)
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"{path}: cannot be read: {said or error}") from error
    for found in FORMATS:
        if found.reads(path, head):
            return checked(found.read(path))
    titles = "; ".join(one.TITLE for one in FORMATS)
    raise ConfigError(f"{path}: not a description of a machine: expected {titles}")
