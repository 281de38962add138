"""After a purge nothing of ours is left but the users, and after the page's last step they are gone too."""

from typing import Final

from tools.field import page
from tools.field.checks import removal
from tools.field.lab import Lab, expect

NAME: Final = "purge leaves nothing"
_OF_THE_LAB: Final = (
    "/proc", "/sys", "/dev", "/root", "/srv", "/etc/apt/sources.list.d/gpuwaste.list", "/var/lib/apt/lists",
    "/etc/systemd/system/gpuwaste-agent.service.d", "/usr/local/bin/gpuwaste-load", "/var/log/apt",
    "/var/log/dpkg.log", "/gpuwaste-matrix.recipe",
)  # fmt: skip
"""What the lab or the page's reader put there, and what is no file of a machine."""
_CHOSEN: Final = "/etc/sysusers.d/gpuwaste.conf"
"""The uid that the page tells to choose; its last step removes it."""


def run(lab: Lab) -> None:
    """Purge, look, take the last step, and look again."""
    if lab.machine.try_run("dpkg-query --list gpuwaste | grep -q ^ii").returncode == 0:
        removal.run(lab)
    text = page.PAGE.read_text(encoding="utf-8")
    lab.machine.run("rm /etc/gpuwaste/environment")  # the lab's own; no package knows it
    lab.machine.run(page.command(text, "remove with state"), timeout_s=120)
    left = set(_left(lab)) - {_CHOSEN}
    expect(not left, f"left after a purge: {sorted(left)[:10]}")
    lab.machine.run(page.steps(text, "Remove")[2].script)
    left = set(_left(lab))
    expect(not left, f"left after the last step: {sorted(left)[:10]}")
    expect(lab.machine.try_run("getent passwd gpuwaste").returncode != 0, "the user is left")
    failed = lab.machine.run("systemctl list-units --failed --plain --no-legend 'gpuwaste*'")
    expect(not failed, f"systemd still has {failed}")


def _left(lab: Lab) -> list[str]:
    pruned = " ".join(f"-path {path} -prune -o" for path in _OF_THE_LAB)
    return lab.machine.run(f"find / {pruned} -iname '*gpuwaste*' -print").split()
