"""A job over both nodes is confirmed on each of them, and the doctor of every host has nothing to say but ok."""

from typing import Final

from tools.field.net import jobs
from tools.field.net.hosts import Hosts
from tools.field.net.roles import well

NAME: Final = "a job over both nodes"
_SECONDS: Final = 25


def run(hosts: Hosts) -> None:
    """Play it, and ask the doctors while it runs."""
    job = jobs.play(hosts, "alice", _SECONDS, 80)
    well(hosts, "while a job runs")
    hosts.controller.ended(job, _SECONDS + 30)
    jobs.confirmed(hosts, job, "alice", (_SECONDS, 80))
    well(hosts, "after a job")
