"""Takes the install page's steps on a machine, in the page's order; what the page does not have is the lab's own."""

import re
import tomllib
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.field import page, site
from tools.field.base import AnyMachine
from tools.field.lab import UNITS, Lab

CHECKOUT: Final = "/root/checkout"
"""Where commands are typed: a checkout after `make deb`."""
PARTS: Final = (
    "A repository", "The user, with the same uid everywhere", "Administration host", "GPU nodes", "Hosts of slurmctld",
)  # fmt: skip
_LIMIT_S: Final = 300.0
_ENVIRONMENT: Final = f"GPUWASTE_SIM_DIR={site.SIM}\n"
_SLOW: Final = "[Service]\nTimeoutStartSec=1h\nWatchdogSec=1h\n"
"""Of a slow machine: what a unit may take to start and between signs of life are limits of time too."""
_WRITES_THERE: Final = f"[Service]\nReadWritePaths={site.SIM}\n"


def install(lab: Lab) -> None:
    """Take all steps that lead to a site with gpuwaste. Raises GpuwasteError."""
    offer(lab)
    simulate(lab.machine)
    text = page.PAGE.read_text(encoding="utf-8")
    for part in PARTS:
        lab.said[part] = take(lab, text, part)


def offer(lab: Lab) -> None:
    """Put the packages where `make deb` leaves them. Raises GpuwasteError."""
    if not list(lab.packages.glob("*.deb")):
        raise GpuwasteError(f"field: no Debian packages in {lab.packages}")
    lab.machine.put(lab.packages, f"{CHECKOUT}/build/deb")
    lab.machine.run("mkdir -p /srv/gpuwaste")


def simulate(machine: AnyMachine) -> None:
    """Let the daemons of a machine find its simulated GPUs, and give them the time of a slow one."""
    machine.write("/etc/gpuwaste/environment", _ENVIRONMENT)
    machine.write("/etc/systemd/system/gpuwaste-agent.service.d/field.conf", _WRITES_THERE)
    if machine.pace > 1:
        for unit in UNITS:
            machine.write(f"/etc/systemd/system/{unit}.service.d/slow.conf", _SLOW)


def take(lab: Lab, text: str, part: str) -> str:
    """Take all steps below a heading of the page; return what they wrote. Raises GpuwasteError."""
    return "".join(take_step(lab, step) for step in page.steps(text, part))


def take_step(lab: Lab, step: page.Step) -> str:
    """Take one step; return what it wrote. Raises GpuwasteError."""
    if step.script:
        script = re.sub(r"^gpuwaste doctor$", lab.machine.doctor, step.script, flags=re.MULTILINE)
        return lab.machine.run(f"cd {CHECKOUT}\n{script}", timeout_s=_LIMIT_S)
    _write(lab, step)
    return ""


def _write(lab: Lab, step: page.Step) -> None:
    """Write a block into its file: keys into one of TOML, lines at the end of another; a missing file is made."""
    before = lab.machine.read(step.file)
    if before and step.file.endswith(".toml"):
        tomllib.loads(before)
        lab.machine.write(step.file, page.with_keys(before, step.text))
    else:
        lab.machine.write(step.file, before + step.text)
