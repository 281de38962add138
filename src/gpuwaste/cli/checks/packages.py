"""The interpreter and the Python packages that this host's daemons import."""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from gpuwaste.cli.check import EVERYWHERE, Check, Role, Status, Surroundings

PLACE: Final = 15
NAME: Final = "packages"
ROLES: Final = EVERYWHERE
_EXTRAS: Final = {
    Role.AGENT: frozenset({""}),
    Role.HUB: frozenset({"", "hub"}),
    Role.ADVISOR: frozenset({"", "predict"}),
    Role.LOGIN: frozenset({""}),
}
_ONE: Final = re.compile(r"""([\w.-]+)\s*(?:==\s*([\w.]+))?[^;]*(?:;\s*extra\s*==\s*["'](\w+)["'])?""")


def check(around: Surroundings) -> Iterator[Check]:
    """Check each package, and the exact version where ours requires one."""
    extras = {extra for role in around.roles for extra in _EXTRAS[role]}
    wrong, count = [], 0
    for line in requires("gpuwaste") or ():
        found = _ONE.fullmatch(line.strip())
        if found is None or (found[3] or "") not in extras:
            continue
        count += 1
        wrong += _wrong(found[1], found[2])
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    if wrong:
        yield Check(
            NAME,
            Status.FAIL,
            f"{python}; {', '.join(wrong)}",
            f"install gpuwaste again, with its extras {', '.join(sorted(extras - {''})) or 'none'}",
        )
    else:
        yield Check(NAME, Status.OK, f"{python}, {count} packages for {', '.join(sorted(around.roles))}")


def _wrong(name: str, wanted: str | None) -> list[str]:
    try:
        there = version(name)
    except PackageNotFoundError:
        return [f"{name} is missing"]
    return [f"{name} is {there}, not {wanted}"] if wanted and there != wanted else []
