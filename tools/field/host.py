"""What a machine's files need before its first start: a name and addresses, no daemon that waits, no other server."""

from pathlib import Path
from typing import Final

_APT: Final = """APT::Get::Assume-Yes "true";
Dpkg::Use-Pty "false";
Dpkg::Options { "--force-confold"; };
"""
"""What a sysadmin answers: yes, and to keep a file of configuration that they have changed."""
_MASKED: Final = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer",
    "systemd-networkd-wait-online.service", "console-getty.service",
)  # fmt: skip
"""What would reach for Debian's servers, and what waits for a network that is there from the beginning."""
_LATER: Final = ("mariadb", "munge", "slurmctld", "slurmd", "slurmdbd", "slurmrestd")
"""Daemons that a sysadmin starts when their files are written."""


def prepare(root: Path, name: str, address: str, resolver: str) -> None:
    """Write the files of a machine that was never started; one that was is left as it is."""
    if (root / "etc/hostname").is_file() and (root / "etc/hostname").read_text(encoding="utf-8") == f"{name}\n":
        return
    texts = {
        "etc/hostname": f"{name}\n",
        "etc/hosts": f"127.0.0.1 localhost\n::1 localhost\n{address} {name}\n",
        "etc/resolv.conf": f"nameserver {resolver}\noptions timeout:1 attempts:1\n",
        "etc/systemd/journald.conf.d/field.conf": "[Journal]\nStorage=persistent\nRateLimitBurst=0\n",
        "etc/apt/apt.conf.d/90field": _APT,
    }
    for name_of, text in texts.items():
        target = root / name_of
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.write_text(text, encoding="utf-8")
    for unit in _MASKED:
        _mask(root / "etc/systemd/system" / unit)
    for daemon in _LATER:
        for link in (root / "etc/systemd/system").glob(f"*.wants/{daemon}.service"):
            link.unlink()
    for path in (root / "usr/sbin/policy-rc.d", root / "etc/apt/sources.list"):
        path.unlink(missing_ok=True)


def _mask(unit: Path) -> None:
    unit.unlink(missing_ok=True)
    unit.symlink_to("/dev/null")
