"""A user with an account and nothing else, who tries to freeze submission and the hub by texts that they choose.

Each attack runs in a loop on a real slurmctld and against the real hub, while others go on: a job that the policy
refuses is refused, the hub answers, and the daemons' CPU stays that of ordinary questions.
"""

import itertools
import os
import urllib.request
from pathlib import Path
from typing import Final

import pytest
from tests.system.submit_scene import FAILING, Scene, make_submission

from gpuwaste.testing.cluster import ManagedProcess
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient
from gpuwaste.testing.submit_load import SbatchCall, SubmitLoad, submit

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]  # a cluster, an advisor and a flood of submissions

_SCRIPT_B: Final = 32 * 1024  # what the plugin sends of a script
_TRIES: Final = 12
_UNITS: Final = ("\n", " \n\t", "#\n", "xmpirun ", "m", "|| ", "#SBATCH --comment=[ \n", "set\n", "\\", "\xff", "7")


def _script(number: int) -> str:
    """Return a script of the most that is sent, another one each time, so that nothing of it is known already."""
    unit = _UNITS[number % len(_UNITS)]
    return f"#!/bin/sh\n#{number}{unit * (_SCRIPT_B // len(unit.encode()))}\nexit 0\n"


def _newlines(number: int) -> str:
    return f"#!/bin/sh\n#{number}" + "\n" * _SCRIPT_B


def _wide(number: int) -> tuple[str, ...]:
    """Return arguments whose texts are as long as slurmctld takes them."""
    unit = ("[", "1,", "\n", " ", "'", ";gpuwaste:override=", "-", "\t")[number % 8]
    text = f"{number}{unit * 1000}"[:1000]
    return (f"--comment={text}", f"--job-name={text}", f"--wckey={text}")


class _Attack(SubmitLoad):
    """Submissions of one user, two at a time, as fast as sbatch lets them."""

    def __init__(self, scene: Scene, kind: str, user: str = "bob") -> None:
        numbers = itertools.count()

        def make(_user: str, name: str, _doomed: bool) -> SbatchCall:
            number = next(numbers)
            if kind == "newlines":
                return SbatchCall(user, name, ("--test-only",), _newlines(number))
            if kind == "scripts":
                return SbatchCall(user, name, ("--test-only",), _script(number))
            if kind == "texts":
                return SbatchCall(user, name, ("--test-only", *_wide(number)))
            return SbatchCall(user, name, ("--test-only", "/dev/stdin", "a " * 20_000, "\n" * 20_000))

        super().__init__(scene.cluster, submitters=2, make=make, timeout_s=300)


@pytest.mark.parametrize("kind", ["newlines", "scripts", "texts", "submit lines"])
def test_no_text_of_a_user_lets_a_refused_job_pass(scene: Scene, kind: str) -> None:
    """While a user submits hostile scripts, names or lines in a loop, a job that a policy refuses is refused."""
    scene.wait_verdicts()
    with _Attack(scene, kind) as attack:
        outcomes = []
        for number in range(_TRIES):
            _goes_on(attack, attack.count() + 1)
            outcomes.append(submit(scene.cluster, make_submission("alice", f"load{number}.0", doomed=True)))
    assert attack.count() >= _TRIES
    passed = [outcome.job_id for outcome in outcomes if outcome.job_id is not None]
    assert passed == [], scene.tails()
    assert all("gpuwaste" in outcome.message for outcome in outcomes)


def test_a_hostile_script_is_no_way_around_a_refusal(scene: Scene) -> None:
    """The script that failed is refused whatever name and comment of the user's surround it."""
    scene.wait_verdicts()
    for number in range(8):
        (comment, _, wckey) = _wide(number)
        if "override" in comment:
            continue
        doomed = make_submission("alice", f"load{number}.0", doomed=True)
        outcome = submit(scene.cluster, SbatchCall("alice", doomed.name, (comment, wckey), FAILING, doomed=True))
        assert outcome.job_id is None, (comment[:80], outcome.message)


def test_no_question_to_the_hub_keeps_others_waiting(scene: Scene) -> None:
    """While a user asks for predictions of hostile scripts, health is answered and the hub's CPU stays small."""
    hub = scene.site.hub
    assert hub is not None
    home = scene.cluster.directory / "home" / "bob"
    before_s = _cpu_s(hub)
    for number in range(len(_UNITS)):
        script = home / f"hostile{number}.sh"
        script.write_text(f"#!/bin/sh\n#{number}" + _UNITS[number] * (60_000 // len(_UNITS[number])), encoding="utf-8")
        done = scene.site.gpuwaste("predict", str(script), user="bob", check=False)
        assert "defect" not in done.stderr
        with urllib.request.urlopen(f"http://127.0.0.1:{scene.site.hub_port}/v1/health", timeout=patient(60)) as answer:
            assert answer.status == 200
    assert _cpu_s(hub) - before_s < 20.0


def _goes_on(attack: SubmitLoad, target: int) -> None:
    """Wait until another hostile submission has ended."""
    wait_until(lambda: attack.count() >= target, 300, "a hostile submission", poll_s=0.02)


def _cpu_s(process: ManagedProcess) -> float:
    """Return the CPU seconds that a daemon has used."""
    stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii", errors="replace")
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
