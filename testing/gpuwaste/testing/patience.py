"""How long tests wait: as long as the slowest host needs that they run on, since they wait for what happens."""

import os
from typing import Final

PATIENCE: Final = float(os.environ.get("GPUWASTE_TEST_PATIENCE", "1"))
"""How many times as long to wait for anything: where many clusters share few processors, all is as much slower."""


def patient(seconds: float) -> float:
    """Return the seconds to wait here for what takes much less than `seconds` on an idle host."""
    return seconds * PATIENCE
