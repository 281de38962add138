"""What an RPM requires in Debian's names, and which package gets which override of lintian."""

import subprocess
from pathlib import Path

import pytest
from tools.deb.control import depends, overrides_of, scripts
from tools.deb.header import RpmHeader, RpmNeed

from gpuwaste.core.errors import GpuwasteError


def test_needs_have_debian_names() -> None:
    """Ours keep name and version, a release of Slurm is any revision of it, and rpm's own needs are left out."""
    needs = [
        RpmNeed("gpuwaste-runtime", "=", "0.1.0-1"),
        RpmNeed("python3.11", "", ""),
        RpmNeed("glibc", ">=", "2.28"),
        RpmNeed("slurm", "=", "22.05.8"),
        RpmNeed("shadow-utils", "", ""),
        RpmNeed("rpmlib(PayloadIsZstd)", "<=", "5.4.18-1"),
        RpmNeed("libc.so.6(GLIBC_2.34)(64bit)", "", ""),
        RpmNeed("/bin/sh", "", ""),
        RpmNeed("user(gpuwaste)", "", ""),
        RpmNeed("group(gpuwaste-actor)", "", ""),
    ]
    assert depends(needs) == [
        "gpuwaste-runtime (= 0.1.0-1)",
        "libc6 (>= 2.28)",
        "libstdc++6",
        "python3.11",
        "slurm-wlm-basic-plugins (<< 22.05.9~)",
        "slurm-wlm-basic-plugins (>= 22.05.8)",
    ]


def test_a_need_without_a_debian_name_stops_the_build() -> None:
    """A new requirement of the spec cannot be lost on the way."""
    with pytest.raises(GpuwasteError, match="no Debian name for openssl"):
        depends([RpmNeed("openssl", ">=", "3")])
    with pytest.raises(GpuwasteError, match=r"no Debian name for user\(slurm\)"):
        depends([RpmNeed("user(slurm)", "", "")])


def test_overrides_go_to_the_packages_that_are_named() -> None:
    """A block is for all packages or for those in its brackets; a name that begins another's is not it."""
    text = "# first\n[*]\n# why\nall-tag\n\n[gpuwaste-hub gpuwaste-agent]\nsome-tag\n"
    assert overrides_of("gpuwaste", text) == "# why\nall-tag\n"
    assert overrides_of("gpuwaste-hub", text) == "# why\nall-tag\nsome-tag\n"


def preinst(python: str) -> subprocess.CompletedProcess[str]:
    """Run, on this host, the preinst of a package that needs an interpreter."""
    need = RpmNeed(python, "", "")
    header = RpmHeader(Path("x"), "gpuwaste-runtime", "1", "x86_64", "", "", "", "", 0, (need,), (), (), {})
    argv = ["sh", "-c", scripts(header)["preinst"], "preinst", "install"]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="the host has no Python of its own")
def test_a_host_with_another_python_is_refused_in_one_line() -> None:
    """The line has the Python of the package, the host's, and what to do; with the same Python there is none."""
    own = Path("/usr/bin/python3").resolve().name
    done = preinst(own)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    done = preinst("python3.99")
    assert done.returncode == 1
    assert done.stderr.startswith("gpuwaste-runtime: built for python3.99, but this host (")
    assert f") has {own}: install packages that were built on this release with make deb" in done.stderr
    assert done.stderr.count("\n") == 1
