"""Slurm on the three machines: a controller with its database, two nodes, and a backup slurmctld on one of them."""

import re
from typing import Final

from tools.field import site
from tools.field.lab import expect
from tools.field.net.hosts import BACKUP, CONTROLLER, NODES, Hosts

DAEMONS: Final = {
    CONTROLLER: ("munge", "mariadb", "slurmdbd", "slurmctld"),
    **{node: ("munge", *(["slurmctld"] if node == BACKUP else []), "slurmd") for node in NODES},
}
"""Units, in the order in which a site starts them."""
CONFIGURATION: Final = "/etc/slurm/slurm.conf"
TAKEOVER_S: Final = 10
"""How long the backup waits for a controller that does not answer."""
_STATE: Final = "/srv/slurmctld"
_OWN: Final = ("SlurmctldHost", "StateSaveLocation", "AccountingStorageHost", "SlurmdTimeout", "NodeName")
"""Keys of the site on one machine that are others here."""


def slurm_conf(single: str) -> str:
    """Return slurm.conf of three hosts, made of that of a site on one machine."""
    (node,) = re.findall(r"^NodeName=\S+ (.*)$", single, re.MULTILINE)
    kept = [line for line in single.splitlines() if line.partition("=")[0] not in _OWN]
    lines = [
        f"SlurmctldHost={CONTROLLER}",
        f"SlurmctldHost={BACKUP}",
        f"StateSaveLocation={_STATE}",
        f"AccountingStorageHost={CONTROLLER}",
        f"SlurmctldTimeout={TAKEOVER_S}",
        "SlurmctldDebug=debug",  # the reasons of a backup that does not take over
        "SlurmdTimeout=300",
        f"NodeName={','.join(NODES)} {node}",
    ]
    partitions = [line for line in kept if line.startswith("PartitionName=")]
    return "\n".join([*(line for line in kept if line not in partitions), *lines, *partitions, ""])


def start(hosts: Hosts) -> None:
    """Give all of them one munge key and one slurm.conf, and start the daemons; return when both nodes are idle."""
    controller = hosts.machines[CONTROLLER]
    text = slurm_conf(controller.file(CONFIGURATION).read_text(encoding="utf-8"))
    hosts.write(CONFIGURATION, text)
    database = controller.file("/etc/slurm/slurmdbd.conf")
    database.write_text(database.read_text().replace("DbdHost=localhost", f"DbdHost={CONTROLLER}"), encoding="utf-8")
    controller.run(f"rm -f /etc/munge/munge.key; mungekey -c; install -d -o slurm -g slurm {_STATE}")
    key = controller.file("/etc/munge/munge.key").read_bytes()
    for machine in hosts.machines.values():
        machine.file("/etc/munge/munge.key").write_bytes(key)
        machine.run("chown munge:munge /etc/munge/munge.key; chmod 400 /etc/munge/munge.key")
        machine.run("systemctl enable munge 2>&1; systemctl restart munge")
    controller.run("systemctl enable --now mariadb 2>&1")
    controller.run(f"mariadb <<'SQL'\n{site.DATABASE}SQL")
    controller.run("systemctl enable --now slurmdbd 2>&1")
    controller.wait("timeout 5 sacctmgr -n show cluster", 60, "slurmdbd to answer")
    users = "\n".join(f"sacctmgr -i add user {user} account=science" for user in site.USERS)
    controller.run(f"sacctmgr -i add cluster field\nsacctmgr -i add account science\n{users}")
    for host, daemons in DAEMONS.items():
        hosts.on(host).machine.run(f"systemctl enable --now {' '.join(daemons)} 2>&1")
        if host == CONTROLLER:
            controller.wait("scontrol ping", 60, "slurmctld to answer", wanted="is UP")
    idle(hosts)


def idle(hosts: Hosts, timeout_s: float = 120) -> None:
    """Wait until both nodes take jobs and have none. Raises GpuwasteError."""
    words = f"[ $(sinfo -h -N -o %T | grep -cx idle) = {len(NODES)} ] && echo all idle; sinfo -N -o '%N %T %E'"
    hosts.controller.machine.wait(words, timeout_s, "both nodes to be idle", wanted="all idle", poll_s=1)


def controls(hosts: Hosts, host: str, timeout_s: float) -> None:
    """Wait until commands are answered by slurmctld of this host: the backup's does while the other is down.

    Raises GpuwasteError.
    """
    script = "timeout 20 squeue -h >/dev/null && timeout 20 scontrol ping"
    words = f"at {CONTROLLER} is {'UP' if host == CONTROLLER else 'DOWN'}"
    hosts.on(BACKUP).machine.wait(script, timeout_s, f"slurmctld of {host} in control", wanted=words, poll_s=1)


def takeovers(hosts: Hosts) -> int:
    """Return how often the backup took over, by its log."""
    return _logged(hosts, "Running as primary controller")


def restrained(hosts: Hosts) -> int:
    """Return how often the backup did not take over, although no slurmctld answered, since its heartbeat went on."""
    return _logged(hosts, "trusting the filesystem instead of the network")


def _logged(hosts: Hosts, words: str) -> int:
    return int(hosts.on(BACKUP).machine.run(f"grep -c '{words}' /var/log/slurm/slurmctld.log || :"))


def expect_takeovers(hosts: Hosts, wanted: int) -> None:
    """Raise CheckError unless the backup has taken over so often."""
    had = takeovers(hosts)
    expect(had == wanted, f"the backup slurmctld took over {had} times, not {wanted}")
