"""What goes wrong on the way of a submission, under a load of submissions: no job is lost or refused wrongly."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import _end, _new_cluster
from tests.system.asking import wait_log
from tests.system.fault_cases import CASES, STOOD_IN_TEST
from tests.system.odd_jobs import odd_jobs
from tests.system.submit_scene import PLUGIN, POLICY, Ordeal, Scene, make_submission, record

from gpuwaste.advice.predict.bundle import Registry
from gpuwaste.testing.cluster import Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.controller_watch import ControllerWatch
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.submit_load import LoadResult, SbatchCall, SbatchResult, SubmitLoad, submit
from gpuwaste.testing.submit_plugins import build_plugins

pytestmark = pytest.mark.cluster

BASELINE = Path(__file__).parents[2] / "src" / "gpuwaste" / "advice" / "predict" / "baseline"
SAVE_TAKES_S = 1.0
"""From the look at the jobs to the last byte of the saved state, more than it ever takes."""
STOOD_IN = [key for key, case in CASES.items() if case.test == STOOD_IN_TEST]


@pytest.fixture(scope="module")
def scene(native: Path) -> Iterator[Scene]:
    """Return a cluster with two controllers, the C plugin, the hub and an advisor with a policy that refuses."""
    cluster = _new_cluster(Variant(job_submit="gpuwaste", plugin_dir=str(build_plugins()), backup=True))
    try:
        cluster.start()
        # Thousands of jobs end here: a short look back spares the hub to read them all again and again.
        hub = {"sacct_overlap_s": 60.0}
        site = Site(cluster, native, SiteOptions(plugin=PLUGIN, policies={"doomed.toml": POLICY}, hub=hub))
        site.prepare()
        site.start_hub()
        site.start_advisor()
        scene = Scene(cluster, site)
        scene.teach()
        yield scene
    finally:
        _end(cluster)


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
    """Two hundred sbatch at once: each is answered or passes, none is lost, and slurmctld's threads come down again."""
    scene.wait_verdicts()
    before = scene.counted()
    load = SubmitLoad(scene.cluster, submitters=200, doomed_every=5, make=make_submission, limit=400)
    with ControllerWatch(scene.cluster) as watch:
        load.start()
        result = load.join()
    assert len(result.outcomes) == 400
    assert result.wrong() == []
    assert load.missing_or_doubled() == []
    assert watch.check() == []
    scene.wait_verdicts()
    record("parallel", result, before, scene.counted())
    scene.cancel(result)


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
    Ordeal(scene, "stopped", _stopped_for(scene, 10)).run()


@contextlib.contextmanager
def _advisor_away(scene: Scene) -> Iterator[None]:
    assert scene.site.advisor
    scene.site.advisor.stop()
    yield
    scene.site.start_advisor().kill()
    scene.site.start_advisor()


def test_the_advisor_may_be_restarted_under_load(scene: Scene) -> None:
    """Ended in order and started, then killed and started: jobs pass meanwhile, and a dead socket is taken over."""
    Ordeal(scene, "restarted", _advisor_away(scene)).run()


@contextlib.contextmanager
def _bundle_corrupt(scene: Scene) -> Iterator[None]:
    """Break the champion in use; at the end, start the advisor with the broken one, and take it away."""
    models = scene.site.directory / "models"
    assert scene.site.advisor
    registry = Registry(models)
    registry.promote(registry.add(BASELINE))
    wait_log(scene.site.advisor, "model loaded: baseline")
    champion = registry.champion()
    assert champion
    (champion / "manifest.json").write_bytes(b"\xff\x00 no manifest")
    wait_log(scene.site.advisor, "cannot load the champion, [0-9a-f]+ stays in use")
    yield
    scene.restart_advisor()
    wait_log(scene.site.advisor, "cannot load the champion, no model stays in use")
    for path in models.iterdir():
        path.unlink() if path.is_symlink() or path.is_file() else shutil.rmtree(path)


def test_a_corrupt_bundle_stops_no_verdict(scene: Scene) -> None:
    """Broken while in use: it stays in use and doomed jobs are rejected; broken at the start: job history only."""
    Ordeal(scene, "bundle", _bundle_corrupt(scene), fails_open=False).run()


