"""The page's steps of removal: no package, unit or process of ours is left; configuration, state and Slurm stay."""

from typing import Final

from tools.field import page, site
from tools.field.lab import UNITS, Lab, expect

NAME: Final = "removal"


def run(lab: Lab) -> None:
    """Take slurm.conf's lines out, remove the packages, and run a job."""
    text = page.PAGE.read_text(encoding="utf-8")
    for step in page.steps(text, "Remove")[:2]:
        lab.machine.run(step.script, timeout_s=300)
    installed = lab.machine.run(
        "dpkg-query --show --showformat='${db:Status-Abbrev}${Package}\\n' 'gpuwaste*' | grep ^i || :"
    )
    expect(not installed, f"still installed: {installed}")
    units = lab.machine.run("systemctl list-units --plain --no-legend 'gpuwaste*'")
    expect(not units, f"units are left: {units}")
    processes = lab.machine.run("pgrep -u gpuwaste -a || :")
    expect(not processes, f"processes are left: {processes}")
    for unit in UNITS:
        expect(lab.machine.has(f"/var/lib/gpuwaste/{unit.removeprefix('gpuwaste-')}"), f"state of {unit} is gone")
    expect(lab.machine.has("/etc/gpuwaste/gpuwaste.toml"), "the configuration is gone")
    site.idle(lab.machine)
    lab.ended(lab.play("alice", 1, [], script="sleep 1"), 60)
