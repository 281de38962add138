"""How often garbage is collected in a process that judges thousands of runs for one answer."""

import gc
from typing import Final

_YOUNG: Final = 20_000  # more objects than at the last collection; Python says 700
_OLDER: Final = 20


def collect_seldom() -> None:
    """Leave alone what is there now, and look at new objects seldom.

    What was imported lives as long as the process. A report's objects live until it is sent and have no cycles: to go
    through all of them with every 700 more takes a tenth of its time, and finds nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _OLDER, _OLDER)
