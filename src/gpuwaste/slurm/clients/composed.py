"""The part of a SlurmClient that a second source leaves to Slurm's commands."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.clients.scontrol import RunningJob
from gpuwaste.slurm.formats.slurmd_g import DevicePosition
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Partition, SlurmConfig
from gpuwaste.slurm.site.coordination import AccountPlace


@dataclass(slots=True)
class ComposedClient:
    """Hands to `commands` what is a node's or a site's own, or not told alike by every version of the other source."""

    commands: SlurmClient
    cluster: str = field(default="", kw_only=True)

    def cluster_name(self) -> str:
        """Return the configured name, or ask the commands once."""
        if not self.cluster:
            self.cluster = self.commands.cluster_name()
        return self.cluster

    def config(self) -> SlurmConfig:
        """By the commands: nothing else tells slurm.conf."""
        return self.commands.config()

    def job(self, job_id: int) -> list[RunningJob]:
        """By the commands: up to v0.0.38 slurmrestd tells positions of GPUs without their nodes."""
        return self.commands.job(job_id)

    def jobs(self) -> list[RunningJob]:
        """By the commands, as `job`."""
        return self.commands.jobs()

    def partitions(self) -> list[Partition]:
        """By the commands."""
        return self.commands.partitions()

    def nodes(self) -> list[Node]:
        """By the commands."""
        return self.commands.nodes()

    def admin_levels(self) -> Mapping[str, str]:
        """By the commands."""
        return self.commands.admin_levels()

    def coordinators(self) -> Mapping[str, frozenset[str]]:
        """By the commands."""
        return self.commands.coordinators()

    def account_places(self, accounts: Collection[str]) -> Sequence[AccountPlace]:
        """By the commands."""
        return self.commands.account_places(accounts)

    def site(self, since: int | None = None) -> ClusterModel:
        """By the commands."""
        return self.commands.site(since)

    def device_list(self, node: str) -> list[DevicePosition]:
        """By the commands: slurmd's own knowledge."""
        return self.commands.device_list(node)
