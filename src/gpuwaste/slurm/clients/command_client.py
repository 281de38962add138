"""CommandClient: the SlurmClient that runs Slurm's own commands."""

import json
import os
import re
import secrets
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError, ParseError, SlurmError
from gpuwaste.core.text import decoded, storable
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow, parse_sacct, sacct_argv, sacct_fields
from gpuwaste.slurm.clients.command import CommandError, Output, check, run_command, stream_lines
from gpuwaste.slurm.clients.slurmctld_jobs import BadRecord, RunningJob, parse_job, parse_jobs, requests_of
from gpuwaste.slurm.formats.gpu_positions import DevicePosition, parse_slurmd_g
from gpuwaste.slurm.formats.list_conf import asked_places, existing_conf, private_conf, reasons, release_of
from gpuwaste.slurm.formats.slurm_times import format_time
from gpuwaste.slurm.site import associations
from gpuwaste.slurm.site.associations import EVENT, AccountPlace, Row
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Partition, SlurmConfig
from gpuwaste.slurm.site.live_site import live_model
from gpuwaste.slurm.site.machine_events import (
    RESERVATION,
    NodeOutage,
    PrintedRows,
    ReservedNodes,
    parse_events,
    parse_reserved,
    parse_shown_reservations,
)
from gpuwaste.slurm.site.site_fields import parse_config, parse_nodes, parse_partitions, records
from gpuwaste.slurm.submit.job_request import JobRequest

_NO_NAMES: Final = log_event.warning(
    "job-names-unavailable: cannot read job names from squeue: {error}",
    "squeue did not answer while a record of `scontrol show job` was ambiguous: that job is read again later.",
)
_AMBIGUOUS: Final = log_event.warning(
    "job-record-ambiguous: a record of scontrol cannot be read: {reason}{again}",
    "Often the job's name or comment looks like fields of Slurm. The GPUs of that job are unknown to this source. "
    "Report it with `scontrol show job -d ID`.",
)
_BACKLOG: Final = re.compile(r"^DBD Agent queue size:\s{0,20}([0-9]{1,9})$", re.MULTILINE)
_SHOW: Final = ("scontrol", "--all", "--details", "show")
_KEPT_VARIABLES: Final = ("PATH", "HOME", "LD_LIBRARY_PATH", "SLURM_CONF")
_RPC_COMMANDS: Final = frozenset({"scontrol", "squeue", "sacct", "sacctmgr", "sshare"})
_ACCOUNTS: Final = 400  # per argument, which may have 128 KiB: names have 255 bytes at most
_LATER: Final = "now+520weeks"  # the end of a window with all future reservations
_MAX_ASKED_AGAIN: Final = 16  # rejected records that are queried one by one


def new_delimiter() -> bytes:
    """Return a column separator that nobody can have put into a name."""
    return f"\x1f{secrets.token_hex(8)}\x1f".encode()


