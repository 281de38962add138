"""slurmctld is killed and the backup takes over: the job that runs goes on, new ones are advised on and confirmed."""

from typing import Final

from tools.field.net import cluster, jobs
from tools.field.net.hosts import BACKUP, CONTROLLER, Hosts
from tools.field.net.roles import well

NAME: Final = "takeover by the backup slurmctld"
_SECONDS: Final = 60


def run(hosts: Hosts) -> None:
    """Kill the controller's, submit to the backup, and give control back."""
    before = cluster.takeovers(hosts)
    first = jobs.play(hosts, "alice", _SECONDS, 90)
    machine = hosts.controller.machine
    machine.run("systemctl kill --signal=KILL slurmctld; systemctl stop slurmctld")
    cluster.controls(hosts, BACKUP, 120)
    cluster.expect_takeovers(hosts, before + 1)
    hosts.controller.ended(first, _SECONDS + 60)
    second = jobs.play(hosts, "bob", 20, 40)
    hosts.controller.ended(second, 80)
    advised(hosts, second)
    jobs.confirmed(hosts, first, "alice", (_SECONDS, 90), timeout_s=300)
    jobs.confirmed(hosts, second, "bob", (20, 40), timeout_s=300)
    machine.run("systemctl reset-failed slurmctld; systemctl start slurmctld")
    cluster.controls(hosts, CONTROLLER, 120)
    third = jobs.play(hosts, "alice", 15, 30)
    hosts.controller.ended(third, 80)
    advised(hosts, third)
    jobs.confirmed(hosts, third, "alice", (15, 30))
    cluster.idle(hosts)
    well(hosts, "after a takeover", timeout_s=120)


def advised(hosts: Hosts, job: int) -> None:
    """Wait until the hub has the verdict on a job's submission. Raises GpuwasteError."""
    script = f"gpuwaste policy verdicts | grep -w {job}"
    hosts.controller.machine.wait(script, 120, f"the verdict of job {job}", poll_s=2)
