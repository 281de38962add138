"""The Debian packages, with real apt in bare Debian roots with Debian's Slurm: installed, upgraded, back, purged."""

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.system.apt_root import AptRoot
from tests.system.rpm_scene import CONFIG, set_keys
from tests.system.test_install_page import KINDS
from tests.system.test_rpm import ALL, MODES, PLUGIN, owner_and_mode
from tools.deb.build import binary_rpms, convert, current
from tools.deb.control import renamed
from tools.deb.header import read_header
from tools.rpm import variants
from tools.rpm.build import spec_version
from tools.rpm.scratch import scratch
from tools.rpm.variants import OLDER, OLDER_SET
from tools.rpm.wheels import ROOT

from gpuwaste.testing import cluster_host

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]  # a Debian root is filled and booted for the first test
STATE: Final = ("/var/lib/gpuwaste", "/var/lib/gpuwaste-actor", "/run/gpuwaste", "/run/gpuwaste-jobs")


@pytest.fixture(scope="module")
def packages() -> list[Path]:
    """Return the Debian packages of this tree: those of `make deb` where they are of the same files, else made now."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    wanted = ("rpmbuild", "debootstrap", "unshare", "cpio", "dpkg-scanpackages")
    if absent := [command for command in wanted if not shutil.which(command)]:
        pytest.skip(f"not installed: {', '.join(absent)}; run tools/install-debian-packages (Debian 12)")
    return current()


@pytest.fixture(scope="module")
def older(packages: list[Path], workspace: Path) -> list[Path]:
    """Return packages of a version before this one, with another example of the configuration."""
    return convert(variants.older(), workspace / "older", level=1)


@pytest.fixture(scope="module")
def workspace() -> Iterator[Path]:
    """Return a directory for roots."""
    with scratch() as path:
        yield path


@pytest.fixture(scope="module")
def host(packages: list[Path], workspace: Path) -> AptRoot:
    """Return a root with all packages in its repository, and none installed."""
    return AptRoot.make(workspace / "root", packages)


def test_each_kind_of_host(host: AptRoot) -> None:
    """For each kind of host apt finds what the install page's table says, and nothing more."""
    for wanted, expected in KINDS.items():
        recommended = {"gpuwaste-models", "gpuwaste-runtime-onnx"} if "gpuwaste-hub" in expected else set()
        assert host.would_install(*wanted.split(), *sorted(recommended)) == expected, wanted


def test_fresh_install(host: AptRoot) -> None:
    """Files, owners and modes are those of the RPMs, the command works alone, and dpkg finds every file as shipped."""
    host.apt("install", *ALL)
    assert host.installed() == dict.fromkeys(ALL, "ii")
    assert {name: owner_and_mode(host.root, name) for name in MODES} == MODES
    entry = host.root.run("getent", "passwd", "gpuwaste").stdout.strip().split(":")
    assert (entry[2], entry[5:]) == ("463", ["/var/lib/gpuwaste", "/sbin/nologin"])
    assert host.root.run("gpuwaste", "--version").stdout == f"gpuwaste {spec_version()}\n"
    assert host.root.run("gpuwaste", "config", "check").returncode == 0
    assert host.root.run("dpkg", "--verify", *ALL).stdout == ""


def test_the_same_payload_as_the_rpms(host: AptRoot) -> None:
    """Each file of each RPM is installed with the same bytes; copyright files stand for the texts of the licence."""
    compared = 0
    for package in binary_rpms():
        query = ["rpm", "-qp", "--nosignature", "--qf", "[%{FILENAMES}\\t%{FILEDIGESTS}\\n]", str(package)]
        lines = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()
        name = read_header(package).name
        for path, digest in (line.split("\t") for line in lines):
            if not digest or path.startswith("/usr/share/licenses/") or path.endswith("/CHANGELOG.md"):
                continue
            content = host.root.file(renamed(path, name)).read_bytes()
            assert hashlib.sha256(content).hexdigest() == digest, path
            compared += 1
    assert compared > 10_000


def test_units_are_disabled(host: AptRoot) -> None:
    """Debian would enable what it installs: the preset keeps each unit of ours off until the administrator says so."""
    text = host.root.file("/usr/lib/systemd/system-preset/80-gpuwaste.preset").read_text(encoding="utf-8")
    off = {line.split()[1] for line in text.splitlines() if line.startswith("disable ")}
    units = host.root.file("/usr/lib/systemd/system").glob("gpuwaste-*")
    wanted = {unit.name for unit in units if unit.is_file() and "\n[Install]\n" in unit.read_text(encoding="utf-8")}
    assert off == wanted


