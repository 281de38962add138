"""NVML's library. It is loaded but not called: only the agent does that."""

import ctypes
from collections.abc import Iterator
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings

PLACE: Final = 50
NAME: Final = "nvml"
ROLES: Final = frozenset({Role.AGENT})


def check(_around: Surroundings) -> Iterator[Check]:
    """Load NVML's library, as the agent does."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        yield Check(NAME, Status.WARN, str(error), "on a GPU node: install the driver; elsewhere: nothing to do")
        return
    yield Check(NAME, Status.OK, "libnvidia-ml.so.1 can be loaded")
