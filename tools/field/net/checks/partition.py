"""The controller with the hub is parted from both nodes while they run a job; afterwards nothing of it is missing."""

from typing import Final

from gpuwaste.testing.cluster_process import wait_until
from tools.field.net import cluster, jobs
from tools.field.net.hosts import CONTROLLER, NODES, Hosts
from tools.field.net.roles import no_longer, waits_with_rows, well

NAME: Final = "hub and nodes parted"
_SECONDS: Final = 30


def run(hosts: Hosts) -> None:
    """Part them for longer than the backup waits for a slurmctld; this one lives, so the backup must not take over."""
    before, restrained = cluster.takeovers(hosts), cluster.restrained(hosts)
    job = jobs.play(hosts, "bob", _SECONDS, 50)
    with hosts.cables.cut([(CONTROLLER, node) for node in NODES]):
        for node in NODES:
            no_longer(hosts, node, "gpuwaste-load", _SECONDS + 60)
            waits_with_rows(hosts, node, 90)
        wait_until(lambda: cluster.restrained(hosts) > restrained, 60, "the backup not to take over", poll_s=1)
    cluster.controls(hosts, CONTROLLER, 60)
    cluster.expect_takeovers(hosts, before)
    hosts.controller.ended(job, 180)
    jobs.confirmed(hosts, job, "bob", (_SECONDS, 50), timeout_s=300)
    cluster.idle(hosts)
    well(hosts, "after a partition", timeout_s=120)