def test_plugin_in_use_stays(host: AptRoot) -> None:
    """The plugin cannot be removed while slurm.conf names it; the refused removal leaves it installed."""
    host.root.write("/etc/slurm/slurm.conf", "ClusterName=x\nJobSubmitPlugins=lua,gpuwaste\n")
    done = host.apt("remove", "gpuwaste-slurm-plugin", check=False)
    assert done.returncode != 0
    assert "is in use: /etc/slurm/slurm.conf" in done.stdout + done.stderr
    assert host.installed()["gpuwaste-slurm-plugin"] == "ii"
    assert list(host.root.path.rglob(PLUGIN))
    host.root.write("/etc/slurm/slurm.conf", "ClusterName=x\n")


def test_plugin_of_another_release(host: AptRoot, workspace: Path) -> None:
    """The plugin that was built for another Slurm's headers is refused by apt, which has Debian's release."""
    (plugin,) = convert([variants.other_plugin()], workspace / "other-plugin")
    shutil.copy(plugin, host.root.file("/srv"))
    done = host.apt("install", "--allow-downgrades", f"/srv/{plugin.name}", check=False)
    assert done.returncode != 0
    assert "slurm-wlm-basic-plugins" in done.stdout + done.stderr
    assert host.installed()["gpuwaste-slurm-plugin"] == "ii"


def test_removed_then_purged(host: AptRoot) -> None:
    """A removal keeps the configuration and the state; a purge leaves the user and nothing else of gpuwaste."""
    host.root.write("/var/lib/gpuwaste/hub/kept", "data\n")
    host.apt("remove", *ALL)
    assert set(host.installed().values()) == {"rc"}
    assert host.root.file(CONFIG).exists()
    assert host.root.file("/var/lib/gpuwaste/hub/kept").exists()
    assert not host.root.file("/usr/bin/gpuwaste").exists()
    host.apt("purge", *ALL)
    assert host.installed() == {}
    left = {name for name in host.root.tree() if "gpuwaste" in name and not name.startswith(("/srv/", "/var/lib/apt/"))}
    assert left == set()
    assert host.root.run("getent", "passwd", "gpuwaste").returncode == 0


def test_upgrade_and_back(packages: list[Path], older: list[Path], workspace: Path) -> None:
    """Up and down with apt configuration and state stay; what runs is restarted where policy-rc.d allows it."""
    host = AptRoot.make(workspace / "upgraded", older)
    host.pretend_systemd()
    host.apt("install", *OLDER_SET)
    calls = host.systemctl_calls()
    assert "--no-reload preset gpuwaste-hub.service" in calls
    assert not [call for call in calls if call.startswith(("start", "enable", "restart"))]
    text = host.root.file(CONFIG).read_text(encoding="utf-8")
    host.root.write(CONFIG, text := set_keys(text, {"common": {"hub_url": "http://x:1"}}))
    host.root.write("/var/lib/gpuwaste/hub/kept", "data\n")
    host.root.run("chown", "-R", "gpuwaste:gpuwaste", "/var/lib/gpuwaste/hub")

    host.offer([package for package in packages if package.name.split("_")[0] in OLDER_SET])
    host.apt("upgrade")
    assert host.root.run("gpuwaste", "--version").stdout == f"gpuwaste {spec_version()}\n"
    assert host.root.file(CONFIG).read_text(encoding="utf-8") == text
    assert host.root.file(f"{CONFIG}.dpkg-dist").read_text() == (ROOT / "etc/gpuwaste.toml").read_text()
    calls = host.systemctl_calls()
    assert "--no-block try-restart gpuwaste-hub.service" in calls
    assert not [call for call in calls if "preset" in call or "disable" in call]

    host.root.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")
    host.root.file("/usr/sbin/policy-rc.d").chmod(0o755)
    host.apt("install", "--allow-downgrades", *(f"{name}={OLDER}-1" for name in OLDER_SET))
    assert host.root.run("gpuwaste", "--version").stdout == f"gpuwaste {OLDER}\n"
    assert not [call for call in host.systemctl_calls() if "restart" in call]
    assert host.root.file(CONFIG).read_text(encoding="utf-8") == text
    assert owner_and_mode(host.root, "/var/lib/gpuwaste/hub/kept")[0] == "gpuwaste"
    assert not [name for name in host.root.tree() if f"gpuwaste-{spec_version()}.dist-info" in name]

    host.apt("purge", *OLDER_SET)
    assert "--no-reload disable --now gpuwaste-hub.service" in host.systemctl_calls()
    left = [path for path in host.root.tree() if path.startswith(STATE)]
    assert left == []


