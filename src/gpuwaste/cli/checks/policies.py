"""The policies in force, as hub and advisor read them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.advice.policy.policy_loading import load_policies
from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.core.errors import GpuwasteError

PLACE: Final = 85
NAME: Final = "policies"
ROLES: Final = frozenset({Role.HUB, Role.ADVISOR})


def check(around: Surroundings) -> Iterator[Check]:
    """Read them; a fresh install has a directory without any."""
    directory = Path(around.config.advisor.policies_dir)
    try:
        found = load_policies(directory)
    except GpuwasteError as error:
        mend = "run gpuwaste policy check; the previous ones stay in force until a restart"
        yield Check(NAME, Status.FAIL, str(error), mend)
        return
    modes = ", ".join(f"{policy.name} ({policy.mode})" for policy in found.in_force)
    yield Check(NAME, Status.OK, f"{directory}: {modes}, {found.hash[:12]}")
