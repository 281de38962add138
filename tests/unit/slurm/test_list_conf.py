"""The private configuration of `slurmd -G`: what it takes from the site, what it must not, and that nothing stays."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.core.errors import ConfigError, GpuwasteError, SlurmError
from gpuwaste.slurm.formats import list_conf
from gpuwaste.slurm.formats.conf_file import MAX_FILE_B, read_conf
from gpuwaste.slurm.formats.list_conf import PREFIX, asked_places, existing_conf, private_conf, reasons, release_of
from gpuwaste.slurm.site.cluster_model import SlurmConfig

NODE = "NodeName=gpu1 Gres=gpu:2\n"


class Site:
    """A folder with a site's files, and a place for temporary ones."""

    def __init__(self, root: Path) -> None:
        self.conf = root / "etc" / "slurm.conf"
        self.temporary = root / "tmp"
        self.conf.parent.mkdir()
        self.temporary.mkdir()

    def write(self, name: str, text: str | bytes) -> None:
        """Write a file beside slurm.conf."""
        path = self.conf.parent / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def made(self, release: tuple[int, int] | None = (24, 11)) -> dict[str, str]:
        """Make the private configuration; return its files by name."""
        with private_conf(self.conf, release) as conf:
            assert conf.name == "slurm.conf"
            files = {path.name: path.read_text(encoding="latin-1") for path in conf.parent.iterdir() if path.is_file()}
        assert list(self.temporary.iterdir()) == []
        return files

    def settings(self) -> list[tuple[str, str]]:
        """Make the private configuration; return the pairs of its slurm.conf as Slurm reads them."""
        with private_conf(self.conf, (24, 11)) as conf:
            return [pair for line in read_conf(conf) for pair in line.pairs]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    made = Site(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(made.temporary))
    yield made
    assert not list(made.temporary.glob(f"{PREFIX}*"))


def test_nothing_of_the_site_that_runs_is_taken_over(site: Site) -> None:
    """Spool, logs, cgroups, prologs, plugins, slurmctld and its ports: none of the site's; nodes and GPU types are."""
    site.write(
        "slurm.conf",
        "ClusterName=hpc\nSlurmctldHost=ctl1\nSlurmdSpoolDir=/var/spool/slurmd\nSlurmdLogFile=/var/log/slurmd.log\n"
        "SlurmdPidFile=/run/slurmd.pid\nSlurmdDebug=error\nProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup\n"
        "JobAcctGatherType=jobacct_gather/cgroup\nProlog=/etc/p.sh\nPlugStackConfig=/etc/plugstack.conf\n"
        "JobSubmitPlugins=gpuwaste\nDebugFlags=gres\nAuthInfo=socket=/run/m\nSlurmdParameters=config_overrides\n"
        "GresTypes=gpu,shard\nPluginDir=/opt/slurm/lib\nNodeName=DEFAULT CPUs=2\nNodeName=gpu[1-2] Gres=gpu:a100:2\n"
        "PartitionName=all Nodes=ALL\nTopologyPlugin=topology/tree\nSlurmUser=nobody_here\n",
    )
    found = site.settings()
    told = dict(found)
    assert "/var/" not in str(found)
    assert str(site.temporary) in told["slurmdspooldir"]
    assert told["slurmctldhost"] == "localhost"
    assert (told["proctracktype"], told["taskplugin"]) == ("proctrack/linuxproc", "task/none")
    assert (told["jobacctgathertype"], told["slurmddebug"]) == ("jobacct_gather/none", "info")
    gone = {
        "prolog",
        "plugstackconfig",
        "jobsubmitplugins",
        "debugflags",
        "partitionname",
        "topologyplugin",
        "slurmuser",
    }
    assert not gone & told.keys()
    kept = ("authinfo", "slurmdparameters", "grestypes", "plugindir")
    assert [told[key] for key in kept] == ["socket=/run/m", "config_overrides", "gpu,shard", "/opt/slurm/lib"]
    assert [value for key, value in found if key == "nodename"] == ["DEFAULT", "gpu[1-2]"]
    once = [key for key, _ in found if key not in {"nodename", "cpus"}]
    assert len(set(once)) == len(once)


def test_the_spool_directory_is_new_empty_and_closed(site: Site) -> None:
    """No step of anybody has its socket there, and nobody else may put one."""
    site.write("slurm.conf", NODE)
    with private_conf(site.conf, None) as conf:
        spool = conf.parent / "spool"
        assert list(spool.iterdir()) == []
        assert [stat.S_IMODE(path.stat().st_mode) for path in (spool, conf.parent)] == [0o700, 0o700]


