"""A clock that a test moves, and the rows and jobs that the tests of the hub send and store."""

import threading
from typing import Any

from gpuwaste.core.clock import SystemClock
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.net.batch import Batch, Envelope, encode_batch, encode_hour
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.run import RunKey

AGENT_UID = 900
HOUR = 1_700_000_000 // 3600 * 3600


class FakeClock:
    """A clock that a test moves."""

    def __init__(self, now_s: int = 1_700_000_000) -> None:
        self._us = now_s * 1_000_000

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._us += int(seconds * 1e6)

    def utc_us(self) -> int:
        """Return the time."""
        return self._us

    def mono_us(self) -> int:
        """Return the time."""
        return self._us

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Pass the time at once."""
        self.advance(seconds)
        return stop.is_set()


class ShiftedClock(SystemClock):
    """The machine's clocks, with the wall clock set to another time."""

    def __init__(self, now_s: int) -> None:
        self._ahead_us = now_s * 1_000_000 - super().utc_us()

    def utc_us(self) -> int:
        """Return the time."""
        return super().utc_us() + self._ahead_us


def hour(job: int = 7, *, seq: int = 1, final: bool = False, node: str = "gpu1", **more: Any) -> AllocationHour:
    """Return a row of half an hour at 50 %."""
    values: dict[str, Any] = {
        "run_key": RunKey("gw", job, HOUR),
        "node": node,
        "gpu_uuid": "GPU-a",
        "hour_utc": HOUR,
        "seq": seq,
        "t0_ms": HOUR * 1000,
        "t1_ms": HOUR * 1000 + 1_800_000,
        "final": final,
        "util_ms": {50: 1_800_000},
    }
    return AllocationHour(**{**values, **more})


def batch(*hours: AllocationHour, protocol: int = 1, node: str = "gpu1", cluster: str = "gw") -> bytes:
    """Return the body of a batch."""
    envelope = Envelope(cluster, node, "boot", "0.1.0", protocol)
    return encode_batch(envelope, Batch(tuple(encode_hour(h) for h in hours), "b1"))


def record(job: int, user: str, account: str = "proj1", **more: Any) -> JobRecord:
    """Return a run of half an hour on one GPU."""
    values: dict[str, Any] = {
        "cluster": "gw", "job_id": job, "submit": HOUR - 60, "printed_id": str(job), "user": user, "account": account,
        "partition": "gpu", "start": HOUR, "end": HOUR + 1800, "elapsed_s": 1800, "state": "COMPLETED", "gpus": 1,
        "nodes": "gpu1", "n_nodes": 1, "cpus": 4, "alloc_tres": "cpu=4,gres/gpu=1", "exit_code": 0,
    }  # fmt: skip
    return JobRecord(**{**values, **more})
