"""The files of resources (show/resource.py), found by their names: none is imported for that, nor much else."""

import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

import gpuwaste

_SUFFIX: Final = "_resource.py"
_PLACES: Final = (f"*/*{_SUFFIX}", f"*/*/*{_SUFFIX}")


@dataclass(frozen=True)
class ResourceFile:
    """A file of resources: its name without the ending, and its module.

    `title` is the first line of its docstring, which is the help of its command where it has one.
    """

    name: str
    path: str
    title: str
    has_command: bool

    def module(self) -> ModuleType:
        """Import the file."""
        return importlib.import_module(self.path)


@cache
def resource_files() -> tuple[ResourceFile, ...]:
    """Return the files of all subjects, by name; nothing of them is imported."""
    roots = dict.fromkeys(map(Path, gpuwaste.__path__))
    files = [_file(root, path) for root in roots for place in _PLACES for path in root.glob(place)]
    return tuple(sorted(files, key=lambda file: file.name))


def _file(root: Path, path: Path) -> ResourceFile:
    text = path.read_text(encoding="utf-8")
    module = ".".join(("gpuwaste", *path.relative_to(root).with_suffix("").parts))
    title = text.partition("\n")[0].strip('"')
    return ResourceFile(path.name.removesuffix(_SUFFIX), module, title, "ReadCommand(" in text)
