"""FakeSlurm: a SlurmClient that answers from memory, for tests that need a cluster's facts and no cluster."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpuwaste.core.errors import SlurmError
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob, requests_of
from gpuwaste.slurm.formats.gpu_positions import DevicePosition
from gpuwaste.slurm.site.associations import AccountPlace
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Partition, SlurmConfig
from gpuwaste.slurm.site.live_site import live_model
from gpuwaste.slurm.site.machine_events import NodeOutage, PrintedRows, ReservedNodes
from gpuwaste.slurm.submit.job_request import JobRequest


@dataclass(slots=True)
class FakeSlurm:
    """Set the fields, then pass it where a SlurmClient is asked for.

    `failure` set: every method raises SlurmError with that text; `no_slurmdbd` set: those that read the past of the
    machine do. `rpcs` counts the calls that would reach slurmctld
    or slurmdbd, as CommandClient does.
    """

    cluster: str = "gw"
    settings: dict[str, str] = field(default_factory=dict)
    running: list[RunningJob] = field(default_factory=list)
    partition_list: list[Partition] = field(default_factory=list)
    node_list: list[Node] = field(default_factory=list)
    records: Sequence[JobRecord | BadRow] = ()
    levels: dict[str, str] = field(default_factory=dict)
    account_coordinators: dict[str, frozenset[str]] = field(default_factory=dict)
    places: Sequence[AccountPlace] | None = None  # None: every account with coordinators, in the cluster
    devices: dict[str, list[DevicePosition]] = field(default_factory=dict)
    model: ClusterModel | None = None
    outage_list: Sequence[NodeOutage] = ()
    reservation_list: Sequence[ReservedNodes] = ()
    backlog: int = 0
    failure: str = ""
    no_slurmdbd: str = ""
    rpcs: Counter[str] = field(default_factory=Counter)

    def cluster_name(self) -> str:
        """Return the cluster."""
        self._fail()
        return self.cluster

    def config(self) -> SlurmConfig:
        """Return the settings with ClusterName."""
        self._rpc("scontrol")
        return SlurmConfig({"ClusterName": self.cluster, **self.settings})

    def job(self, job_id: int) -> list[RunningJob]:
        """Return the records of the id, of its array's tasks and of its het components."""
        self._rpc("scontrol")
        return [job for job in self.running if job_id in {job.job_id, job.array_job_id, job.het_job_id}]

    def jobs(self) -> list[RunningJob]:
        """Return all."""
        self._rpc("scontrol")
        return list(self.running)

    def request(self, job_id: int) -> list[JobRequest]:
        """Return the requests of the jobs of the id."""
        return requests_of(self.job(job_id))

    def partitions(self) -> list[Partition]:
        """Return all."""
        self._rpc("scontrol")
        return list(self.partition_list)

    def nodes(self) -> list[Node]:
        """Return all."""
        self._rpc("scontrol")
        return list(self.node_list)

    def accounting_backlog(self) -> int:
        """Return the messages for slurmdbd."""
        self._rpc("sdiag")
        return self.backlog

    def accounting(self, start: int, end: int) -> Iterator[JobRecord | BadRow]:
        """Yield what overlaps the window, and every bad row."""
        self._rpc("sacct")
        for record in self.records:
            if isinstance(record, BadRow) or (record.submit <= end and (record.end is None or record.end >= start)):
                yield record

    def admin_levels(self) -> Mapping[str, str]:
        """Return the levels."""
        self._rpc("sacctmgr")
        return self.levels

    def coordinators(self) -> Mapping[str, frozenset[str]]:
        """Return the coordinators."""
        self._rpc("sacctmgr")
        return self.account_coordinators

    def account_places(self, accounts: Collection[str]) -> Sequence[AccountPlace]:
        """Return those of these accounts."""
        self._rpc("sacctmgr")
        if self.places is None:
            return [AccountPlace(self.cluster, name, "root", "") for name in sorted(accounts)]
        return [place for place in self.places if place.account in accounts]

    def site(self, since: int | None = None) -> ClusterModel:  # noqa: ARG002 the protocol's
        """Return the tables; by default those of a site without nodes."""
        self._rpc("scontrol")
        return self.model or live_model(self.config())

    def outages(self, since: int) -> PrintedRows[NodeOutage]:
        """Return those from then on."""
        self._past()
        return PrintedRows(tuple(one for one in self.outage_list if one.end is None or one.end > since))

    def reservations(self, since: int | None = None) -> PrintedRows[ReservedNodes]:
        """Return those from then on; None: all."""
        if since is None:
            self._rpc("scontrol")
            return PrintedRows(tuple(self.reservation_list))
        self._past()
        return PrintedRows(tuple(one for one in self.reservation_list if one.end > since))

    def device_list(self, node: str) -> list[DevicePosition]:
        """Return the node's GPUs; an unknown node is an error, as with slurmd."""
        self._fail()
        if node not in self.devices:
            raise SlurmError(f"slurmd -G -N {node}: exit code 1: no such node")
        return list(self.devices[node])

    def _past(self) -> None:
        if self.no_slurmdbd:
            raise SlurmError(self.no_slurmdbd)
        self._rpc("sacctmgr")

    def _rpc(self, command: str) -> None:
        self._fail()
        self.rpcs[command] += 1

    def _fail(self) -> None:
        if self.failure:
            raise SlurmError(self.failure)
