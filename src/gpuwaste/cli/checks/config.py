"""The configuration file: which one is used, and whether `gpuwaste config check` finds errors in it."""

from collections.abc import Iterator
from typing import Final

from gpuwaste.cli.check import EVERYWHERE, Check, Status, Surroundings
from gpuwaste.cli.config_check import placed, problems
from gpuwaste.core.config_files import read_layers

PLACE: Final = 20
NAME: Final = "config"
ROLES: Final = EVERYWHERE


def check(around: Surroundings) -> Iterator[Check]:
    """Return which files are used; they can be read, or this check would not run."""
    found = problems(around.config_path, around.config, around.roles)
    layers = read_layers(around.config_path, optional=True)
    for problem in found:
        line = placed(around.config_path, layers, problem)
        mend = "" if line == problem else f"edit {line.removesuffix(f': {problem}')}"  # else it names its own file
        yield Check(NAME, Status.FAIL, problem, mend)
    if found:
        return
    if layers:
        yield Check(NAME, Status.OK, ", ".join(str(layer.path) for layer in layers))
    else:
        yield Check(NAME, Status.WARN, f"{around.config_path} does not exist: the defaults are used")
