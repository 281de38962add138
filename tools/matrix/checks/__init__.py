"""The checks, one file each: what it is called, which plugin slurmctld runs with, and `run`, which raises on failure.

A check leaves nothing behind but ended jobs. They run in the order of ORDER, which keeps the restarts of slurmctld few.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tools.matrix.rig import Rig

ORDER: Final = (
    "load", "verdict", "commands", "modify", "hostile", "requests", "fail_open", "parallel", "advisor", "foreign",
    "packaged", "lua_verdict", "lua_fail_open", "lua_error",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str
    job_submit: str
    """JobSubmitPlugins while it runs; "" where it chooses itself."""
    run: Callable[[Rig], None]


def checks_named(names: Sequence[str] = ()) -> tuple[Check, ...]:
    """Return the checks with these file names, in the order of ORDER; all of them where none is named."""
    modules = [importlib.import_module(f"{__name__}.{name}") for name in ORDER if not names or name in names]
    return tuple(Check(module.NAME, module.JOB_SUBMIT, module.run) for module in modules)
