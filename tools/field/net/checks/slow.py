"""On a network with 200 ms for each frame, and 5 % of them lost, a job over both nodes is confirmed all the same."""

from typing import Final

from tools.field.lab import expect
from tools.field.net import jobs
from tools.field.net.hosts import Hosts
from tools.field.net.roles import well

NAME: Final = "slow network: 200 ms, 5 % loss"
_SECONDS: Final = 30


def run(hosts: Hosts) -> None:
    """Slow it down before the job is submitted, and until the hub has all of it."""
    before = hosts.cables.counts()
    with hosts.cables.slow():
        job = jobs.submit(hosts, "bob", _SECONDS, 70)
        hosts.controller.ended(job, _SECONDS + 120)
        jobs.confirmed(hosts, job, "bob", (_SECONDS, 70), timeout_s=300)
        well(hosts, "on a slow network", timeout_s=120)
    lost, sent = (hosts.cables.counts()[key] - before[key] for key in ("lost", "sent"))
    expect(lost > 0.02 * sent, f"{lost} frames were lost and {sent} sent, not 5 %")
