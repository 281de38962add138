"""What an RPM requires in Debian's names, and which package gets which override of lintian."""

import pytest
from tools.deb.control import depends, overrides_of
from tools.deb.header import RpmNeed

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
