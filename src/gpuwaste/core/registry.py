"""Discovery of files: the modules of a package, the files of resources, the files of rooms.

To add one, add a file; nothing else lists it.
"""

import importlib
import os
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeVar

import gpuwaste

_T = TypeVar("_T")
_SUFFIX: Final = ".py"
_RESOURCE: Final = "_resource.py"


class ModuleRegistry(Mapping[str, _T]):
    """Modules that follow the Protocol `_T`, sorted by name; those whose name begins with _ are helpers of others.

    Names are read from the folder. A module is imported at first use, so that a command imports only what it uses.
    For any thread.
    """

    def __init__(self, package: ModuleType | str, *exposes: str, packages: bool = False) -> None:
        """`exposes` are the names that each module has to define; with `packages` folders are modules, too."""
        self._package: Final = package if isinstance(package, str) else package.__name__
        self._exposes: Final = exposes
        self._packages: Final = packages
        self._names: tuple[str, ...] = ()
        self._loaded: dict[str, _T] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the modules; none is imported."""
        if not self._names:
            folders = import_module(self._package).__path__
            files = ((folder, file) for folder in folders for file in os.listdir(folder) if file[0] != "_")  # noqa: PTH208 pathlib costs start-up
            self._names = tuple(sorted(file.removesuffix(_SUFFIX) for folder, file in files if self._is(folder, file)))
        return self._names

    def _is(self, folder: str, file: str) -> bool:
        package = self._packages and os.path.exists(f"{folder}/{file}/__init__.py")  # noqa: PTH110 as above
        return file.endswith(_SUFFIX) or package

    def __getitem__(self, name: str) -> _T:
        """Return a module. Raises KeyError for one that does not exist, ImportError for one that lacks a name."""
        try:
            return self._loaded[name]
        except KeyError:
            if name not in self.names:
                raise
        module: Any = import_module(f"{self._package}.{name}")
        if missing := [exposed for exposed in self._exposes if not hasattr(module, exposed)]:
            raise ImportError(
                f"{module.__name__} does not define {', '.join(missing)}: every other file in its folder does"
            )
        return self._loaded.setdefault(name, module)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def ordered_by(self, exposed: str) -> dict[str, _T]:
        """Return the modules in the order of a number that each defines, then of their names."""
        return dict(sorted(self.items(), key=lambda item: (getattr(item[1], exposed), item[0])))


class ResourceFile:
    """A file of resources: its name without the ending, and its module.

    `about` is its docstring, the help of its command if it has one, and `title` the first line of that. It `has_reads`
    that a terminal can print: as a command of the file's name, or as actions of another command.
    """

    def __init__(self, name: str, module: str, text: str) -> None:
        self.name = name
        self.about = text.split('"""', 2)[1].strip()
        self.title = self.about.partition("\n")[0]
        self.has_reads = "ReadCommand(" in text
        self.is_command = self.has_reads and "action=" not in text
        self._module = module

    def module(self) -> ModuleType:
        """Import the file."""
        return importlib.import_module(self._module)


@cache
def resource_files() -> tuple[ResourceFile, ...]:
    """Return the files of all subjects, by name; none is imported."""
    found = {file.name: file for root in gpuwaste.__path__ for file in _below(root, "gpuwaste", 2)}
    return tuple(found[name] for name in sorted(found))


def _below(folder: str, package: str, depth: int) -> Iterator[ResourceFile]:
    """Yield the resource files below a folder, `depth` deep. Without pathlib, whose import would slow commands."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.endswith(_RESOURCE):
                with open(entry.path, encoding="utf-8") as file:  # noqa: PTH123 as above
                    module = f"{package}.{entry.name.removesuffix('.py')}"
                    yield ResourceFile(entry.name.removesuffix(_RESOURCE), module, file.read())
            elif depth and "." not in entry.name and entry.is_dir():
                yield from _below(entry.path, f"{package}.{entry.name}", depth - 1)
