"""What a site's partitions give a job without these options: the default partition, its time limit, whole nodes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Self

from gpuwaste.slurm.site.cluster_model import Partition, SlurmConfig
from gpuwaste.slurm.submit.job_request import JobRequest

_NO_CONFIG: Final = SlurmConfig({})


def whole_node_partitions(partitions: Iterable[Partition], config: SlurmConfig) -> frozenset[str]:
    """Return the names of the partitions whose jobs get whole nodes: all of them with select/linear."""
    return frozenset(partition.name for partition in partitions if config.linear or partition.whole_nodes)


@dataclass(frozen=True, slots=True)
class SiteDefaults:
    """The default partition, the limits (seconds) of jobs that name none, the partitions that give whole nodes."""

    partition: str = ""
    limits_s: Mapping[str, int] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()

    @classmethod
    def of(cls, partitions: Iterable[Partition], config: SlurmConfig = _NO_CONFIG) -> Self:
        """Return the defaults of these partitions; without slurm.conf, select/linear is not detected."""
        found = list(partitions)
        limits_s = {p.name: limit for p in found if (limit := p.default_time_s or p.max_time_s)}
        default = next((p.name for p in found if p.default), "")
        return cls(default, limits_s, whole_node_partitions(found, config))

    def completed(self, request: JobRequest) -> JobRequest:
        """Return a request with its missing values filled in; of several partitions the first one's limit counts."""
        partition = request.partition or self.partition
        limit, whole = request.time_limit_s, request.whole_node
        names = partition.split(",")
        if limit is None:
            limit = self.limits_s.get(names[0])
        if not whole and not self.whole.isdisjoint(names):
            whole = True
        if (partition, limit, whole) == (request.partition, request.time_limit_s, request.whole_node):
            return request
        return replace(request, partition=partition, time_limit_s=limit, whole_node=whole)


NO_DEFAULTS: Final = SiteDefaults()
