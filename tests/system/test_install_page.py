"""docs/how-to/install.md and upgrade.md, followed to the letter with dnf on a host with Slurm and nothing of ours."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.system.install_page import CHECKOUT, steps, take
from tests.system.rpm_machine import SLURM, Machine, booted, furnish, stand_in, start_site
from tests.system.rpm_scene import pick
from tools.rpm import variants
from tools.rpm.build import current, spec_version
from tools.rpm.root import Root
from tools.rpm.scratch import scratch
from tools.rpm.variants import OTHER_SLURM
from tools.rpm.wheels import ROOT

from gpuwaste.testing import cluster_host
from gpuwaste.testing.sim_build import build_native

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]  # a host is filled with packages
PAGE: Final = ROOT / "docs/how-to/install.md"
UPGRADE: Final = ROOT / "docs/how-to/upgrade.md"
REPOSITORY: Final = "/srv/gpuwaste"
SUBMITTED: Final = "scontrol show job $(runuser -u alice -- sbatch --parsable --chdir=/tmp --gres=gpu:1 --wrap true)"
POLL_S: Final = 3.0
"""Between two calls of our command for what takes up to a minute: each call is most of a second of a processor."""
COMMON: Final = {"gpuwaste", "gpuwaste-runtime"}
MODELS: Final = {"gpuwaste-models", "gpuwaste-runtime-onnx"}
SCENERY: Final = ("/proc", "/root", "/srv", "/var/cache/dnf", "/run/units", "/usr/local/bin", "/var/log")
"""Where the checkout, the repository, dnf's and systemd's own, the load program and logs are."""
KINDS: Final = {
    "gpuwaste": COMMON,
    "gpuwaste-agent": {*COMMON, "gpuwaste-agent"},
    "gpuwaste-hub": {*COMMON, *MODELS, "gpuwaste-hub"},
    "gpuwaste-lake": {*COMMON, *MODELS, "gpuwaste-hub", "gpuwaste-lake"},
    "gpuwaste-lake-s3": {*COMMON, *MODELS, "gpuwaste-hub", "gpuwaste-lake", "gpuwaste-lake-s3"},
    "gpuwaste-advisor gpuwaste-slurm-plugin": {*COMMON, *MODELS, "gpuwaste-advisor", "gpuwaste-slurm-plugin"},
}


@pytest.fixture(scope="module")
def packages() -> list[Path]:
    """Return the RPMs of this tree, those of `make rpm` where they are of the same files."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    if absent := [
        command for command in ("rpmbuild", "debootstrap", "unshare", "nsenter") if not shutil.which(command)
    ]:
        pytest.skip(f"not installed: {', '.join(absent)}; run tools/install-debian-packages (Debian 12)")
    return current()


