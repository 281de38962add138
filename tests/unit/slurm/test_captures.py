"""The parsers against what real clusters printed, where those captures lie beside the repository."""

import pytest
from tests.public_data import public

from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow, parse_sacct
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob, parse_jobs
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.slurm.site.site_fields import parse_config, parse_partitions

SONAR = (
    *("JobID", "JobIDRaw", "User", "Account", "State", "Start", "End", "AveCPU", "AveDiskRead", "AveDiskWrite"),
    *("AveRSS", "AveVMSize", "ElapsedRaw", "ExitCode", "Layout", "MaxRSS", "MaxVMSize", "MinCPU", "ReqCPUS", "ReqMem"),
    *("ReqNodes", "Reservation", "Submit", "Suspended", "SystemCPU", "TimelimitRaw", "UserCPU", "NodeList"),
    *("Partition", "AllocTRES", "Priority", "JobName"),
)


def capture(name: str) -> bytes:
    return public(f"fixtures/{name}").read_bytes()


def header(line: bytes, delimiter: str) -> list[str]:
    return line.decode().strip().split(delimiter)


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("all_gpus", [(8401413, "node1751", tuple(range(8)))]),
        ("some_gpus", [(8401413, "node1751", (0, 1, 2, 3))]),
        ("no_gpus", [(8401413, "node1751", ())]),
        ("unique_entries", [(30214, "node1751", (0, 1, 2, 3)), (31214, "node1751", (5, 6, 7))]),
    ],
)
def test_devices_of_jobs_on_24_11(name: str, held: list[tuple[int, str, tuple[int, ...]]]) -> None:
    """Positions by node, an empty GRES= being no GPU."""
    listing = parse_jobs(capture(f"gcm_scontrol/scontrol_out_{name}.txt").decode())
    assert not listing.bad
    found = [(node, gres.positions) for job in listing.jobs for node, gres in job.nodes.items()]
    assert found == [(node, positions) for _, node, positions in held]


def test_devices_of_a_job_on_many_nodes() -> None:
    """One Nodes= line may stand for several nodes."""
    (job,) = parse_jobs(capture("gcm_scontrol/scontrol_out_multi_node.txt").decode()).jobs
    assert list(job.nodes) == expand(job.node_list)
    assert {gres.positions for gres in job.nodes.values()} == {tuple(range(8))}
    assert job.n_nodes == 8


def test_the_one_line_form_of_24_11() -> None:
    """Names with spaces, anonymous users, and start times that are guesses."""
    jobs: list[RunningJob] = []
    for name in ("scontrol_resource1", "scontrol_resource2"):
        listing = parse_jobs(capture(f"sonar/{name}.txt").decode())
        assert not listing.bad
        jobs += listing.jobs
    assert "OOD Code Server" in {job.name for job in jobs}
    assert all((job.start is None) == (job.state == "PENDING") for job in jobs)


def test_configuration_and_partitions_of_22_and_later() -> None:
    """A large site's node lists, and its settings."""
    assert parse_config(capture("gcm_slurm/sample-scontrol-show-config-output.txt").decode()).cluster_name
    first, second, third = parse_partitions(capture("gcm_slurm/sample-scontrol-output.txt").decode())
    assert (len(first.nodes), first.max_time_s, first.whole_nodes) == (3140, 3 * 86400, False)
    assert len(second.nodes) == 1469
    assert third.nodes == first.nodes


@pytest.mark.parametrize("name", ["sacct-output.txt", "sacct_output.txt"])
def test_every_row_of_a_site_s_accounting(name: str) -> None:
    """Nothing is set aside, and GPUs are counted once."""
    lines = capture(f"sonar/{name}").splitlines(keepends=True)
    found = list(parse_sacct(lines, "gw", SONAR, b"|"))
    assert not [item for item in found if isinstance(item, BadRow)]
    jobs = sum(b"." not in line.split(b"|")[1] for line in lines)
    assert len(found) == jobs
    for record in found:
        assert isinstance(record, JobRecord)
        assert record.gpus == 0 or f"gres/gpu={record.gpus}" in record.alloc_tres


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [
        ("output", "|"),
        ("one-multiline", "|#"),
        ("multiple-multiline", "|#"),
        ("fake-line-break", "|#"),
        ("output-invalid-utf8", "|"),
    ],
)
def test_rows_with_newlines_and_other_bytes(name: str, delimiter: str) -> None:
    """No row of these files is read into another: each is a record, or set aside with a reason."""
    first, *lines = capture(f"gcm_slurm/sample-sacct-{name}.txt").splitlines(keepends=True)
    fields = header(first, delimiter)
    found = list(parse_sacct(lines, "gw", fields, delimiter.encode()))
    assert found
    for item in found:
        if isinstance(item, BadRow):
            assert "without a line of its job" in item.reason, item
        else:
            item.name.encode()


def test_rows_of_the_year_2019() -> None:
    """Memory by node and by processor, states with a user's number, runs without an end."""
    first, *lines = capture("slurm2sql/test-data1.csv").splitlines(keepends=True)
    found = list(parse_sacct(lines, "gw", header(first, "|"), b"|"))
    records = [item for item in found if isinstance(item, JobRecord)]
    assert len(records) == len(found)
    assert records[0].state == "CANCELLED"
    assert records[0].max_rss_b == 231092 * 1024
