"""A node's cable is cut while a job runs on it, and its rows arrive once it is mended: none is lost, none is twice."""

from typing import Final

from tools.field.lab import expect
from tools.field.net import cluster, jobs
from tools.field.net.hosts import HOSTS, NODES, Hosts
from tools.field.net.roles import AGENT, no_longer, waits_with_rows, well

NAME: Final = "a node's network cut"
_NODE: Final = NODES[1]
_SECONDS: Final = 20


def run(hosts: Hosts) -> None:
    """Cut it until the job has ended there and its rows wait in the node's outbox."""
    job = jobs.play(hosts, "alice", _SECONDS, 60, [_NODE])
    before = hosts.on(_NODE).unit(AGENT, "MainPID")
    with hosts.cables.cut([(_NODE, host) for host in HOSTS if host != _NODE]):
        no_longer(hosts, _NODE, "gpuwaste-load", _SECONDS + 30)
        waits_with_rows(hosts, _NODE, 90)
    hosts.controller.ended(job, 180)
    jobs.confirmed(hosts, job, "alice", (_SECONDS, 60), [_NODE], timeout_s=300)
    expect(before == hosts.on(_NODE).unit(AGENT, "MainPID"), f"the agent of {_NODE} was started again")
    cluster.idle(hosts)
    well(hosts, "after a cut", timeout_s=120)