@pytest.fixture(scope="module")
def machine(packages: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Return a booted host with Slurm at work, dnf, and a checkout in which `make rpm` was done."""
    with scratch() as path:
        root = Root.copy_site(path / "root")
        furnish(root, build_native(), tmp_path_factory.mktemp("stand-ins"))
        for package in pick(packages):
            target = root.file(f"{CHECKOUT}/build/rpm/RPMS/{package.parent.name}")
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(package, target)
        with booted(root) as machine:
            start_site(machine)
            yield machine


def installed(machine: Machine) -> set[str]:
    """Return our packages on the host."""
    return set(machine.run("rpm -qa --qf '%{NAME}\\n' 'gpuwaste*'").split())


def test_repository(machine: Machine) -> None:
    """With the page's repository, dnf finds for each kind of host what the page's table says, and nothing more."""
    for heading in ("A repository", "The user, with the same uid everywhere"):
        take(machine, PAGE, heading)
    for wanted, expected in KINDS.items():
        said = machine.try_run(f"dnf install --assumeno {wanted}").stdout
        found = set(re.findall(r"^ (\S+) +(?:x86_64|noarch) ", said, re.MULTILINE))
        assert found == expected, said


def test_administration_host(machine: Machine) -> None:
    """The hub of the page serves, as a user that is Slurm's operator, with the uid that was chosen."""
    take(machine, PAGE, "Administration host")
    assert installed(machine) == KINDS["gpuwaste-hub"]
    assert machine.run("id -u gpuwaste") == "4463\n"
    assert "Operator" in machine.run("sacctmgr -nP show user gpuwaste format=adminlevel")
    assert machine.run("curl -sSf http://admin1:9461/v1/health")


def test_gpu_node(machine: Machine) -> None:
    """The agent of the page samples, and the doctor finds nothing that fails."""
    said = take(machine, PAGE, "GPU nodes")[-1]
    assert {"gpuwaste-agent", "gpuwaste-slurm-plugin"} <= installed(machine)
    assert "fail " not in said
    assert re.search(r", [1-9]\d* packages for agent, hub$", said, re.MULTILINE), said
    assert re.search(r"^Prolog .*/usr/libexec/gpuwaste/prolog.d", machine.run("scontrol show config"), re.MULTILINE)


def test_host_of_slurmctld(machine: Machine) -> None:
    """Slurmctld starts anew with the page's line, and the doctor finds plugin and advisor well."""
    said = take(machine, PAGE, "Hosts of slurmctld")[-1]
    assert "fail " not in said
    assert re.search(r"JobSubmitPlugins += gpuwaste\b", machine.run("scontrol show config"))
    machine.wait("sinfo -h -o %T", 60, "the node to be idle", wanted="idle")


def test_reports_metrics_verdicts(machine: Machine) -> None:
    """The page's job is measured, reported to staff and to its user, and has a shadow verdict that he was not shown."""
    first, last = steps(PAGE, "Check")
    wrote = first.take(machine)
    (job,) = re.findall(r"^Submitted batch job (\d+)$", wrote, re.MULTILINE)
    assert re.search(r"^gpuwaste_gpu_utilization_ratio\{.*\} ", wrote, re.MULTILINE)
    machine.wait("gpuwaste report", 180, "the report of alice", user="alice", wanted="alice", poll_s=POLL_S)
    machine.wait("gpuwaste policy verdicts", 60, "the verdict", user="staffer", wanted=job, poll_s=POLL_S)
    said = last.take(machine)
    assert "fail " not in said
    assert "alice" in machine.run("gpuwaste report --allusers", user="staffer")
    assert machine.run(f"gpuwaste job {job}", user="alice")


def offer(machine: Machine, *packages: Path) -> None:
    """Put packages into the page's repository."""
    for package in packages:
        shutil.copy(package, machine.root.file(REPOSITORY))
    machine.run(f"createrepo_c --update {REPOSITORY} && dnf --refresh makecache")


def test_upgrade_and_back(machine: Machine) -> None:
    """With dnf all packages go to a newer version and back; the services run on with it, and the reports are kept."""
    newer = variants.newer_version()
    offer(machine, *variants.newer())
    upgrade, back, _ = steps(UPGRADE, "Back")  # the last one is for apt
    for step, version in ((upgrade, newer), (back, spec_version())):
        step.take(machine)
        assert machine.run("gpuwaste --version") == f"gpuwaste {version}\n"
        said = machine.wait("gpuwaste doctor", 60, "the doctor to find nothing that fails", poll_s=POLL_S)
        assert re.search(rf"^ok   agent .* version {re.escape(version)},", said, re.MULTILINE), said
        assert re.search(rf"^ok   hub .* version {re.escape(version)}$", said, re.MULTILINE), said
        assert "alice" in machine.run("gpuwaste report", user="alice")


def test_slurm_goes_up_with_its_plugin_or_not_at_all(machine: Machine, tmp_path: Path) -> None:
    """Slurmctld ends with the plugin of the release before; dnf keeps Slurm without a new one; then both go up."""
    earlier = [variants.other_plugin(), stand_in(tmp_path, "slurm", OTHER_SLURM)]
    # The host as it was before: Slurm's program is of today, so that the plugin's own check is left out.
    machine.root.rpm("-U", "--oldpackage", "--nosignature", "--nopre", *earlier)
    machine.run("systemctl restart slurmctld")
    log = "/var/log/slurm/slurmctld.log"
    machine.wait(f"grep -F '({OTHER_SLURM})' {log}", 30, "the line on the plugin", wanted="ncompatible")
    machine.wait("! systemctl is-active slurmctld", 30, "slurmctld to end")

    machine.run(f"mkdir /srv/aside && mv {REPOSITORY}/gpuwaste-slurm-plugin* /srv/aside")
    offer(machine, stand_in(tmp_path, "slurm", SLURM))
    refused = machine.try_run("dnf upgrade slurm")
    assert refused.returncode != 0
    assert "gpuwaste-slurm-plugin" in refused.stdout + refused.stderr
    assert machine.run("rpm -q slurm") == f"slurm-{OTHER_SLURM}-1.noarch\n"

    offer(machine, *machine.root.file("/srv/aside").iterdir())
    (wrote,) = take(machine, UPGRADE, "Upgrade Slurm and the plugin")
    assert "fail " not in wrote
    assert f"slurm{SLURM}" in machine.run("rpm -q gpuwaste-slurm-plugin")
    machine.run("systemctl is-active slurmctld")
    machine.wait("sinfo -h -o %T", 60, "the node to be idle", wanted="idle")
    machine.wait(SUBMITTED, 60, "a job with the token of a verdict", wanted="AdminComment=;gw=")


def test_remove(machine: Machine) -> None:
    """The plugin stays while slurm.conf names it; after the page's steps nothing of gpuwaste is left, and jobs run."""
    refused = machine.try_run("dnf remove gpuwaste-slurm-plugin")
    assert refused.returncode != 0
    assert "is in use: /etc/slurm/slurm.conf" in refused.stdout + refused.stderr
    assert "gpuwaste-slurm-plugin" in installed(machine)
    take(machine, PAGE, "Remove")
    assert installed(machine) == set()
    left = machine.run(
        f"find / -xdev {' '.join(f'-path {path} -prune -o' for path in SCENERY)} -name '*gpuwaste*' -print"
    )
    assert set(left.split()) == {"/etc/yum.repos.d/gpuwaste.repo"}
    machine.wait("sinfo -h -o %T", 60, "the node to be idle", wanted="idle")
    job = machine.run("sbatch --parsable --chdir=/tmp --gres=gpu:1 --wrap true", user="alice").strip()
    machine.wait(f"scontrol show job {job}", 60, "a job to end well", wanted="JobState=COMPLETED")
