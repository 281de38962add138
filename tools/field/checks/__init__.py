"""The checks, one file each: NAME is what it asserts, `run` raises on failure.

They run in the order of ORDER on one machine: those that change nothing first, upgrade and removal last. Each leaves
the site as it was, but for those last ones, which make what they need themselves.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tools.field.lab import Lab

ORDER: Final = (
    "units", "doctor", "page", "job", "output", "devices", "kill", "watchdog", "configuration", "restarts", "reboot",
    "logs", "upgrade", "refused", "removal", "purge", "silence",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    file: str
    name: str
    run: Callable[[Lab], None]


def checks_named(names: Sequence[str] = ()) -> tuple[Check, ...]:
    """Return the checks with these file names, in the order of ORDER; all of them where none is named."""
    files = [name for name in ORDER if not names or name in names]
    modules = [importlib.import_module(f"{__name__}.{name}") for name in files]
    return tuple(Check(name, module.NAME, module.run) for name, module in zip(files, modules, strict=True))