@contextlib.contextmanager
def _disk_full(scene: Scene, state: Path) -> Iterator[None]:
    filler = state / "filler"
    with contextlib.suppress(OSError), filler.open("wb") as file:
        while file.write(bytes(4096)):
            file.flush()
    assert os.statvfs(state).f_bfree == 0
    yield
    filler.unlink()


@contextlib.contextmanager
def _small_disk(scene: Scene) -> Iterator[Path]:
    """Let the advisor keep its state on a file system of 4 MiB."""
    state = scene.site.directory / "advisor"
    assert scene.site.advisor
    scene.site.advisor.stop()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0755", "tmpfs", str(state)], check=False)
    if done.returncode:
        scene.site.start_advisor()
        pytest.skip("no tmpfs may be mounted here")
    try:
        shutil.chown(state, "gpuwaste")
        scene.site.start_advisor()
        yield state
    finally:
        scene.site.advisor.stop()
        subprocess.run(["umount", "-l", str(state)], check=True)
        scene.site.start_advisor()


def test_a_full_disk_stops_no_verdict(scene: Scene) -> None:
    """With no room for its state the advisor goes on refusing what is doomed, and later sends every verdict."""
    with _small_disk(scene) as state:
        Ordeal(scene, "disk-full", _disk_full(scene, state), fails_open=False).run()
        wait_until(
            lambda: scene.metric("outbox_verdicts") == 0 and scene.metric("spool_files") == 0,
            30,
            "all verdicts to be sent",
            scene.tails,
        )
        assert scene.metric("verdicts_lost") == 0


@contextlib.contextmanager
def _ahead(offset: Path, seconds: int) -> Iterator[None]:
    _step(offset, seconds)
    yield
    _step(offset, -seconds)


def _step(offset: Path, seconds: int) -> None:
    """Set by how much the advisor's wall clock is ahead, in place: the file is mapped."""
    with offset.open("r+b" if offset.exists() else "wb") as file:
        file.write(seconds.to_bytes(8, "little", signed=True))


def test_a_clock_step_of_the_advisor(scene: Scene) -> None:
    """Three hours ahead: verdicts go on; three hours behind: its answers look stale, and every job passes."""
    offset = scene.site.directory / "clock"
    _step(offset, 0)
    library = scene.site.native / "libgpuwaste-clock.so"
    scene.restart_advisor(["env", f"LD_PRELOAD={library}", f"GPUWASTE_SIM_CLOCK={offset}"])

    def behind() -> None:
        wait_until(lambda: not scene.refused(), 60, "doomed jobs to pass", scene.tails)
        _step(offset, 0)

    try:
        Ordeal(scene, "clock", _ahead(offset, 3 * 3600), fails_open=False, after=behind).run()
    finally:
        scene.restart_advisor()


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
    Ordeal(scene, "reconfigure", _reconfigured(scene), fails_open=None, reconfigures=True).run()


@contextlib.contextmanager
def _restarted(scene: Scene) -> Iterator[None]:
    scene.cluster.restart_slurmctld()
    yield


def test_restarting_slurmctld_under_load(scene: Scene) -> None:
    """A restart in order loses no job that was accepted, and the new slurmctld's plugin asks at once."""
    Ordeal(scene, "slurmctld-restart", _restarted(scene), fails_open=None, restarts=True).run()


def _without_ids(text: str) -> str:
    """Return what scontrol shows of a job without what differs between two submissions of the same."""
    text = re.sub(r" *AdminComment=.*\n", "", text)
    return re.sub(r"\b(\w*JobId|\w*Time|LastSchedEval|HetJobIdSet|Deadline|ArrayJobId)=\S*", "", text)


def _seen(scene: Scene, submission: SbatchCall, result: LoadResult) -> tuple[object, ...]:
    """Submit a job, cancel it, and return all that Slurm made of it; ids left out."""
    outcome = submit(scene.cluster, submission)
    result.outcomes.append(outcome)
    # alice's jobs did fail before, so a warning is due, whether slurmctld then takes the job or not.
    said = re.sub(r"^sbatch: (?:error: )?(?:\d+: )?gpuwaste: .*\n?", "", outcome.message, flags=re.MULTILINE)
    if outcome.job_id is None:
        return (None, re.sub(r"\d", "", said))
    job = str(outcome.job_id)
    shown = scene.cluster.run(["scontrol", "show", "job", job]).stdout
    script = scene.cluster.run(["scontrol", "write", "batch_script", job, "-"]).stdout
    scene.cluster.run(["scancel", job])
    return (
        re.search(r"AdminComment=(?:.*;)?gw=[0-9a-z]{16} *\n", shown) is not None,
        _without_ids(shown),
        script,
        said,
    )


