"""ModuleRegistry: the modules of one package by name. Whoever adds one adds a file; nothing else lists it."""

import os
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeVar

_T = TypeVar("_T")
_SUFFIX: Final = ".py"


class ModuleRegistry(Mapping[str, _T]):
    """Modules that follow the Protocol `_T`, sorted by name; those whose name begins with _ are helpers of others.

    Names are read from the folder. A module is imported when it is first asked for, so that a command pays only for
    what it uses. Any thread.
    """

    def __init__(self, package: ModuleType | str, *exposes: str) -> None:
        """`exposes` are the names that each module has to define."""
        self._package: Final = package if isinstance(package, str) else package.__name__
        self._exposes: Final = exposes
        self._names: tuple[str, ...] = ()
        self._loaded: dict[str, _T] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the modules; none is imported."""
        if not self._names:
            folders = import_module(self._package).__path__
            files = (file for folder in folders for file in os.listdir(folder))  # noqa: PTH208 pathlib costs start-up
            self._names = tuple(
                sorted(file.removesuffix(_SUFFIX) for file in files if file.endswith(_SUFFIX) and file[0] != "_")
            )
        return self._names

    def __getitem__(self, name: str) -> _T:
        """Return a module. Raises KeyError for one that is not there, ImportError for one that lacks a name."""
        try:
            return self._loaded[name]
        except KeyError:
            if name not in self.names:
                raise
        module: Any = import_module(f"{self._package}.{name}")
        if missing := [exposed for exposed in self._exposes if not hasattr(module, exposed)]:
            raise ImportError(f"{module.__name__} does not define {', '.join(missing)}: each file beside it does")
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
