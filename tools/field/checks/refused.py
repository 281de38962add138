"""The plugin's package cannot be removed while slurm.conf names it, and all goes on as it was."""

from typing import Final

from tools.field.lab import Lab, expect

NAME: Final = "removal refused"


def run(lab: Lab) -> None:
    """Try it; the reason names the file and what to do first."""
    done = lab.machine.try_run("apt-get remove gpuwaste-slurm-plugin")
    said = done.stdout + done.stderr
    expect(done.returncode != 0, f"removed while slurm.conf names it: {said[-500:]}")
    expect("is in use: /etc/slurm/slurm.conf" in said, f"the reason is not told: {said[-500:]}")
    state = lab.machine.run("dpkg-query --show --showformat='${db:Status-Status}' gpuwaste-slurm-plugin")
    expect(state == "installed", f"the package is {state}")
    lab.ended(lab.play("alice", 1, [], script="sleep 1"), 60)
