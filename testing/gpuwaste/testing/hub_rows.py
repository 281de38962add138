"""Rows of hours, batches and jobs as agents and accounting give them to a hub: one of each, changed by keywords."""

from typing import Any

from gpuwaste.ledger.hour import AllocationHour, encode_hour
from gpuwaste.net.batch import Batch, Envelope, encode_batch
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey

AGENT_UID = 900
HOUR = 1_700_000_000 // 3600 * 3600


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


def batch(
    *hours: AllocationHour, protocol: int = 1, node: str = "gpu1", cluster: str = "gw", sent_us: int | None = None
) -> bytes:
    """Return the body of a batch."""
    envelope = Envelope(cluster, node, "boot", "0.1.0", protocol, sent_us)
    return encode_batch(envelope, Batch(tuple(encode_hour(h) for h in hours), "b1"))


def record(job: int, user: str, account: str = "proj1", **more: Any) -> JobRecord:
    """Return a run of half an hour on one GPU."""
    values: dict[str, Any] = {
        "cluster": "gw", "job_id": job, "submit": HOUR - 60, "printed_id": str(job), "user": user, "account": account,
        "partition": "gpu", "start": HOUR, "end": HOUR + 1800, "elapsed_s": 1800, "state": "COMPLETED", "gpus": 1,
        "nodes": "gpu1", "n_nodes": 1, "cpus": 4, "alloc_tres": "cpu=4,gres/gpu=1", "exit_code": 0,
    }  # fmt: skip
    return JobRecord(**{**values, **more})
