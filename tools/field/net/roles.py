"""Takes the install page's steps on three hosts, by their roles: administration host, GPU nodes, hosts of slurmctld."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.testing.cluster_process import wait_until
from tools.field import install, page
from tools.field.lab import Lab
from tools.field.net.hosts import BACKUP, CONTROLLER, NODES, Hosts

AGENT: Final = "gpuwaste-agent"
ADVISOR: Final = "gpuwaste-advisor"
HUB: Final = "gpuwaste-hub"
UNITS: Final = {
    CONTROLLER: (HUB, ADVISOR),
    **{node: (AGENT, *([ADVISOR] if node == BACKUP else [])) for node in NODES},
}
"""Our units on each host."""
COPIED: Final = "/etc/gpuwaste/gpuwaste.toml.d/site.toml"
"""What the page tells to copy from the administration host to the others."""
_HURRIED: Final = "[hub]\nsacct_every_s = 5\n\n[agent]\nship_every_s = 15\n"


def install_all(hosts: Hosts) -> None:
    """Take all steps, in the page's order. Raises GpuwasteError."""
    text = page.PAGE.read_text(encoding="utf-8")
    install.offer(hosts.controller)
    for lab in hosts.labs.values():
        lab.machine.run(f"mkdir -p {install.CHECKOUT}")
        install.simulate(lab.machine)
    first, *others = page.steps(text, "A repository")
    take(hosts, [CONTROLLER], [first])
    take(hosts, hosts.labs, others)
    take(hosts, hosts.labs, page.steps(text, "The user, with the same uid everywhere"))
    take(hosts, [CONTROLLER], page.steps(text, "Administration host"))
    for host in NODES:
        _copy(hosts, host)
    for part, names in (("GPU nodes", NODES), ("Hosts of slurmctld", (CONTROLLER, BACKUP))):
        _part(hosts, page.steps(text, part), names)


def _copy(hosts: Hosts, host: str) -> None:
    text = hosts.machines[CONTROLLER].file(COPIED).read_text(encoding="utf-8")
    hosts.on(host).machine.write(COPIED, text)


def _part(hosts: Hosts, steps: Sequence[page.Step], names: Sequence[str]) -> None:
    """Take a part of which the first script installs, a text is for slurm.conf of all hosts, and the last looks."""
    (text,) = (step for step in steps if step.file)
    at = list(steps).index(text)
    take(hosts, names, steps[:at])
    take(hosts, hosts.labs, [text])
    take(hosts, names, steps[at + 1 :])


def take(hosts: Hosts, names: Sequence[str] | dict[str, Lab], steps: Sequence[page.Step]) -> None:
    """Take steps, each on all of these hosts before the next. Raises GpuwasteError."""
    for step in steps:
        for name in names:
            install.take_step(hosts.on(name), step)


def well(hosts: Hosts, when: str, timeout_s: float = 30) -> None:
    """Expect doctors without fail or warn on all hosts, within a time. Raises GpuwasteError."""
    for name, lab in hosts.labs.items():
        lab.well(f"of {name} {when}", timeout_s)


def no_longer(hosts: Hosts, node: str, program: str, timeout_s: float) -> None:
    """Wait until no process of a program is left on a node. Raises GpuwasteError."""
    hosts.on(node).machine.wait(f"! pgrep {program}", timeout_s, f"{program} to end on {node}", poll_s=1)


def waits_with_rows(hosts: Hosts, node: str, timeout_s: float) -> None:
    """Wait until a node's agent has rows that the hub does not have. Raises GpuwasteError."""
    script = "gpuwaste agent status | grep '^outbox_rows: [1-9]'"
    hosts.on(node).machine.wait(script, timeout_s, f"rows in the outbox of {node}", poll_s=1)


def lines(hosts: Hosts, node: str, word: str) -> list[str]:
    """Return the lines of a node's agent that begin with a word, the oldest first."""
    journal = hosts.on(node).machine.run(f"journalctl --unit={AGENT} --output=cat")
    return [line for line in journal.splitlines() if line.startswith(word)]


def sampled_anew(hosts: Hosts, node: str) -> None:
    """Wait until a node's agent has sampled twice more: the interval in which its clock was set is over.

    Raises GpuwasteError.
    """
    machine = hosts.on(node).machine

    def samples() -> int:
        return int(machine.run("gpuwaste agent status | sed -n 's/^samples: //p'"))

    before = samples()
    wait_until(lambda: samples() >= before + 2, 60, f"two samples of {node}", poll_s=1)


def hurry(hosts: Hosts) -> None:
    """Let the hub read accounting, and agents send rows, more often than by default: checks are short."""
    hosts.write(f"{Path(COPIED).parent}/zz-hurry.toml", _HURRIED)
    for name, units in UNITS.items():
        hosts.on(name).machine.run(f"systemctl restart {' '.join(units)}")
