"""The real advisor and hub on this release: a pattern of failures is learnt from its accounting, and then refused."""

from typing import Final

from gpuwaste.testing.cluster_process import ManagedProcess, wait_until
from tools.matrix.rig import Rig, expect

NAME: Final = "real advisor: learns, refuses, override"
JOB_SUBMIT: Final = "gpuwaste"
_POLICY: Final = """
[policy]
mode = "reject"
[targets.failure]
reject = 0.3
[budget]
rejects_per_user_per_day = 1000
[sample]
pass_ratio = 0.0
[floor]
precision = 0.0
"""
_SCRIPT: Final = "echo a script that always fails\nexit 3"
_JOB: Final = "--job-name=broken"
_LEARNS_S: Final = 60.0
_LATER_S: Final = 1.0


def run(rig: Rig) -> None:
    """Let a script fail until it is refused, with his own count; the override and another user's job pass."""
    daemons: list[ManagedProcess] = []
    rig.site.write_policies({"matrix.toml": _POLICY})
    try:
        daemons += [rig.site.start_hub(), rig.site.start_advisor()]
        _judged(rig)
        said = _refused(rig)
        expect("of your last" in said and "failed" in said, f"the reason is {said!r}")
        expect("--comment=gpuwaste:override=" in said, f"the override is not told: {said!r}")
        done = rig.submit(_JOB, "--comment=gpuwaste:override=deadline", script=_SCRIPT)
        expect(done.returncode == 0, f"the override does not help: {done.stderr.strip()}")
        expect(bool(rig.token(done.stdout.split(";")[0].strip())), "the overriding job has no token")
        expect(bool(rig.token(rig.accepted(script=_SCRIPT, user="bob"))), "another user's job has no token")
    finally:
        for daemon in reversed(daemons):
            daemon.stop()
        rig.site.write_policies({})


def _judged(rig: Rig) -> None:
    """Wait until verdicts are given: the breaker may have been open, the advisor without history."""

    def judged() -> bool:
        return bool(rig.token(rig.accepted("--hold")))

    wait_until(judged, _LEARNS_S, "a job with a verdict", rig.log_tail, poll_s=_LATER_S)


def _refused(rig: Rig) -> str:
    """Let the script fail again and again until it is refused; return what the terminal shows then.

    The hub reads accounting, and the advisor asks the hub: some more jobs run before they know.
    """
    said: list[str] = []

    def refused() -> bool:
        done = rig.submit(_JOB, script=_SCRIPT)
        said.append(done.stderr.strip())
        if done.returncode == 0:
            rig.cluster.wait_job(int(done.stdout.split(";")[0]), "FAILED")
        return done.returncode != 0

    wait_until(refused, _LEARNS_S, "the failing script to be refused", lambda: " | ".join(said[-3:]), poll_s=_LATER_S)
    return said[-1]
