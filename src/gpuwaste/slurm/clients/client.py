"""SlurmClient: everything that gpuwaste reads from Slurm."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.gpu_positions import DevicePosition
from gpuwaste.slurm.site.associations import AccountPlace
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Partition, SlurmConfig
from gpuwaste.slurm.site.machine_events import NodeOutage, PrintedRows, ReservedNodes
from gpuwaste.slurm.submit.job_request import JobRequest


class SlurmClient(Protocol):
    """One cluster. Every method may block up to the adapter's timeout and raises SlurmError or ParseError."""

    def cluster_name(self) -> str:
        """Return ClusterName, queried once."""
        ...

    def config(self) -> SlurmConfig:
        """Return slurm.conf as slurmctld runs it."""
        ...

    def job(self, job_id: int) -> list[RunningJob]:
        """Return the records of one job: several for the first id of an array or a het job, none if unknown."""
        ...

    def jobs(self) -> list[RunningJob]:
        """Return every job in slurmctld's memory, pending and just ended ones included."""
        ...

    def partitions(self) -> list[Partition]:
        """Return the partitions, hidden ones included."""
        ...

    def nodes(self) -> list[Node]:
        """Return the nodes."""
        ...

    def accounting(self, start: int, end: int) -> Iterator[JobRecord | BadRow]:
        """Yield the runs that overlap [start, end], UTC seconds; an error may be raised after some rows."""
        ...

    def admin_levels(self) -> Mapping[str, str]:
        """Return user -> None, Operator or Administrator."""
        ...

    def coordinators(self) -> Mapping[str, frozenset[str]]:
        """Return account -> its coordinators, in any cluster."""
        ...

    def account_places(self, accounts: Collection[str]) -> Sequence[AccountPlace]:
        """Return the associations of these accounts in every cluster of slurmdbd."""
        ...

    def site(self, since: int | None = None) -> ClusterModel:
        """Return the complete site; `since` (UTC seconds): with the outages that slurmdbd has from then on.

        Raises ConfigError too, for a site that no scheduler could run.
        """
        ...

    def outages(self, since: int) -> PrintedRows[NodeOutage]:
        """Return the outages of nodes that slurmdbd has from `since` on, UTC seconds."""
        ...

    def reservations(self, since: int | None = None) -> PrintedRows[ReservedNodes]:
        """Return the reservations that slurmdbd has from `since` on; None: those in slurmctld."""
        ...

    def accounting_backlog(self) -> int:
        """Return how many messages slurmctld has not handed to slurmdbd yet."""
        ...

    def device_list(self, node: str) -> list[DevicePosition]:
        """Return the node's GPUs in the order of positions, from this host's slurmd, not from slurmctld."""
        ...


class HistoryClient(SlurmClient, Protocol):
    """A client that also reads the request of a single job: for reading history and for predictions."""

    def request(self, job_id: int) -> list[JobRequest]:
        """Return the request of a job in slurmctld's memory; several for an array or a het job, none if unknown."""
        ...


@dataclass(slots=True)
class ComposedClient:
    """Leaves to `commands` what belongs to a node or a site, or differs between versions of the other source."""

    commands: SlurmClient
    cluster: str = field(default="", kw_only=True)

    def cluster_name(self) -> str:
        """Return the configured name, or query the commands once."""
        if not self.cluster:
            self.cluster = self.commands.cluster_name()
        return self.cluster

    def config(self) -> SlurmConfig:
        """By the commands: nothing else returns slurm.conf."""
        return self.commands.config()

    def job(self, job_id: int) -> list[RunningJob]:
        """By the commands: up to v0.0.38 slurmrestd reports positions of GPUs without their nodes."""
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

    def accounting_backlog(self) -> int:
        """By the commands."""
        return self.commands.accounting_backlog()

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

    def outages(self, since: int) -> PrintedRows[NodeOutage]:
        """By the commands."""
        return self.commands.outages(since)

    def reservations(self, since: int | None = None) -> PrintedRows[ReservedNodes]:
        """By the commands."""
        return self.commands.reservations(since)

    def device_list(self, node: str) -> list[DevicePosition]:
        """By the commands: only slurmd knows them."""
        return self.commands.device_list(node)
