"""`python -m gpuwaste.testing.recording.hub --config FILE --tape FILE`: the hub, with Slurm's answers on a tape."""

import argparse
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.config import load_config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.logs import set_up_logging
from gpuwaste.hub.hub import Hub
from gpuwaste.hub.hub_daemon import make_checkers, serve
from gpuwaste.hub.hub_ports import HubPorts
from gpuwaste.hub.server import HubSockets
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.gpu_positions import DevicePosition
from gpuwaste.slurm.site.associations import AccountPlace
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Partition, SlurmConfig
from gpuwaste.slurm.site.machine_events import NodeOutage, PrintedRows, ReservedNodes
from gpuwaste.testing.recording.format import Accounted, RecordedMap, SiteFacts
from gpuwaste.testing.recording.tape import Tape

SETTINGS = ("ClusterName", "SLURM_VERSION", "SelectType", "PrivateData")


class RecordedClient:
    """A SlurmClient whose answers about jobs are recorded."""

    def __init__(self, inner: SlurmClient, tape: Tape, clock: Clock) -> None:
        self._inner = inner
        self._tape = tape
        self._clock = clock
        self._page: tuple[JobRecord, ...] = ()

    def job(self, job_id: int) -> list[RunningJob]:
        """Ask for a job."""
        return self._mapped(job_id, self._inner.job(job_id))

    def jobs(self) -> list[RunningJob]:
        """Ask for all jobs."""
        return self._mapped(None, self._inner.jobs())

    def accounting(self, start: int, end: int) -> Iterator[JobRecord | BadRow]:
        """Yield the window's runs; the page is recorded where it differs from the one before."""
        page: list[JobRecord] = []
        for row in self._inner.accounting(start, end):
            if isinstance(row, JobRecord):
                page.append(row)
            yield row
        if tuple(page) != self._page:
            self._page = tuple(page)
            self._tape.add(Accounted(self._clock.utc_us(), self._page))

    def cluster_name(self) -> str:
        """Ask for the cluster's name."""
        return self._inner.cluster_name()

    def config(self) -> SlurmConfig:
        """Ask for slurm.conf."""
        return self._inner.config()

    def partitions(self) -> list[Partition]:
        """Ask for the partitions."""
        return self._inner.partitions()

    def nodes(self) -> list[Node]:
        """Ask for the nodes."""
        return self._inner.nodes()

    def accounting_backlog(self) -> int:
        """Ask for the queue to slurmdbd."""
        return self._inner.accounting_backlog()

    def admin_levels(self) -> Mapping[str, str]:
        """Ask for the levels."""
        return self._inner.admin_levels()

    def coordinators(self) -> Mapping[str, frozenset[str]]:
        """Ask for the coordinators."""
        return self._inner.coordinators()

    def account_places(self, accounts: Collection[str]) -> Sequence[AccountPlace]:
        """Ask where the accounts are."""
        return self._inner.account_places(accounts)

    def site(self, since: int | None = None) -> ClusterModel:
        """Ask for the whole site."""
        return self._inner.site(since)

    def outages(self, since: int) -> PrintedRows[NodeOutage]:
        """Ask for the outages."""
        return self._inner.outages(since)

    def reservations(self, since: int | None = None) -> PrintedRows[ReservedNodes]:
        """Ask for the reservations."""
        return self._inner.reservations(since)

    def device_list(self, node: str) -> list[DevicePosition]:
        """Ask slurmd."""
        return self._inner.device_list(node)

    def _mapped(self, job_id: int | None, jobs: list[RunningJob]) -> list[RunningJob]:
        self._tape.add(RecordedMap(self._clock.utc_us(), job_id, tuple(jobs)))
        return jobs


def site_facts(slurm: SlurmClient, clock: Clock) -> SiteFacts:
    """Ask Slurm for what the hub needs to know of the site."""
    settings = slurm.config().settings
    return SiteFacts(
        clock.utc_us(),
        {name: settings[name] for name in SETTINGS if name in settings},
        tuple(slurm.partitions()),
        tuple(slurm.nodes()),
        slurm.admin_levels(),
        slurm.coordinators(),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the hub in the foreground until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m gpuwaste.testing.recording.hub", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--tape", type=Path, required=True)
    options = parser.parse_args(argv)
    set_up_logging()
    try:
        config = load_config(options.config)
        clock, tape = SystemClock(), Tape(options.tape)
        slurm = CommandClient(config.common.slurm_conf, config.common.slurm_timeout_s)
        tape.add(site_facts(slurm, clock))
        hub = Hub(config, HubPorts(RecordedClient(slurm, tape, clock), clock, make_checkers(config)))
        serve(hub, HubSockets.open(config.hub))
    except GpuwasteError as error:
        sys.stderr.write(f"hub: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
