"""What a partition gives a job that did not say: the default partition and the default time limit."""

from collections.abc import Sequence
from dataclasses import replace

from gpuwaste.core.request import JobRequest
from gpuwaste.slurm.site import Partition


def with_defaults(request: JobRequest, partitions: Sequence[Partition]) -> JobRequest:
    """Fill in partition and limit; of several partitions named the first counts, since the job may run in any."""
    name = request.partition or next((p.name for p in partitions if p.default), "")
    found = next((p for p in partitions if p.name == name.split(",")[0]), None)
    limit = request.time_limit_s
    if limit is None and found is not None:
        limit = found.default_time_s or found.max_time_s
    return replace(request, partition=name, time_limit_s=limit)
