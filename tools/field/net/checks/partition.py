"""The controller with the hub is parted from both nodes while they run a job; afterwards nothing of it is missing."""

from typing import Final

from tools.field.net import cluster, jobs
from tools.field.net.hosts import CONTROLLER, NODES, Hosts
from tools.field.net.roles import no_longer, waits_with_rows, well

NAME: Final = "hub and nodes parted"
_SECONDS: Final = 30


def run(hosts: Hosts) -> None:
    """Part them for longer than the backup waits for a slurmctld; this one lives, so the backup must not take over."""
    before = cluster.takeovers(hosts)
    job = jobs.play(hosts, "bob", _SECONDS, 50)
    with hosts.cables.cut([(CONTROLLER, node) for node in NODES]):
        for node in NODES:
            no_longer(hosts, node, "gpuwaste-load", _SECONDS + 60)
            waits_with_rows(hosts, node, 90)
    cluster.controls(hosts, CONTROLLER, 60)
    cluster.expect_takeovers(hosts, before)
    hosts.controller.ended(job, 180)
    jobs.confirmed(hosts, job, "bob", (_SECONDS, 50), timeout_s=300)
    cluster.idle(hosts)
    well(hosts, "after a partition", timeout_s=120)
