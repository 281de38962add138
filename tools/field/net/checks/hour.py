"""A node whose clock is an hour ahead is refused with one clear line and loses nothing; right again, all goes on."""

from typing import Final

from tools.field.lab import expect
from tools.field.net import cluster, jobs
from tools.field.net.hosts import NODES, Hosts
from tools.field.net.roles import lines, sampled_anew, well

NAME: Final = "a clock an hour ahead"
_NODE: Final = NODES[1]
_AHEAD_S: Final = 3600.0
_SECONDS: Final = 40
_REFUSED: Final = "rows-not-shipped: "
_AGAIN: Final = "hub-reached-again: "


def run(hosts: Hosts) -> None:
    """Set it ahead while a job runs until the hub has refused more than once, then right, and run another job."""
    before = {word: len(lines(hosts, _NODE, word)) for word in (_REFUSED, _AGAIN)}
    job = jobs.play(hosts, "alice", _SECONDS, 80, [_NODE])
    machine = hosts.on(_NODE).machine
    with hosts.ahead(_NODE, _AHEAD_S):
        machine.wait("gpuwaste agent status", 90, "the hub to refuse", wanted="compare the clocks", poll_s=1)
        machine.wait("gpuwaste agent status | grep '^outbox_rows: [1-9]'", 60, "rows that wait", poll_s=1)
        doctor = [line for line in hosts.on(_NODE).doctor() if line.startswith("fail clock")]
        expect(len(doctor) == 1 and "chrony" in doctor[0], f"the doctor's line on the clock: {doctor}")
    sampled_anew(hosts, _NODE)
    machine.wait("gpuwaste agent status", 120, "the hub to have all rows", wanted="outbox_rows: 0", poll_s=1)
    refused = lines(hosts, _NODE, _REFUSED)[before[_REFUSED] :]
    expect(len(refused) == 1 and "compare the clocks" in refused[0], f"lines of the refusal: {refused}")
    expect(len(lines(hosts, _NODE, _AGAIN)) == before[_AGAIN] + 1, "no line that the hub was reached again")
    hosts.controller.ended(job, _SECONDS + 180)
    _kept(hosts, job)
    cluster.idle(hosts)
    later = jobs.play(hosts, "bob", 20, 60)
    hosts.controller.ended(later, 80)
    jobs.confirmed(hosts, later, "bob", (20, 60))
    well(hosts, "with the clock right again", timeout_s=120)


def _kept(hosts: Hosts, job: int) -> None:
    """Expect what was measured before the clock was wrong, and no waste in the time that it was."""
    (device,) = hosts.controller.measured(job, "alice")
    expect(device["confidence"] == "confirmed", f"job {job} is {device['confidence']}")
    known_s = device["gpu_s"] - device["unknown_s"] - device["pending_s"]
    expect(known_s > 0, f"job {job} has no second that is known: {device['unknown_by_reason_s']}")
    expect(device["wasted_s"] == 0, f"job {job} used its GPU and has {device['wasted_s']:g} s wasted")
