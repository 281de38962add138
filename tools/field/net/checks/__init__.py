"""The checks on three hosts, one file each: NAME is what it asserts, `run` raises on failure.

They run in the order of ORDER on the same machines. Each leaves the network whole, the clocks right, the nodes idle.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tools.field.net.hosts import Hosts

ORDER: Final = ("job", "cut", "slow", "partition", "takeover", "ahead", "hour", "logs", "silence")


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    file: str
    name: str
    run: Callable[[Hosts], None]


def checks_named(names: Sequence[str] = ()) -> tuple[Check, ...]:
    """Return the checks with these file names, in the order of ORDER; all of them where none is named."""
    files = [name for name in ORDER if not names or name in names]
    modules = [importlib.import_module(f"{__name__}.{name}") for name in files]
    return tuple(Check(name, module.NAME, module.run) for name, module in zip(files, modules, strict=True))
