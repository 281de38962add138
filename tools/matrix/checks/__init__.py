"""The checks, one file each: what it is called, which plugin slurmctld runs with, and `run`, which raises on failure.

A check leaves nothing behind but ended jobs. They run in the order of ORDER, which keeps the restarts of slurmctld few.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tools.matrix.rig import Rig

ORDER: Final = (
    "load", "verdict", "commands", "modify", "hostile", "requests", "fail_open", "parallel", "advisor", "foreign",
    "lua_verdict", "lua_fail_open", "lua_error",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str
    job_submit: str
    """JobSubmitPlugins while it runs; "" where it chooses itself."""
    run: Callable[[Rig], None]


def all_checks() -> tuple[Check, ...]:
    """Return the checks in their order."""
    modules = [importlib.import_module(f"{__name__}.{name}") for name in ORDER]
    return tuple(Check(module.NAME, module.JOB_SUBMIT, module.run) for module in modules)