def test_an_upgrade_that_nobody_attends(packages: list[Path], older: list[Path], workspace: Path) -> None:
    """With the site's keys in a drop-in dpkg asks nothing, whatever its options, and the keys are in force after it."""
    host = AptRoot.make(workspace / "unattended", older)
    host.apt("install", *OLDER_SET)
    host.root.write("/etc/gpuwaste/gpuwaste.toml.d/site.toml", "[hub]\nverdict_days = 77\n")
    host.offer([package for package in packages if package.name.split("_")[0] in OLDER_SET])
    host.root.run("apt-get", "-y", "-q", "-o", "APT::Sandbox::User=root", "upgrade")
    assert host.root.run("gpuwaste", "--version").stdout == f"gpuwaste {spec_version()}\n"
    assert host.root.file(CONFIG).read_text() == (ROOT / "etc/gpuwaste.toml").read_text()
    assert [name for name in host.root.tree() if name.startswith("/etc/gpuwaste") and "dpkg" in name] == []
    shown = host.root.run("gpuwaste", "config", "show").stdout
    assert "verdict_days = 77  # set in /etc/gpuwaste/gpuwaste.toml.d/site.toml:2: " in shown
    host.apt("purge", *OLDER_SET)
    assert not host.root.file("/etc/gpuwaste").exists()


def test_an_edited_file_stops_such_an_upgrade_and_can_be_moved(
    packages: list[Path], older: list[Path], workspace: Path
) -> None:
    """What the upgrade page says of dpkg's question, of the way on from there, and of the move to a drop-in."""
    host = AptRoot.make(workspace / "edited", older)
    host.apt("install", *OLDER_SET)
    text = host.root.file(CONFIG).read_text(encoding="utf-8")
    host.root.write(CONFIG, set_keys(text, {"hub": {"verdict_days": 77}}))
    host.offer([package for package in packages if package.name.split("_")[0] in OLDER_SET])
    done = host.root.run("apt-get", "-y", "-q", "-o", "APT::Sandbox::User=root", "upgrade", check=False)
    assert done.returncode != 0
    assert "end of file on stdin at conffile prompt" in done.stdout + done.stderr
    host.root.run("dpkg", "--configure", "-a", "--force-confold")
    assert set(host.installed().values()) == {"ii"}
    page = (ROOT / "docs/how-to/upgrade.md").read_text(encoding="utf-8")
    script = page.partition("To move an edited file to a drop-in once:\n\n```sh\n")[2].partition("```")[0]
    host.root.run(
        "sh", "-ec", f"export APT_CONFIG=/srv/apt.conf; echo 'APT::Sandbox::User root;' >$APT_CONFIG; {script}"
    )
    assert host.root.file(CONFIG).read_text() == (ROOT / "etc/gpuwaste.toml").read_text()
    shown = host.root.run("gpuwaste", "config", "show").stdout
    assert "verdict_days = 77  # set in /etc/gpuwaste/gpuwaste.toml.d/site.toml:" in shown


def test_taken_uid(packages: list[Path], workspace: Path) -> None:
    """Where the fixed uid belongs to somebody else nothing is installed, and the line says how to choose another."""
    wanted = [package for package in packages if package.name.split("_")[0] in {"gpuwaste", "gpuwaste-runtime"}]
    host = AptRoot.make(workspace / "taken", wanted)
    with host.root.file("/etc/passwd").open("a", encoding="utf-8") as passwd:
        passwd.write("other:x:463:463::/:/sbin/nologin\n")
    done = host.apt("install", "gpuwaste", check=False)
    assert done.returncode != 0
    assert "uid or gid 463 is taken by other" in done.stdout + done.stderr
    assert not host.root.file("/usr/bin/gpuwaste").exists()
    host.root.write("/etc/sysusers.d/gpuwaste.conf", "u gpuwaste 464\n")
    host.apt("install", "gpuwaste")
    assert host.root.run("id", "-u", "gpuwaste").stdout == "464\n"
