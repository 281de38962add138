"""Debian packages of this tree on Debian 13, built there and installed there by its own dpkg, with its own Python."""

from pathlib import Path
from typing import Final

import pytest
from tools.deb import in_tree
from tools.deb.build import current
from tools.rpm.build import spec_version
from tools.trees import store, view

from gpuwaste.testing import cluster_host

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]  # the first test makes the tree and the packages
RELEASE: Final = "24.11"
INSTALLED: Final = ("gpuwaste-runtime", "gpuwaste", "gpuwaste-agent", "gpuwaste-hub", "gpuwaste-slurm-plugin")


@pytest.fixture(scope="module")
def folder() -> Path:
    """Return the folder of the packages for Debian 13: those that are there for the same files, else made now."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    return in_tree.packages(store.folder(), RELEASE)


def on_debian_13(script: str, packages: Path) -> str:
    """Run a shell script on Debian 13 without our packages; what it changes goes with it."""
    return view.run(f"{RELEASE}.build", ["sh", "-ec", script], timeout_s=300, readable=[packages], cwd=packages)


def test_they_install_and_run_on_their_release(folder: Path) -> None:
    """Debian 13's dpkg takes them with its own dependencies alone, each file is as shipped, and the command runs."""
    files = " ".join(f"{name}_*.deb" for name in INSTALLED)
    script = (
        f"dpkg -i {files} >/dev/null; dpkg --verify {' '.join(INSTALLED)}; gpuwaste --version; gpuwaste config check"
    )
    script += "; head -1 /usr/bin/gpuwaste; id -u gpuwaste; slurmctld -V; dpkg-query -W gpuwaste-slurm-plugin"
    version, checked, first, user, slurm, plugin = on_debian_13(script, folder).splitlines()
    assert version == f"gpuwaste {spec_version()}"
    assert "/etc/gpuwaste/gpuwaste.toml" in checked
    assert first.startswith("#!/usr/bin/python3.13")
    assert user == "463"
    assert plugin.endswith(f"slurm{slurm.removeprefix('slurm-wlm ')}")


def test_packages_of_another_release_are_refused_in_one_line(folder: Path) -> None:
    """Packages for another Python leave no file, and the line names both Pythons and what to do."""
    (runtime,) = [package for package in current() if package.name.startswith("gpuwaste-runtime_")]
    script = f"dpkg -i {runtime.name} && exit 1; test ! -e /usr/lib/gpuwaste || exit 1"
    lines = [line for line in on_debian_13(script, runtime.parent).splitlines() if "built for" in line]
    assert len(lines) == 1
    assert (
        "this host (Debian GNU/Linux 13 (trixie)) has python3.13: install packages that were built on this" in lines[0]
    )
    assert folder.is_dir()