@dataclass(slots=True)
class CommandClient:
    """Runs the commands with a clean environment, UTC and epoch times.

    `path` is searched before PATH. `rpcs` counts the calls that reach slurmctld or slurmdbd, by command.
    """

    slurm_conf: str = ""
    timeout_s: float = 20.0
    max_output_b: int = 512 * 1024**2
    path: str = ""
    rpcs: Counter[str] = field(default_factory=Counter)
    _cluster: str = ""
    _sacct_fields: tuple[str, ...] = ()

    def cluster_name(self) -> str:
        """Query once and cache it."""
        if not self._cluster:
            self._cluster = self.config().cluster_name
        return self._cluster

    def config(self) -> SlurmConfig:
        """Run `scontrol show config`."""
        return parse_config(self._text("scontrol", "show", "config"))

    def job(self, job_id: int) -> list[RunningJob]:
        """Run `scontrol show job -d ID`."""
        text = self._job_text(job_id)
        if text is None:
            return []
        listing = parse_jobs(text)
        if not listing.jobs and not listing.bad:
            raise ParseError(f"scontrol show job {job_id}: no record in its output: {text[:80]!r}")
        found = [*listing.jobs, *self._ask_again(listing.bad)]
        return [job for job in found if job_id in {job.job_id, job.array_job_id, job.het_job_id}]

    def jobs(self) -> list[RunningJob]:
        """Run `scontrol show job -d`; records that imitate others are resolved with the names that squeue prints.

        A comment that imitates a job which does not exist still yields a record: match it with what is running.
        """
        listing = parse_jobs(self._text(*_SHOW, "job"))
        return list(listing.jobs) + self._ask_again(listing.bad)

    def request(self, job_id: int) -> list[JobRequest]:
        """Return the request as `scontrol show job -d ID` prints it."""
        return requests_of(self.job(job_id))

    def partitions(self) -> list[Partition]:
        """Run `scontrol show partition`."""
        return parse_partitions(self._text(*_SHOW, "partition"))

    def nodes(self) -> list[Node]:
        """Run `scontrol show node -d`."""
        return parse_nodes(self._text(*_SHOW, "node"))

    def accounting(self, start: int, end: int) -> Iterator[JobRecord | BadRow]:
        """Run sacct and read its output as it arrives, with a new random delimiter, so that no name can hold it."""
        delimiter = new_delimiter()
        columns = self.accounting_columns()
        cluster = self.cluster_name()
        with closing(self.accounting_lines(start, end, delimiter)) as lines:
            yield from parse_sacct(lines, cluster, columns, delimiter)

    def accounting_columns(self) -> tuple[str, ...]:
        """Return the requested columns that this sacct has; queried once."""
        if not self._sacct_fields:
            self._sacct_fields = sacct_fields(self._text("sacct", "--helpformat", rpc=False).split())
        return self._sacct_fields

    def accounting_lines(self, start: int, end: int, delimiter: bytes, cluster: str = "") -> Generator[bytes]:
        """Run sacct and yield its lines as they arrive, with the columns of `accounting_columns`.

        `cluster` is another cluster of the same slurmdbd, "" the host's own.
        """
        argv = sacct_argv(start, end, self.accounting_columns(), delimiter, cluster)
        self._count(argv[0])
        yield from stream_lines(argv, self._environment(), self.timeout_s)

    def accounting_backlog(self) -> int:
        """Run `sdiag`."""
        text = self._text("sdiag")
        found = _BACKLOG.search(text)
        if found is None:
            raise ParseError(f"sdiag: no line 'DBD Agent queue size' in its output: {text[:80]!r}")
        return int(found[1])

    def clusters(self) -> tuple[str, ...]:
        """Run `sacctmgr show cluster`; returns the clusters of this slurmdbd."""
        return associations.parse_clusters(self._sacctmgr(*associations.CLUSTERS))

    def admin_levels(self) -> Mapping[str, str]:
        """Run `sacctmgr show user`."""
        return associations.parse_admin_levels(self._sacctmgr(*associations.ADMIN_LEVELS))

    def coordinators(self) -> Mapping[str, frozenset[str]]:
        """Run `sacctmgr show account withcoord`."""
        return associations.parse_coordinators(self._sacctmgr(*associations.COORDINATORS))

    def account_places(self, accounts: Collection[str]) -> list[AccountPlace]:
        """Run `sacctmgr show assoc`, some hundred accounts at a time."""
        names = sorted(accounts)
        parts = (names[first : first + _ACCOUNTS] for first in range(0, len(names), _ACCOUNTS))
        texts = (self._sacctmgr(*associations.PLACES, f"account={','.join(part)}") for part in parts)
        return [place for text in texts for place in associations.parse_places(text)]

    def site(self, since: int | None = None) -> ClusterModel:
        """Run `scontrol show` of config, nodes, partitions, reservations; with slurmdbd `sacctmgr show` and sshare."""
        config = self.config()
        shown = config, self.nodes(), self.partitions()
        reservations = records(self._text(*_SHOW, "reservation"), "ReservationName")
        if "slurmdbd" not in config.settings.get("AccountingStorageType", ""):
            return live_model(*shown, reservations=reservations)
        cluster = f"cluster={config.cluster_name}"
        events = () if since is None else associations.parse_table(self._events(since), EVENT, "sacctmgr show event")
        usage = associations.parse_table(self._text(*associations.SSHARE), associations.USAGE, "sshare")
        return live_model(
            *shown,
            reservations=reservations,
            qos=associations.qos_of(self._table("qos", associations.QOS)),
            associations=associations.associations_of(self._table("assoc", associations.ASSOCIATION, cluster), usage),
            events=events,
        )

    def outages(self, since: int) -> PrintedRows[NodeOutage]:
        """Run `sacctmgr show event`."""
        return parse_events(self._events(since), EVENT)

    def reservations(self, since: int | None = None) -> PrintedRows[ReservedNodes]:
        """Run `sacctmgr show reservation`, or `scontrol show reservation`."""
        if since is None:
            return parse_shown_reservations(self._text(*_SHOW, "reservation"))
        return parse_reserved(self._past("reservation", RESERVATION, since, f"end={_LATER}"), RESERVATION)

    def device_list(self, node: str) -> list[DevicePosition]:
        """Run `slurmd -G -N NODE`, which prints to stderr, with a configuration that keeps it off running jobs."""
        argv = ("slurmd", "-G", "-N", node)
        release = release_of(self._text("slurmd", "-V", rpc=False))
        try:
            with private_conf(existing_conf(self.slurm_conf, asked_places(self.config, node)), release) as conf:
                environment = self._environment() | {"SLURM_CONF": str(conf)}
                output = run_command(argv, environment, self.timeout_s, self.max_output_b)
                told = replace(output, stderr=reasons(conf, output.stderr))
        except ConfigError as error:
            raise SlurmError(f"{' '.join(argv)}: {error}") from error
        check(argv, told)
        return parse_slurmd_g(decoded(output.stdout + b"\n" + output.stderr))

    def text(self, *argv: str) -> str:
        """Run a command of Slurm and return what it prints. Raises SlurmError where its exit code is not 0."""
        return self._text(*argv)

    def _job_text(self, job_id: int) -> str | None:
        try:
            return self._text(*_SHOW, "job", str(job_id))
        except CommandError as error:
            if "invalid job id" in error.stderr.lower():
                return None
            raise

    def _ask_again(self, bad: tuple[BadRecord, ...]) -> list[RunningJob]:
        """Resolve rejected records: each in an output of its own, with its name known from squeue."""
        if not bad:
            return []
        reasons = {record.job_id: record.reason for record in bad}
        try:
            names = self._names()
        except (SlurmError, ParseError) as error:
            _NO_NAMES.log(error=error)
            names = {}
        found = []
        for asked, (job_id, reason) in enumerate(reasons.items()):
            try:
                text = self._job_text(job_id) if job_id in names and asked < _MAX_ASKED_AGAIN else None
                if text is not None:
                    found.append(parse_job(text, job_id, names[job_id]))
                elif not names or job_id in names:  # any other is not a job, but part of another job's name or comment
                    _AMBIGUOUS.log(reason=reason, again="")
            except (SlurmError, ParseError) as error:
                _AMBIGUOUS.log(reason=reason, again=f"; read again: {error}")
        return found

    def _names(self) -> dict[int, str]:
        """Return raw id -> name from squeue's JSON, in which a name cannot imitate anything."""
        argv = ("squeue", "--all", "--states=all", "--json")
        output = self._run(*argv)
        check(argv, output)
        try:  # a byte that is not UTF-8 becomes an escape after parsing: within JSON the escape would be an error
            rows = json.loads(output.stdout.decode("utf-8", "surrogateescape"), strict=False)["jobs"]
            return {int(row["job_id"]): storable(str(row["name"])) for row in rows}
        except (ValueError, KeyError, TypeError) as error:
            raise ParseError(f"squeue --json: cannot read its output: {error}") from error

    def _table(self, what: str, columns: tuple[str, ...], *words: str) -> tuple[Row, ...]:
        text = self._sacctmgr("show", what, *words, f"format={','.join(columns)}")
        return associations.parse_table(text, columns, f"sacctmgr show {what}")

    def _events(self, since: int) -> str:
        return self._past("event", EVENT, since, "event=node")

    def _past(self, what: str, columns: tuple[str, ...], since: int, *words: str) -> str:
        window = f"cluster={self.cluster_name()}", f"start={format_time(since)}"
        return self._sacctmgr("show", what, *window, *words, f"format={','.join(columns)}")

    def _sacctmgr(self, *words: str) -> str:
        return self._text("sacctmgr", "--noheader", "--parsable2", *words)

    def _text(self, *argv: str, rpc: bool = True) -> str:
        output = self._run(*argv, rpc=rpc)
        check(argv, output)
        return decoded(output.stdout)

    def _run(self, *argv: str, rpc: bool = True) -> Output:
        if rpc:
            self._count(argv[0])
        return run_command(argv, self._environment(), self.timeout_s, self.max_output_b)

    def _count(self, command: str) -> None:
        if command in _RPC_COMMANDS:
            self.rpcs[command] += 1

    def _environment(self) -> dict[str, str]:
        """Return a new environment: the caller's SACCT_FORMAT, SLURM_CLUSTERS and the like would change the output."""
        environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        path = (self.path, environment.get("PATH", "/usr/bin:/bin"), "/usr/sbin:/sbin")
        environment["PATH"] = ":".join(part for part in path if part)
        environment |= {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
        if self.slurm_conf:
            environment["SLURM_CONF"] = self.slurm_conf
        return environment
