"""What goes wrong on the way of a submission, under a load of submissions: no job is lost or refused wrongly."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import _end, _new_cluster
from tests.system.fault_cases import CASES, _STOOD_IN
from tests.system.submit_scene import PLUGIN, POLICY, Ordeal, Scene, make_submission

from gpuwaste.testing.cluster import Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.plugin_build import build_plugins
from gpuwaste.testing.site import Site, SiteOptions
from gpuwaste.testing.submit_load import Submission, submit

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

STOOD_IN = [key for key, case in CASES.items() if case.test == _STOOD_IN]


@pytest.fixture(scope="module")
def scene(native: Path) -> Iterator[Scene]:
    """Return a cluster with two controllers, the C plugin, the hub and an advisor with a policy that refuses."""
    cluster = _new_cluster(Variant(job_submit="gpuwaste", plugin_dir=str(build_plugins()), backup=True))
    try:
        cluster.start()
        options = SiteOptions(plugin=PLUGIN, policies={"doomed.toml": POLICY}, sacct_every_s=3600.0)
        site = Site(cluster, native, options)
        site.prepare()
        site.start_hub()
        start_advisor(site)
        yield Scene(cluster, site, lambda: {})
    finally:
        _end(cluster)


def start_advisor(site: Site) -> None:
    """Stand-in."""
    argv = site.runtime.module("gpuwaste.testing.faulty_advisor", str(site.advisor_socket), "well")
    site.advisor = site.cluster.spawn(argv, user="gpuwaste", env=site.runtime.env, name="advisor")
    site.advisor.wait_for(site.advisor_socket.exists, 60, "the advisor to listen")


@pytest.mark.parametrize("key", STOOD_IN)
def test_an_advisor_at_fault_costs_no_job(scene: Scene, key: str) -> None:
    """Whatever stands at the socket instead of the advisor, jobs pass, and verdicts come back after it."""
    Ordeal(scene, key, scene.no_socket() if key == "absent" else scene.in_its_place(key)).run()


def test_a_hostile_warning_is_disarmed(scene: Scene) -> None:
    """No control character of a warning reaches the terminal, and no token that is none reaches admin_comment."""
    result = Ordeal(scene, "hostile", scene.in_its_place("hostile")).run()
    warned = [outcome.message for outcome in result.accepted if "%s%n%x" in outcome.message]
    assert warned
    assert not any(character < " " and character != "\n" for message in warned for character in message)


def test_a_socket_of_another_user_is_not_believed(scene: Scene) -> None:
    """A user who puts his own socket in the advisor's place is not asked, though he would refuse every job."""
    Ordeal(scene, "foreign", scene.in_its_place("refuse-all", "alice")).run()


def test_two_hundred_parallel_submitters(scene: Scene) -> None:
    """Two hundred sbatch at once are all answered, with the advisor well all the time."""
    Ordeal(scene, "parallel", contextlib.nullcontext(), fails_open=None, submitters=200).run()


@contextlib.contextmanager
def _stopped_for(scene: Scene, seconds: float) -> Iterator[None]:
    advisor = scene.site.advisor
    assert advisor
    advisor.signal(signal.SIGSTOP)
    try:
        yield
        time.sleep(seconds)
    finally:
        advisor.signal(signal.SIGCONT)


def test_an_advisor_that_is_stopped_for_ten_seconds(scene: Scene) -> None:
    """SIGSTOP for ten seconds, with its backlog filling: jobs pass, and nobody has to do anything afterwards."""
    Ordeal(scene, "stopped", _stopped_for(scene, 10), fails_open=None).run()


@contextlib.contextmanager
def _kill_switch(scene: Scene) -> Iterator[None]:
    scene.site.kill_switch.touch()
    try:
        yield
    finally:
        scene.site.kill_switch.unlink()


def test_the_kill_switch_under_load(scene: Scene) -> None:
    """While the file is there every job passes unseen; once it is gone, verdicts are given again."""
    Ordeal(scene, "kill-switch", _kill_switch(scene)).run()


@contextlib.contextmanager
def _reconfigured(scene: Scene) -> Iterator[None]:
    for _ in range(3):
        scene.cluster.run(["scontrol", "reconfigure"])
    yield


def test_reconfiguring_slurmctld_under_load(scene: Scene) -> None:
    """Three times scontrol reconfigure: submissions and verdicts go on."""
    Ordeal(scene, "reconfigure", _reconfigured(scene), fails_open=None).run()


@contextlib.contextmanager
def _restarted(scene: Scene) -> Iterator[None]:
    scene.cluster.restart_slurmctld()
    yield


def test_restarting_slurmctld_under_load(scene: Scene) -> None:
    """A restart in order loses no job that was accepted, and the new slurmctld's plugin asks at once."""
    Ordeal(scene, "slurmctld-restart", _restarted(scene), fails_open=None, restarts=True).run()
