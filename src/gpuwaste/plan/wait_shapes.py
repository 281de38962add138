"""The shapes of requests whose waits the hub tells advisors: partition, type of GPU, number of GPUs, time limit."""

from collections.abc import Iterator
from typing import Final

from gpuwaste.core.errors import NoDataError
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.plan.live_queue import LiveQueue
from gpuwaste.plan.start_time.queue import QueuedRequest
from gpuwaste.slurm.submit.request import JobRequest

LIMITS_S: Final = (HOUR_S, 2 * HOUR_S, 4 * HOUR_S, 12 * HOUR_S, DAY_S, 3 * DAY_S, 7 * DAY_S)
SIZES: Final = (1, 2, 4, 8, 16, 32)
MAX_SHAPES: Final = 504  # 12 partitions with one type of GPU; each costs a look in every play of the queue


def wait_shapes(live: LiveQueue) -> list[tuple[JobRequest, QueuedRequest]]:
    """Return at most MAX_SHAPES requests of a CPU for each GPU, with their rows in this queue; none that cannot run."""
    found: list[tuple[JobRequest, QueuedRequest]] = []
    for request in _requests(live):
        try:
            found.append((request, live.candidate(request)))
        except NoDataError:
            continue
        if len(found) == MAX_SHAPES:
            break
    return found


def _requests(live: LiveQueue) -> Iterator[JobRequest]:
    types: dict[str, set[str]] = {}
    for pool in live.pools:
        for partition in pool.key.partitions if pool.gpus else ():
            types.setdefault(partition, {""}).update(pool.key.gpu_types)
    for partition in sorted(types):
        for gpu_type in sorted(types[partition]):
            for gpus in SIZES:
                for limit_s in LIMITS_S:
                    yield JobRequest(
                        user="",
                        submit=live.queue.now,
                        partition=partition,
                        gpus=gpus,
                        gpu_type=gpu_type,
                        cpus=gpus,
                        time_limit_s=limit_s,
                    )
