"""CommandClient against small stand-ins for Slurm's commands."""

import json
import logging
from pathlib import Path

import pytest

from gpuwaste.core.errors import ParseError, SlurmError
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import ADMIN_COMMENT, FIELDS
from gpuwaste.slurm.clients.command import CommandError
from gpuwaste.slurm.clients.command_client import CommandClient

ODD = Path(__file__).parents[2] / "fixtures" / "slurm"


class Site:
    """A directory of commands that answer with fixed text."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.client = CommandClient(path=str(directory), timeout_s=20)

    def command(self, name: str, body: str) -> None:
        """Write a command of that name."""
        path = self.directory / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def file(self, name: str, text: str) -> Path:
        """Write a file for a command to print."""
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_runs_in_a_clean_environment(site: Site) -> None:
    """UTC, epoch times, C.UTF-8 and the configuration that was given."""
    site.command("scontrol", 'echo "ClusterName = $TZ,$SLURM_TIME_FORMAT,$LC_ALL,$SLURM_CONF,$SACCT_FORMAT"')
    site.client.slurm_conf = "/x/slurm.conf"
    assert site.client.cluster_name() == "UTC,%s,C.UTF-8,/x/slurm.conf,"
    assert site.client.cluster_name()
    assert site.client.rpcs == {"scontrol": 1}


def test_an_unknown_job_is_no_error(site: Site) -> None:
    """Slurm's words for it give an empty list; other failures are told with command, code and last line."""
    site.command("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert site.client.job(7) == []
    site.command("scontrol", "echo noise >&2; echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(SlurmError, match=r"scontrol .* job 7: exit code 1: Unable to contact slurm controller"):
        site.client.job(7)
    site.command("scontrol", "echo Auftrag 7")
    with pytest.raises(ParseError, match="no record"):
        site.client.job(7)


def test_a_name_that_imitates_a_job_is_settled_by_asking_again(site: Site) -> None:
    """Each job ends up with its own user and devices."""
    text = (ODD / "scontrol_name_forges_another_job.txt").read_text(encoding="utf-8")
    name = text[text.index("JobName=") + 8 : text.index("\n   UserId=alice")]
    true = text.index("JobId=3 JobName=true")
    listing = site.file("all", text)
    site.file("2", text[:true])
    site.file("3", text[true : text.index("JobId=4")])
    site.command("scontrol", f'case "$5" in "") cat {listing};; *) cat "{site.directory}/$5";; esac')
    jobs = [{"job_id": 2, "name": name}, {"job_id": 3, "name": "true"}, {"job_id": 4, "name": "good"}]
    site.command("squeue", f"cat {site.file('squeue.json', json.dumps({'jobs': jobs}))}")
    found = {job.job_id: (job.user, sorted(job.nodes)) for job in site.client.jobs()}
    assert found == {2: ("alice", ["gpu1"]), 3: ("bob", ["gpu2"]), 4: ("alice", ["gpu1"])}
    assert site.client.rpcs == {"scontrol": 3, "squeue": 1}


def test_a_name_that_is_no_utf_8_keeps_no_other_job_from_being_settled(site: Site) -> None:
    """Squeue prints such bytes into its JSON as they are; the jobs beside it, and it itself, are told right."""
    text = (ODD / "scontrol_name_forges_another_job.txt").read_text(encoding="utf-8")
    name = text[text.index("JobName=") + 8 : text.index("\n   UserId=alice")]
    true = text.index("JobId=3 JobName=true")
    listing = site.file("all", text)
    site.file("2", text[:true])
    (site.directory / "3").write_bytes(text[true : text.index("JobId=4")].encode().replace(b"=true", b"=caf\xe9"))
    site.command("scontrol", f'case "$5" in "") cat {listing};; *) cat "{site.directory}/$5";; esac')
    rows = [{"job_id": 2, "name": name}, {"job_id": 3, "name": "CAF"}, {"job_id": 4, "name": "good"}]
    jobs = json.dumps({"jobs": rows})
    (site.directory / "squeue.json").write_bytes(jobs.encode().replace(b"CAF", b"caf\xe9"))
    site.command("squeue", f"cat {site.directory}/squeue.json")
    found = {job.job_id: (job.user, sorted(job.nodes)) for job in site.client.jobs()}
    assert found == {2: ("alice", ["gpu1"]), 3: ("bob", ["gpu2"]), 4: ("alice", ["gpu1"])}


def test_what_cannot_be_settled_is_logged_and_the_rest_is_kept(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """No record is dropped in silence."""
    site.command("scontrol", f"cat {ODD / 'scontrol_cut_off_in_a_gres_list.txt'}")
    site.command("squeue", "exit 1")
    with caplog.at_level(logging.WARNING):
        assert [job.job_id for job in site.client.jobs()] == [2]
    assert "job 3: the record is cut off" in caplog.text


def test_accounting_draws_a_delimiter_for_each_call(site: Site) -> None:
    """A saved delimiter cannot be used against us, and rows are read with the drawn one."""
    site.command("scontrol", "echo ClusterName = gw")
    values = {"JobIDRaw": "7", "JobID": "7", "Submit": "1700000000", "JobName": "a\x1fb", "ExitCode": "0:0"}
    columns = "|".join(values.get(name, "") for name in FIELDS)
    row = site.file("row", f"{columns}\n")
    site.command(
        "sacct",
        f"[ $1 = --helpformat ] && echo JobID {ADMIN_COMMENT} && exit\n"
        "for a; do case $a in --delimiter=*) d=${a#*=};; esac; done\n"
        f'echo "$d" >> {site.directory}/seen\nsed "s/|/$d/g" {row}',
    )
    for _ in range(2):
        (record,) = site.client.accounting(1, 2)
        assert isinstance(record, JobRecord)
        assert (record.name, record.cluster) == ("a\x1fb", "gw")
    first, second = (site.directory / "seen").read_text().split("\n")[:2]
    assert first != second
    assert site.client.rpcs["sacct"] == 2


def test_no_accounting_is_an_error_with_its_reason(site: Site) -> None:
    """A cluster without slurmdbd says so; there is no empty answer."""
    site.command("scontrol", "echo ClusterName = gw")
    site.command("sacct", "[ $1 = --helpformat ] && exit; echo 'Slurm accounting storage is disabled' >&2; exit 1")
    with pytest.raises(SlurmError, match="accounting storage is disabled"):
        list(site.client.accounting(1, 2))


def test_devices_are_read_from_both_outputs(site: Site) -> None:
    """Slurmd -G prints to stderr; an unknown node is an error."""
    site.client.slurm_conf = str(site.file("slurm.conf", "NodeName=gpu1\n"))
    site.command("slurmd", "echo 'slurmd: Gres Name=gpu Count=2 Index=7 File=/x/nvidia[3,1] (null)' >&2")
    assert [device.minor for device in site.client.device_list("gpu1")] == [3, 1]
    site.command("slurmd", "[ $1 = -V ] || exit 1")
    with pytest.raises(CommandError):
        site.client.device_list("nope")
    assert not site.client.rpcs


def test_slurmd_is_given_a_configuration_of_its_own(site: Site) -> None:
    """Its SLURM_CONF is the private one, which is gone afterwards; the cgroups' words are those of its release."""
    site.client.slurm_conf = str(site.file("slurm.conf", "SlurmdSpoolDir=/var/spool/slurmd\nNodeName=gpu1\n"))
    site.command(
        "slurmd",
        f"[ $1 = -V ] && echo slurm-wlm 22.05.8 && exit\necho $SLURM_CONF $3 > {site.directory}/seen\n"
        f"cat $SLURM_CONF ${{SLURM_CONF%/*}}/cgroup.conf >> {site.directory}/seen",
    )
    assert site.client.device_list("gpu1") == []
    first, *lines = (site.directory / "seen").read_text().splitlines()
    conf, node = first.split()
    assert node == "gpu1"
    assert conf != site.client.slurm_conf
    assert not Path(conf).parent.exists()
    assert f'SlurmdSpoolDir="{Path(conf).parent}/spool"' in lines
    assert lines[-1] == "CgroupPlugin=cgroup/v1"
    assert lines.count("NodeName=gpu1") == 1


def test_a_failed_list_is_told_with_slurmd_s_reason(site: Site) -> None:
    """The reason that slurmd wrote into its log, or the file of the site that cannot be used."""
    site.client.slurm_conf = str(site.directory / "slurm.conf")
    site.command(
        "slurmd",
        "[ $1 = -V ] && echo slurm 24.11.5 && exit\n"
        'echo "[t] error: lookup failure for node $3" > ${SLURM_CONF%/*}/slurmd.log\n'
        "echo slurmd initialization failed >&2; exit 1",
    )
    with pytest.raises(SlurmError, match=r"slurmd -G -N gpu9: /.*/slurm.conf: no such file"):
        site.client.device_list("gpu9")
    site.file("slurm.conf", "NodeName=gpu1\n")
    with pytest.raises(CommandError, match=r"slurmd -G -N gpu9: exit code 1: .* lookup failure for node gpu9$"):
        site.client.device_list("gpu9")


def test_a_site_without_files_on_its_nodes_has_them_where_slurmctld_says(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SlurmdSpoolDir's conf-cache of this node, where no slurm.conf is in a usual place."""
    for name in ("DEFAULT_CONF", "CONFIGLESS_CONF"):
        monkeypatch.setattr(f"gpuwaste.slurm.formats.list_conf.{name}", site.directory / "none")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    cache = site.directory / "gpu1" / "conf-cache"
    cache.mkdir(parents=True)
    (cache / "slurm.conf").write_text("NodeName=gpu1\n")
    (cache / "gres.conf").write_text("Name=gpu File=/x/nvidia[3,1]\n")
    settings = {"ClusterName": "gw", "SLURM_CONF": f"{site.directory}/ctl", "SlurmdSpoolDir": f"{site.directory}/%n"}
    site.command("scontrol", "\n".join(f"echo {name} = {value}" for name, value in settings.items()))
    site.command(
        "slurmd",
        "[ $1 = -V ] && echo slurm 25.05.1 && exit\n"
        'sed "s/Name=gpu/Gres Name=gpu Count=2/" ${SLURM_CONF%/*}/gres.conf >&2',
    )
    assert [device.minor for device in site.client.device_list("gpu1")] == [3, 1]
