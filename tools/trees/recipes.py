"""What each tree is made of: base trees by their suite, layers by the packages that apt adds."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Base:
    """A whole system of one Debian suite, made by debootstrap."""

    name: str
    suite: str
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layer:
    """What apt adds to a base tree: the upper directory of an overlay, of no use without its base."""

    name: str
    base: str
    packages: tuple[str, ...]


SLURM: Final = (
    "munge", "slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "slurmdbd", "slurmrestd",
    "slurm-wlm-mysql-plugin", "slurm-wlm-jwt-plugin", "libslurm-dev", "gcc", "libc6-dev", "make", "pkg-config",
    "liblua5.1-0-dev",
)  # fmt: skip
"""Slurm's daemons and commands, and what builds the plugins against its own headers."""
_FIELD: Final = (
    "systemd", "systemd-sysv", "dbus", "mariadb-server", "iproute2", "procps", "python3", "curl", "dpkg-dev", "less",
    "strace",
)  # fmt: skip
"""What a host has that is administered: an init, a database, the interpreter, and tools of the install page."""
_PACKAGES_OF_BUILD: Final = Path(__file__).parents[1] / "install-debian-packages"


def _build() -> tuple[str, ...]:
    """Return what `make deb` installs before it builds, and the one module that its tools import from the venv."""
    found = re.search(r"^BUILD=\((.*?)\)", _PACKAGES_OF_BUILD.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if not found:
        raise ConfigError(f"{_PACKAGES_OF_BUILD}: no line BUILD=(...)")
    return (*found[1].split(), "python3-packaging")


_KERNEL: Final = ("linux-image-cloud-amd64", "initramfs-tools", "zstd", "udev", "kmod")
"""What the same host has where it is a machine with a kernel of its own."""
_QEMU: Final = ("qemu-system-x86", "qemu-utils", "e2fsprogs")
"""What runs such a machine, and makes its disk of a folder."""

RECIPES: Final[dict[str, Base | Layer]] = {
    recipe.name: recipe
    for recipe in (
        Base("24.11", "trixie", SLURM),
        Base("26.05", "sid", SLURM),
        Layer("24.11.field", "24.11", _FIELD),
        Layer("24.11.build", "24.11", _build()),
        Layer("24.11.vm", "24.11", (*_FIELD, *_KERNEL)),
        Layer("24.11.qemu", "24.11", _QEMU),
    )
}


def named(name: str) -> Base | Layer:
    """Return a recipe by its name. Raises ConfigError."""
    if name not in RECIPES:
        raise ConfigError(f"trees: no recipe {name!r}; there are: {', '.join(RECIPES)}")
    return RECIPES[name]
