"""The files of resources (show/resource.py), found by their names: none is imported for that, nor much else."""

import importlib
import os
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Final

import gpuwaste

_SUFFIX: Final = "_resource.py"


class ResourceFile:
    """A file of resources: its name without the ending, and its module.

    `title` is the first line of its docstring, which is the help of its command where it has one.
    """

    def __init__(self, name: str, module: str, text: str) -> None:
        self.name = name
        self.title = text.partition("\n")[0].strip('"')
        self.has_command = "ReadCommand(" in text
        self._module = module

    def module(self) -> ModuleType:
        """Import the file."""
        return importlib.import_module(self._module)


@cache
def resource_files() -> tuple[ResourceFile, ...]:
    """Return the files of all subjects, by name; nothing of them is imported."""
    found = {file.name: file for root in gpuwaste.__path__ for file in _below(root, "gpuwaste", 2)}
    return tuple(found[name] for name in sorted(found))


def _below(folder: str, package: str, depth: int) -> Iterator[ResourceFile]:
    """Yield those of the folders in a folder, `depth` deep. Without pathlib, whose import a command would feel."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.endswith(_SUFFIX):
                with open(entry.path, encoding="utf-8") as file:  # noqa: PTH123 as above
                    module = f"{package}.{entry.name.removesuffix('.py')}"
                    yield ResourceFile(entry.name.removesuffix(_SUFFIX), module, file.read())
            elif depth and "." not in entry.name and entry.is_dir():
                yield from _below(entry.path, f"{package}.{entry.name}", depth - 1)
