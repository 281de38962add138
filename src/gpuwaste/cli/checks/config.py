"""The configuration file: which one is used, and whether `gpuwaste config check` finds errors in it."""

from collections.abc import Iterator
from typing import Final

from gpuwaste.cli.check import EVERYWHERE, Check, Status, Surroundings
from gpuwaste.cli.config_check import problems

PLACE: Final = 20
NAME: Final = "config"
ROLES: Final = EVERYWHERE


def check(around: Surroundings) -> Iterator[Check]:
    """Return which file is used; that it can be read is proven by having come here."""
    found = problems(around.config_path, around.config, around.roles)
    for problem in found:
        yield Check(NAME, Status.FAIL, problem, f"edit {around.config_path}")
    if found:
        return
    if around.config_path.exists():
        yield Check(NAME, Status.OK, str(around.config_path))
    else:
        yield Check(NAME, Status.WARN, f"{around.config_path} does not exist: the defaults are used")