def test_lines_are_found_however_they_are_written(site: Site) -> None:
    """Case, blanks, continued lines, comments, quotes, escapes, Include with %c: as slurm.conf(5) has them."""
    site.write(
        "slurm.conf",
        "clustername = HPC  # ours\nGRESTYPES=gpu\nInclude nodes-%c.conf\ninclude more/last.conf\n# NodeName=no\n",
    )
    site.write("nodes-hpc.conf", 'nodename=gpu1 \\\n   Gres=gpu:2 Feature="a b" \\\n CPUs=4\n')
    site.write("more/last.conf", b"NodeName=gpu2 Comment=a\\#b Feature=\xe9\r\n")
    nodes = [line for line in site.made()["slurm.conf"].splitlines() if line.lower().startswith("nodename")]
    assert nodes == ['nodename=gpu1    Gres=gpu:2 Feature="a b"  CPUs=4', "NodeName=gpu2 Comment=a\\#b Feature=\\xe9"]


def test_gres_conf_is_taken_as_it_is(site: Site) -> None:
    """All of it, with what it includes; a site without one has none."""
    site.write("slurm.conf", "ClusterName=Hpc\n" + NODE)
    assert "gres.conf" not in site.made()
    site.write("gres.conf", "AutoDetect=nvml\nInclude gpus-%c.conf\nNodeName=gpu1 Name=shard Count=8\n")
    site.write("gpus-hpc.conf", "NodeName=gpu1 Name=gpu \\\nFile=/dev/nvidia[3,1]\n")
    assert site.made()["gres.conf"].splitlines() == [
        "AutoDetect=nvml", "NodeName=gpu1 Name=gpu File=/dev/nvidia[3,1]", "", "NodeName=gpu1 Name=shard Count=8", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "plugin"),
    [
        ("slurm-wlm 22.05.8", "cgroup/v1"),
        ("slurm 23.11.10", "cgroup/v1"),
        ("slurm 24.05.0-0rc1", "disabled"),
        ("slurm-wlm 26.05.3", "disabled"),
        ("what?", "disabled"),
    ],
)
def test_cgroups_are_left_out_in_the_words_of_the_release(site: Site, text: str, plugin: str) -> None:
    """Before 24.05 `disabled` is no plugin, and v1 does nothing at slurmd's start, whatever the node's layout."""
    site.write("slurm.conf", NODE)
    site.write("cgroup.conf", "ConstrainDevices=yes\n")
    assert site.made(release_of(text))["cgroup.conf"] == f"CgroupPlugin={plugin}\n"


