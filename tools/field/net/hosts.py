"""The three machines: started side by side on one network, with a folder that all of them mount at /srv."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.testing.sim_build import build_native
from tools.field import site
from tools.field.base import NAME
from tools.field.lab import Lab
from tools.field.machine import Machine
from tools.field.net.cables import Cables
from tools.field.setup import FOLDER

CONTROLLER: Final = NAME
"""slurmctld, slurmdbd, MariaDB, hub, advisor; its name is the install page's."""
NODES: Final = ("gpu1", "gpu2")
BACKUP: Final = NODES[0]
"""A node with the backup slurmctld and an advisor."""
HOSTS: Final = {name: f"10.99.0.{number}" for number, name in enumerate((CONTROLLER, *NODES), 1)}
PRELOAD: Final = Path(site.__file__).with_name("preload") / "clock.c"
_LIBRARY: Final = "/usr/local/lib/libclock.so"
_OFFSET: Final = "/usr/local/lib/clock-offset"
_NS: Final = 1_000_000_000


@dataclass
class Hosts:
    """The machines at work, by name, and their cables."""

    labs: dict[str, Lab]
    machines: dict[str, Machine]
    cables: Cables

    @property
    def controller(self) -> Lab:
        """The machine with hub and slurmctld."""
        return self.labs[CONTROLLER]

    def on(self, name: str) -> Lab:
        """Return one machine."""
        return self.labs[name]

    def everywhere(self, script: str, timeout_s: float = 120) -> None:
        """Run a script on all of them, one after the other. Raises GpuwasteError."""
        for lab in self.labs.values():
            lab.machine.run(script, timeout_s=timeout_s)

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        """Write the same file on all of them."""
        for lab in self.labs.values():
            lab.machine.write(name, text, mode)

    def furnish(self) -> None:
        """Give all of them names of each other, the simulated driver, users, and a clock that can be set wrong."""
        native = build_native()
        lines = "".join(f"{address} {name}\n" for name, address in HOSTS.items())
        for machine in self.machines.values():
            site.furnish(machine, native)
            machine.file(_OFFSET).write_bytes(bytes(8))
        self.write("/etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n{lines}")
        self.write("/root/clock.c", PRELOAD.read_text(encoding="utf-8"))
        self.everywhere(f"gcc -O2 -shared -fPIC -o {_LIBRARY} /root/clock.c && echo {_LIBRARY} >>/etc/ld.so.preload")

    @contextmanager
    def ahead(self, name: str, seconds: float) -> Iterator[None]:
        """Set one machine's clock ahead of the others for a time."""
        file = self.machines[name].file(_OFFSET)
        set_offset(file, round(seconds * _NS))
        try:
            yield
        finally:
            set_offset(file, 0)


def set_offset(file: Path, offset_ns: int) -> None:
    """Change the offset in place: programs have mapped the file."""
    with file.open("r+b", buffering=0) as opened:
        opened.write(offset_ns.to_bytes(8, "little", signed=True))


@contextmanager
def started(name: str, lowers: Sequence[Path], packages: Path) -> Iterator[Hosts]:
    """Start the machines, and end them with their files. Raises GpuwasteError."""
    shared = FOLDER / f"{name}-shared"
    shutil.rmtree(shared, ignore_errors=True)
    shared.mkdir(parents=True)
    machines = {host: Machine(FOLDER / f"{name}-{host}") for host in HOSTS}
    with Cables() as cables:
        try:
            for number, (host, machine) in enumerate(machines.items(), 1):
                machine.remove()
                net = cables.plug(host, number)
                machine.order = {"name": host, "address": HOSTS[host], "net": net, "shared": str(shared)}
                machine.others = tuple(HOSTS.values())
                machine.boot(lowers)
            labs = {host: Lab(machine, lowers, packages) for host, machine in machines.items()}
            yield Hosts(labs, machines, cables)
        finally:
            for machine in machines.values():
                machine.down()
            for machine in machines.values():
                machine.remove()
            shutil.rmtree(shared, ignore_errors=True)
