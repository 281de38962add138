"""A node whose clock is 3 s ahead is attributed as always, and no doctor complains of it."""

from typing import Final

from tools.field.net import jobs
from tools.field.net.hosts import NODES, Hosts
from tools.field.net.roles import sampled_anew, well

NAME: Final = "a clock 3 s ahead"
_NODE: Final = NODES[1]
_AHEAD_S: Final = 3.0
_SECONDS: Final = 30


def run(hosts: Hosts) -> None:
    """Set it ahead before the job begins, and right again after it."""
    with hosts.ahead(_NODE, _AHEAD_S):
        sampled_anew(hosts, _NODE)
        job = jobs.play(hosts, "alice", _SECONDS, 80)
        hosts.controller.ended(job, _SECONDS + 30)
        jobs.confirmed(hosts, job, "alice", (_SECONDS, 80), unknown_s=5 + _AHEAD_S)
        well(hosts, "with a clock 3 s ahead")
    sampled_anew(hosts, _NODE)
    well(hosts, "with the clock right again", timeout_s=60)