def test_no_job_description_is_treated_otherwise_than_without_us(scene: Scene) -> None:
    """At every limit and with any bytes: Slurm accepts, keeps and refuses what it does with the kill switch on."""
    scene.wait_verdicts()
    scene.cluster.cancel_jobs()  # --test-only depends on what the nodes do
    with _kill_switch(scene):
        without = {what: _seen(scene, submission, LoadResult()) for what, submission in odd_jobs("alice")}
    before, result = scene.counted(), LoadResult()
    with ControllerWatch(scene.cluster) as watch:
        within = {what: _seen(scene, submission, result) for what, submission in odd_jobs("alice")}
    for what, (token, *plain) in without.items():
        assert not token, what
        assert list(within[what][1:]) == plain, what
    asked = [what for what, seen in within.items() if seen[0] is not None]
    assert len(asked) > len(within) / 3
    assert [what for what in asked if not within[what][0]] == []
    assert watch.check() == []
    assert watch.seen.ours == []
    assert scene.refused()
    record("sizes", result, before, scene.counted())


class _PrimaryKilled(contextlib.AbstractContextManager[None]):
    """SIGKILL of the primary and of its advisor, and which jobs it may not have saved: it does so 5 s late at most."""

    def __init__(self, scene: Scene) -> None:
        self._cluster, self._site = scene.cluster, scene.site
        self._span_s = (0.0, 0.0)

    def __enter__(self) -> None:
        assert self._site.advisor
        self._cluster.processes["slurmctld"].kill()
        self._site.advisor.kill()
        saved = (self._cluster.directory / "state" / "job_state").stat().st_mtime
        now = time.monotonic()
        self._span_s = (now - (time.time() - saved) - SAVE_TAKES_S, now)

    def __exit__(self, *_: object) -> None:
        """Leave it dead."""

    def unsaved(self, result: LoadResult) -> set[str]:
        """Return the names of jobs that were accepted after the last save began."""
        since_s, killed_s = self._span_s
        return {o.submission.name for o in result.accepted if since_s < o.ended_s <= killed_s}


def _token(scene: Scene, outcome: SbatchResult) -> str:
    """Return the verdict's id that a job carries."""
    shown = scene.cluster.run(["scontrol", "show", "job", str(outcome.job_id)]).stdout
    (token,) = re.findall(r"gw=([0-9a-z]{16})", shown)
    return str(token)


def _ids_at_the_hub(scene: Scene) -> set[str]:
    return {row["id"] for row in scene.site.json("policy", "verdicts", user="root")["verdicts"]}


def test_the_backup_controller_asks_its_own_advisor(scene: Scene) -> None:
    """A killed primary costs only what it had not saved; the backup's plugin asks the backup's advisor."""
    scene.site.start_backup_advisor()
    first = submit(scene.cluster, make_submission("alice", "before.the.kill", doomed=False))
    scene.cluster.wait_saved("before.the.kill")
    killed = _PrimaryKilled(scene)
    failover = Ordeal(
        scene, "failover", killed, fails_open=None, restarts=True, excused=killed.unsaved, watched="slurmctld-backup"
    )
    result = failover.run()
    assert scene.cluster.controllers_up() == {"backup"}
    assert len(result.accepted) > len(killed.unsaved(result))
    assert scene.cluster.job_states(first.job_id or 0) == ["PENDING"]
    token = _token(scene, submit(scene.cluster, make_submission("alice", "on.the.backup", doomed=False)))
    wait_until(lambda: token in _ids_at_the_hub(scene), 60, f"verdict {token} of the backup's advisor at the hub")
    scene.cluster.restart_slurmctld()
    scene.site.start_advisor()
    scene.wait_verdicts()
    assert scene.cluster.controllers_up() == {"primary", "backup"}
