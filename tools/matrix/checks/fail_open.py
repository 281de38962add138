"""No failure of the advisor costs a job: no socket, silence, garbage, another version, the kill switch."""

import contextlib
from typing import Final

from tools.matrix.rig import Rig, expect, says

NAME: Final = "fail-open"
JOB_SUBMIT: Final = "gpuwaste"
WAYS: Final = ("hung", "half", "garbage", "megabyte", "other-version", "wrong-types", "closing")
_EACH: Final = 2


def run(rig: Rig) -> None:
    """Submit under each fault: accepted, silent, no token; slurmctld stays the same process."""
    pid = rig.cluster.processes["slurmctld"].pid
    fail_open(rig)
    expect(rig.cluster.processes["slurmctld"].pid == pid, "slurmctld was restarted")
    expect(rig.cluster.processes["slurmctld"].alive(), "slurmctld ended")


def fail_open(rig: Rig) -> None:
    """Go through all faults, for whatever plugin is loaded."""
    for way in ("absent", *WAYS):
        with contextlib.ExitStack() as stack:
            if way != "absent":
                stack.enter_context(rig.faulty(way))
            for _ in range(_EACH):
                _passes(rig, way)
    with rig.advisor(says("reject", "never seen")) as advisor:
        rig.site.kill_switch.touch()
        _passes(rig, "kill switch")
        expect(not advisor.requests, "the advisor was asked in spite of the kill switch")
        rig.site.kill_switch.unlink()
        done = rig.submit()
    expect(done.returncode != 0, "after the kill switch was removed the plugin does not ask again")


def _passes(rig: Rig, way: str) -> None:
    try:
        job = rig.accepted()
    except Exception as error:
        raise type(error)(f"{way}: {error}") from error
    token = rig.token(job)
    expect(not token, f"{way}: the job carries the token {token}")
