"""Takes the install page's steps on a machine, in the page's order; what the page does not have is the lab's own."""

import shutil
import tomllib
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.field import page, site
from tools.field.lab import Lab
from tools.field.machine import Machine

CHECKOUT: Final = "/root/checkout"
"""Where commands are typed: a checkout after `make deb`."""
PARTS: Final = (
    "A repository", "The user, with the same uid everywhere", "Administration host", "GPU nodes", "Hosts of slurmctld",
)  # fmt: skip
_LIMIT_S: Final = 300.0
_ENVIRONMENT: Final = f"GPUWASTE_SIM_DIR={site.SIM}\n"
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
    target = lab.machine.file(f"{CHECKOUT}/build/deb")
    target.mkdir(parents=True, exist_ok=True)
    packages = sorted(lab.packages.glob("*.deb"))
    if not packages:
        raise GpuwasteError(f"field: no Debian packages in {lab.packages}")
    for package in packages:
        shutil.copy(package, target)
    lab.machine.run("mkdir -p /srv/gpuwaste")


def simulate(machine: Machine) -> None:
    """Let the daemons of a machine find its simulated GPUs."""
    machine.write("/etc/gpuwaste/environment", _ENVIRONMENT)
    machine.write("/etc/systemd/system/gpuwaste-agent.service.d/field.conf", _WRITES_THERE)


def take(lab: Lab, text: str, part: str) -> str:
    """Take all steps below a heading of the page; return what they wrote. Raises GpuwasteError."""
    return "".join(take_step(lab, step) for step in page.steps(text, part))


def take_step(lab: Lab, step: page.Step) -> str:
    """Take one step; return what it wrote. Raises GpuwasteError."""
    if step.script:
        return lab.machine.run(f"cd {CHECKOUT}\n{step.script}", timeout_s=_LIMIT_S)
    _write(lab, step)
    return ""


def _write(lab: Lab, step: page.Step) -> None:
    """Write a block into its file: keys into one of TOML, lines at the end of another; a missing file is made."""
    path = lab.machine.file(step.file)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if before and step.file.endswith(".toml"):
        tomllib.loads(before)
        lab.machine.write(step.file, page.with_keys(before, step.text))
    else:
        lab.machine.write(step.file, before + step.text)
