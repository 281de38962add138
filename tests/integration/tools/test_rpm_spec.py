"""The spec for the releases and processors that it names, and its build without a network."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tools.reference.before_install import is_told
from tools.rpm.build import SPEC, offline, spec_version
from tools.rpm.wheels import Target

MACHINES = ("x86_64", "aarch64")
RELEASES = (8, 9, 10)
COMMON = {
    "gpuwaste",
    "gpuwaste-hub",
    "gpuwaste-lake",
    "gpuwaste-lake-s3",
    "gpuwaste-runtime",
    "gpuwaste-runtime-onnx",
    "gpuwaste-sim",
    "gpuwaste-slurm-plugin",
}
NOARCH = {"gpuwaste-actor", "gpuwaste-agent", "gpuwaste-advisor", "gpuwaste-estimate", "gpuwaste-models"}

needs_rpm = pytest.mark.skipif(shutil.which("rpmspec") is None, reason="rpm is not installed")


def rpmspec(*words: str) -> str:
    """Ask rpm what it makes of the spec, which must not make it warn."""
    done = subprocess.run(["rpmspec", *words, str(SPEC)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@needs_rpm
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("release", RELEASES)
def test_enterprise_linux(machine: str, release: int) -> None:
    """On each Enterprise Linux the spec gives thirteen packages for Python 3.12, with the processor's own wheels."""
    on = ["--target", machine, "--define", f"rhel {release}", "--define", f"dist .el{release}"]
    listed = rpmspec("-q", *on, "--qf", "%{NAME} %{ARCH} %{VERSION} %{RELEASE}\n").splitlines()
    found = {line.split()[0]: line.split()[1:] for line in listed}
    assert found.keys() == COMMON | NOARCH
    assert {name for name, (arch, *_) in found.items() if arch == "noarch"} == NOARCH
    needs = rpmspec("-q", *on, "--qf", "[%{=NAME} needs %{REQUIRENEVRS}\n]").splitlines()
    for name, above in (("gpuwaste-lake", "gpuwaste-hub"), ("gpuwaste-lake-s3", "gpuwaste-lake")):
        wanted = {f"{name} needs {above} = {spec_version()}-1.el{release}", f"{name} needs glibc >= 2.28"}
        assert {line for line in needs if line.startswith(f"{name} ")} == wanted
    assert all(arch == machine for name, (arch, *_) in found.items() if name in COMMON)
    assert all(version == spec_version() and mark.endswith(f".el{release}") for _, version, mark in found.values())
    assert "python3.12\n" in rpmspec("-q", *on, "--requires")
    text = rpmspec("-P", *on)
    assert f"Source1:        gpuwaste-wheels-{Target('3.12', machine).name}.tar\n" in text
    assert not re.search(r"python3\.1[013-9]", text)
    assert ("50-backoff.conf" in text) == (release >= 10)  # systemd 257; 8 and 9 have 239 and 252


@needs_rpm
def test_an_interpreter_of_the_site() -> None:
    """The interpreter is one setting: packages, first lines and wheels follow it."""
    text = rpmspec("-P", "--define", "gpuwaste_python python3.13")
    assert "Requires:       python3.13\n" in text
    assert "gpuwaste-wheels-python3.13-" in text
    assert "|@INTERPRETER@|/usr/bin/python3.13|" in text


@needs_rpm
@pytest.mark.skipif(not Path("/etc/debian_version").exists(), reason="not a Debian")
@pytest.mark.parametrize("vendor", ["debian", "vendor"])
def test_on_debian_no_package_of_enterprise_linux_is_needed(vendor: str) -> None:
    """Debian 12's rpm calls its vendor debian, Debian 13's calls it vendor: neither asks for lua-devel."""
    assert rpmspec("-q", "--buildrequires", "--define", f"_vendor {vendor}") == ""


@needs_rpm
def test_no_other_processor() -> None:
    """A processor for which there are no wheels is refused before anything is built."""
    argv = ["rpmbuild", "--nobuild", "-bb", "--nodeps", "--target", "ppc64le", str(SPEC)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Architecture is not included: ppc64le" in done.stderr


def test_wheels_run_on_enterprise_linux_8() -> None:
    """Wheels are asked for by platforms of glibc 2.28 and older alone, for one interpreter and one processor."""
    options = Target("3.12", "aarch64").options
    assert "--python-version=3.12" in options
    versions = [tuple(map(int, found)) for found in re.findall(r"manylinux_(\d+)_(\d+)_aarch64", " ".join(options))]
    assert max(versions) == (2, 28)
    assert not any("x86_64" in option for option in options)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to leave the network")
def test_rpmbuild_has_no_network() -> None:
    """What rpmbuild runs sees no network but its own loopback."""
    command = offline()
    assert command
    seen = subprocess.run([*command, "cat", "/proc/self/net/dev"], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^ *([^ :|]+):", seen, re.MULTILINE) == ["lo"]


@needs_rpm
@pytest.mark.parametrize("release", RELEASES)
def test_the_page_has_what_the_packages_require(release: int) -> None:
    """Every requirement that rpm reads from the spec for Enterprise Linux is on docs/reference/before-install.md."""
    on = ["--define", f"rhel {release}", "--define", f"dist .el{release}"]
    needs = rpmspec("-q", *on, "--qf", "[%{=NAME}|%{REQUIRENEVRS}\n]").splitlines()
    settings = {"version": spec_version(), "release": f"1.el{release}", "gpuwaste_python": "python3.12"}
    headers = next(line.partition(" = ")[2] for line in needs if line.startswith("gpuwaste-slurm-plugin|slurm = "))
    settings |= {"slurm_requires": "slurm", "slurm_version": headers}
    missing = [line for line in needs if not is_told(line.partition("|")[0], line.partition("|")[2], settings)]
    assert missing == []
    assert len(needs) > 20
    assert not is_told("gpuwaste-hub", "python3-flask", settings)