def test_auth_slurm_gets_a_key_of_its_own_and_takes_no_socket(site: Site) -> None:
    """Its plugin reads a key at slurmd's start, and would else replace the socket of the running slurmd."""
    site.write("slurm.conf", "AuthType=auth/slurm\nAuthInfo=use_client_ids\n" + NODE)
    assert [pair for pair in site.settings() if pair[0].startswith("auth")] == [
        ("authinfo", "disable_sack"),
        ("authtype", "auth/slurm"),
    ]
    keys = set()
    for _ in range(2):
        with private_conf(site.conf, (24, 11)) as conf:
            key = conf.with_name("slurm.key")
            assert stat.S_IMODE(key.stat().st_mode) == 0o600
            keys.add(key.read_bytes())
    assert {len(key) for key in keys} == {64}
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("conf", "gres", "said"),
    [
        ("", None, "slurm.conf: no NodeName"),
        ("\x7fELF\x00\x01" * 100, None, "slurm.conf: no NodeName"),
        (NODE + "Include gone.conf\n", None, "line 2: .*gone.conf: cannot be read: No such file"),
        (NODE + "Include slurm.conf\n", None, "more than 8 nested Includes"),
        (NODE, "Include gone.conf\n", "gres.conf line 1: .*gone.conf: cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(site: Site, conf: str, gres: str | None, said: str) -> None:
    """One line with file and line number, and no folder is left."""
    site.write("slurm.conf", conf)
    if gres is not None:
        site.write("gres.conf", gres)
    with pytest.raises(ConfigError, match=said) as error:
        site.made()
    assert str(error.value).isprintable()


def test_files_too_large_missing_or_no_files_are_named(site: Site) -> None:
    """Neither is waited for or read to its end; a gres.conf that is there and cannot be read is no missing one."""
    with pytest.raises(ConfigError, match=r"slurm.conf: no such file: set \[common\] slurm_conf"):
        site.made()
    site.write("slurm.conf", NODE)
    os.mkfifo(site.conf.with_name("gres.conf"))
    with pytest.raises(ConfigError, match=r"gres.conf: cannot be read: .*not a plain file"):
        site.made()
    site.conf.with_name("gres.conf").unlink()
    site.conf.with_name("gres.conf").symlink_to("nowhere")
    with pytest.raises(ConfigError, match=r"gres.conf: cannot be read: No such file"):
        site.made()
    site.conf.with_name("gres.conf").unlink()
    with site.conf.open("ab") as file:
        file.truncate(MAX_FILE_B + 1)
    with pytest.raises(ConfigError, match="larger than 16 MiB"):
        site.made()


def test_no_folder_for_temporary_files_is_an_error_that_says_what_to_do(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full or read-only disk: one line."""
    site.write("slurm.conf", NODE)
    monkeypatch.setattr(tempfile, "tempdir", str(site.temporary / "gone"))
    with pytest.raises(SlurmError, match=r"slurmd -G: no folder for temporary files: No such file.*: set TMPDIR"):
        site.made()


def test_the_folder_goes_whatever_happens(site: Site) -> None:
    """An error inside, and a slurmd that left files in its spool directory."""
    site.write("slurm.conf", NODE)
    with pytest.raises(ZeroDivisionError), private_conf(site.conf, None) as conf:
        (conf.parent / "spool" / "hwloc_topo_whole.xml").write_text("x")
        raise ZeroDivisionError
    assert list(site.temporary.iterdir()) == []


def test_what_a_killed_process_left_is_removed_later(site: Site) -> None:
    """Old folders of the same user go; a young one may be in use, and other names are another's."""
    site.write("slurm.conf", NODE)
    old, young, other = (site.temporary / name for name in (f"{PREFIX}old", f"{PREFIX}young", "x-old"))
    for folder in (old, young, other):
        folder.mkdir()
        (folder / "slurm.conf").touch()
    for folder in (old, other):
        os.utime(folder, (1, 1))
    with private_conf(site.conf, None):
        assert not old.exists()
        assert young.exists()
        assert other.exists()
    (young / "slurm.conf").unlink()
    young.rmdir()


def test_the_reason_is_the_last_that_slurmd_said_of_it(site: Site) -> None:
    """Its log first, its words on stderr last, without the two lines that it says anyway; no log is no reason."""
    site.write("slurm.conf", NODE)
    with private_conf(site.conf, None) as conf:
        assert reasons(conf, b"slurmd: fatal: no\n") == b"slurmd: fatal: no"
        conf.with_name("slurmd.log").write_text(
            "x" * 5000 + "\n[t] error: lookup failure\n[t] error: slurmd initialization failed\n"
        )
        assert reasons(conf, b"").splitlines()[-1] == b"[t] error: lookup failure"
        assert len(reasons(conf, b"")) < 4200


def test_slurm_conf_is_where_slurm_looks_for_it(site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The given one, SLURM_CONF, /etc, the link of a configless slurmd, and last the places that slurmctld names."""
    usual, linked, spooled = (tmp_path / name for name in ("usual", "linked", "conf-cache/slurm.conf"))
    monkeypatch.setattr(list_conf, "DEFAULT_CONF", usual)
    monkeypatch.setattr(list_conf, "CONFIGLESS_CONF", linked)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    asked = []

    def ask() -> SlurmConfig:
        asked.append(1)
        return SlurmConfig({"SLURM_CONF": str(tmp_path / "ctl"), "SlurmdSpoolDir": str(tmp_path)})

    def places() -> Iterator[str]:
        return asked_places(ask, "gpu1")

    assert existing_conf("", places()) == usual
    spooled.parent.mkdir()
    spooled.touch()
    assert existing_conf("", places()) == spooled
    linked.touch()
    assert (existing_conf("", places()), len(asked)) == (linked, 2)
    usual.touch()
    assert (existing_conf("", places()), len(asked)) == (usual, 2)
    monkeypatch.setenv("SLURM_CONF", "/site/slurm.conf")
    assert existing_conf("", places()) == Path("/site/slurm.conf")
    assert existing_conf("/given/slurm.conf", places()) == Path("/given/slurm.conf")


def test_a_slurmctld_that_does_not_answer_names_no_place(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The usual place is what the error about a missing file then names."""
    monkeypatch.setattr(list_conf, "DEFAULT_CONF", tmp_path / "usual")
    monkeypatch.setattr(list_conf, "CONFIGLESS_CONF", tmp_path / "linked")
    monkeypatch.delenv("SLURM_CONF", raising=False)

    def ask() -> SlurmConfig:
        raise SlurmError("scontrol: no answer")

    assert existing_conf("", asked_places(ask, "gpu1")) == tmp_path / "usual"


PARTS = [
    "NodeName=gpu1",
    "GresTypes",
    "=",
    '"',
    "\\",
    "\n",
    " ",
    "#",
    "Include ",
    "x",
    "é",
    "\0",
    "AuthType=auth/slurm",
]


@settings(max_examples=examples(200))
@given(st.lists(st.sampled_from(PARTS), max_size=20))
def test_any_text_is_a_configuration_or_one_error(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    """Whatever the site's file holds; what is taken over stays behind our own lines."""
    path = tmp_path_factory.getbasetemp() / "slurm.conf"
    path.write_text("".join(parts))
    try:
        with private_conf(path, None) as conf:
            text, folder = conf.read_text(encoding="utf-8"), conf.parent
    except GpuwasteError:
        return
    assert text.startswith("ClusterName=gpuwaste\n")
    assert "/spool" in text
    assert not folder.exists()
