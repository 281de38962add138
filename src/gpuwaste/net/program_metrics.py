"""The metrics that every daemon serves alike: its version, its start, its clock, the room for its state.

They carry no name of the daemon, so that one rule watches all three; Prometheus' own `job` and `instance` tell which.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_BUILD: Final = ("gpuwaste_build_info", "The running version of gpuwaste; always 1.")
_START: Final = ("gpuwaste_start_time_seconds", "When the daemon started, in seconds since the epoch.")
_CLOCK: Final = ("gpuwaste_clock_seconds", "This host's time at the scrape, in seconds since the epoch.")
_FREE: Final = ("gpuwaste_state_free_bytes", "Free space on the file system of state_dir.")
_SIZE: Final = ("gpuwaste_state_size_bytes", "Size of the file system of state_dir.")


class ProgramCollector(Collector):
    """Yields these metrics; the room is absent where there is no state_dir or it cannot be looked at."""

    def __init__(self, version: str, now_us: Callable[[], int], state_dir: Path | None) -> None:
        self._version = version
        self._now_us = now_us
        self._state_dir = state_dir
        self._began_us = now_us()

    def collect(self) -> Iterator[Metric]:
        """Yield what there is now."""
        build = GaugeMetricFamily(*_BUILD, labels=["version"])
        build.add_metric([self._version], 1)
        yield build
        yield GaugeMetricFamily(*_START, self._began_us / 1e6)
        yield GaugeMetricFamily(*_CLOCK, self._now_us() / 1e6)
        if self._state_dir is None:
            return
        try:
            room = shutil.disk_usage(self._state_dir)
        except OSError:
            return
        yield GaugeMetricFamily(*_FREE, room.free)
        yield GaugeMetricFamily(*_SIZE, room.total)

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: registering must not read."""
        yield from ()
