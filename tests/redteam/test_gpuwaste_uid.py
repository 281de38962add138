"""A compromised gpuwaste uid against root: what it leaves in its own directories costs root no file and no time."""

import contextlib
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.advice.predict.bundles import manifest_of, probability_graph, quantile_graph

from gpuwaste.advice.predict.bundle import BASELINE, Registry, our_features
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.models.bundle_export import write_files
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.backup_format import About, BackupSource, tar_parts
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.lone_hub import LoneHub, munged_path, private_munged
from gpuwaste.testing.runtime import Runtime, shared_runtime

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it is root who is attacked")
THEM = 65534  # nobody, in the place of gpuwaste
PATIENCE_S = 120.0
PLUGINS = Path(__file__).parents[2] / "plugins"
SACCT = (
    "JobID|JobIDRaw|User|Submit|Start|End|ElapsedRaw|State\n"
    "7|7|alice|2024-07-01T12:00:00|2024-07-01T12:00:10|2024-07-01T12:01:10|60|COMPLETED\n"
)


@dataclass(frozen=True)
class Scene:
    """`theirs` belongs to the attacker, `roots` to root; `command` runs gpuwaste as root on `theirs`."""

    place: Path
    runtime: Runtime

    @property
    def theirs(self) -> Path:
        """The directories of gpuwaste: state, models, policies."""
        return self.place / "theirs"

    @property
    def roots(self) -> Path:
        """What root keeps: a file that nobody else may read, and a directory with one."""
        return self.place / "roots"

    def begin(self) -> None:
        """Make both anew."""
        for folder in (self.theirs, self.roots):
            shutil.rmtree(folder, ignore_errors=True)
        for name in ("state", "models", "policies", "out"):
            (self.theirs / name).mkdir(parents=True)
        (self.roots / "folder").mkdir(parents=True)
        for file in (self.roots / "precious", self.roots / "folder" / "precious"):
            file.write_text("precious")
            file.chmod(0o600)
        own(self.theirs)

    def untouched(self) -> bool:
        """Tell whether root's files are as they were: names, owners, modes, contents."""
        files = {self.roots / "precious", self.roots / "folder" / "precious"}
        found = {path for path in self.roots.rglob("*") if not path.is_dir()}
        return (
            found == files
            and all(path.read_text() == "precious" and path.stat().st_mode & 0o777 == 0o600 for path in files)
            and all(path.lstat().st_uid == 0 for path in (self.roots, *self.roots.rglob("*")))
        )

    def command(self, *words: str | Path, **keys: str) -> tuple[int, str]:
        """Run `gpuwaste ...` as root; return the exit code and what it said. It has to end."""
        config = self.place / "gpuwaste.toml"
        common = {"models_dir": str(self.theirs / "models"), "cluster": "gw", **keys}
        lines = ["[common]", *(f'{key} = "{value}"' for key, value in common.items())]
        lines += ["[hub]", f'state_dir = "{self.theirs / "state"}"']
        lines += ["[advisor]", f'policies_dir = "{self.theirs / "policies"}"']
        config.write_text("\n".join(lines) + "\n")
        done = subprocess.run(
            [*self.runtime.command(*map(str, words)), "--config", str(config)],
            env={**os.environ, **self.runtime.env}, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert "bug in gpuwaste" not in done.stderr
        return done.returncode, done.stdout + done.stderr


def own(folder: Path) -> None:
    """Give a directory and all in it to the attacker."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, THEM, THEM, follow_symlinks=False)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Make a directory that every user can enter."""
    path = Path(tempfile.mkdtemp(prefix="gwred", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def scene(place: Path) -> Scene:
    made = Scene(place, shared_runtime(place))
    made.begin()
    return made


@pytest.fixture(scope="module")
def promoted(place: Path) -> Path:
    """Return a registry of two bundles, each of which was the champion once."""
    folder, ours = place / "promoted", our_features()
    graphs = {f"{t}.onnx": probability_graph(t, features=ours) for t in ("failure", "timeout")}
    graphs["walltime.onnx"] = quantile_graph(ours)
    for number, name in enumerate(("spring", "autumn")):
        write_files(folder / name, manifest_of(name, 1000 + number, ours), graphs)
        Registry(folder).promote(name)
    return folder


@pytest.fixture
def models(scene: Scene, promoted: Path) -> Path:
    """Return the attacker's copy of it, which is the site's registry."""
    target = scene.theirs / "models"
    shutil.copytree(promoted, target, symlinks=True, dirs_exist_ok=True)
    own(scene.theirs)
    return target


def backup(scene: Scene) -> Path:
    """Return a backup of a small hub, with a raw page, that root keeps."""
    folder = Path(tempfile.mkdtemp(dir=scene.place))
    store = HubStore.open(folder / "hub.duckdb", SystemClock())
    upsert_jobs(store, [JobRecord("gw", 7, 5, user="alice", start=1_700_000_000, end=1_700_000_100, state="COMPLETED")])
    rows, schema = store.copy_to(folder / "copy.duckdb")
    store.close()
    page = folder / "page"
    page.write_bytes(b"page")
    about = About(schema, "test", 1_700_000_000, "gw", rows)
    sources = [
        BackupSource(f"pages/ab/{'ab' * 32}.z", page, page.stat().st_size),
        BackupSource("hub.duckdb", folder / "copy.duckdb", (folder / "copy.duckdb").stat().st_size),
    ]
    file = folder / "b.tar"
    file.write_bytes(b"".join(tar_parts(about, iter(sources))))
    file.chmod(0o600)
    return file


CHANGES = (("promote", "spring"), ("rollback",), ("prune", "--keep", "0"), ("add", str(BASELINE)))


def test_a_change_of_the_registry_is_their_own(scene: Scene, models: Path) -> None:
    """Root promotes, goes back, prunes and adds as the registry's owner: whatever is made there is theirs."""
    for words in CHANGES:
        code, said = scene.command("model", *words)
        assert code == 0, said
    assert {path.lstat().st_uid for path in models.rglob("*")} == {THEM}


@pytest.mark.parametrize("words", CHANGES, ids=lambda words: words[0])
def test_links_in_the_registry_lead_root_nowhere(scene: Scene, models: Path, words: tuple[str, ...]) -> None:
    """The lock as a link to a file of root: it is neither emptied nor given away."""
    (models / ".lock").unlink()
    (models / ".lock").symlink_to(scene.roots / "precious")
    assert scene.command("model", *words)[0] == 1
    assert scene.untouched()


@pytest.mark.parametrize("name", [".lock", "history.json"])
def test_pipes_in_the_registry_do_not_hold_root(scene: Scene, models: Path, name: str) -> None:
    """The lock or the history as a pipe that nobody writes to: the command ends."""
    (models / name).unlink()
    os.mkfifo(models / name)
    own(models)
    scene.command("model", "rollback")
    assert scene.untouched()


def test_a_registry_moved_away_leads_root_nowhere(scene: Scene, models: Path) -> None:
    """models_dir as a link to a directory of root, made by the owner of the directory above: nothing is made there."""
    models.rename(scene.theirs / "old")
    models.symlink_to(scene.roots / "folder")
    assert scene.command("model", "add", BASELINE)[0] == 1
    assert scene.untouched()


def test_an_import_empties_no_directory_of_root(scene: Scene) -> None:
    """The scratch folder of the raw pages as a link to a directory of root: its files stay."""
    (scene.theirs / "state" / "hub.pages").mkdir()
    (scene.theirs / "state" / "hub.pages" / "scratch").symlink_to(scene.roots / "folder")
    own(scene.theirs)
    imported(scene)
    assert scene.untouched()


@pytest.mark.parametrize("name", ["hub.duckdb", "hub.duckdb.wal", "hub.pages"])
def test_an_import_makes_nothing_where_root_alone_may(scene: Scene, name: str) -> None:
    """The store, its log or its pages as a link into a directory of root: nothing is made there."""
    (scene.theirs / "state" / name).symlink_to(scene.roots / "folder" / "new")
    own(scene.theirs)
    imported(scene)
    scene.command("history", "status")
    assert scene.untouched()


def test_an_import_makes_their_own_files(scene: Scene) -> None:
    """The hub's user can open what root imported; a file that this user cannot read is named in one line."""
    assert imported(scene)[0] == 0
    assert {path.stat().st_uid for path in (scene.theirs / "state").rglob("*")} == {THEM}
    closed = scene.roots / "precious"
    code, said = scene.command("history", "import", "--sacct", closed, "--clusters", "gw")
    assert (code, "cannot read it" in said) == (2, True), said


def imported(scene: Scene) -> tuple[int, str]:
    file = scene.place / "sacct.txt"
    file.write_text(SACCT)
    return scene.command("history", "import", "--sacct", file, "--clusters", "gw", "--time-zone", "UTC")


def test_a_restore_makes_their_own_files(scene: Scene) -> None:
    """Root's backup, that they cannot read, becomes their store: root opens it and works on as they."""
    code, said = scene.command("hub", "restore", backup(scene))
    assert code == 0, said
    made = set((scene.theirs / "state").rglob("*"))
    assert scene.theirs / "state" / "hub.duckdb" in made
    assert {path.stat().st_uid for path in made} == {THEM}


@pytest.mark.parametrize("name", ["hub.pages", "hub.pages/ab", "hub.duckdb", "restore.unfinished", "history"])
def test_a_restore_gives_nothing_of_root_away(scene: Scene, name: str) -> None:
    """Each name that a restore works with as a link to a directory of root: nothing there changes its owner."""
    link = scene.theirs / "state" / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(scene.roots / "folder")
    own(scene.theirs)
    scene.command("hub", "restore", backup(scene), "--force")
    assert scene.untouched()


def test_a_restore_from_their_directory_reads_as_they(scene: Scene) -> None:
    """A backup's name that leads to root's file, or to a pipe: one line, at once; a backup that is theirs is taken."""
    (scene.theirs / "link.tar").symlink_to(backup(scene))
    os.mkfifo(scene.theirs / "pipe.tar")
    own(scene.theirs)
    for name, words in (("link.tar", "Permission denied"), ("pipe.tar", "not a plain file")):
        code, said = scene.command("hub", "restore", scene.theirs / name)
        assert (code, words in said) == (1, True), said
    shutil.copy(backup(scene), scene.theirs / "own.tar")
    own(scene.theirs)
    assert scene.command("hub", "restore", scene.theirs / "own.tar")[0] == 0


@contextlib.contextmanager
def swapping(scene: Scene, name: str) -> Iterator[None]:
    """Let the attacker exchange a name of the state directory with a link to root's directory, all the time."""
    code = (
        "import os,sys\n"
        f"os.setgid({THEM}); os.setuid({THEM})\n"
        "place, target = sys.argv[1:]\n"
        "while True:\n"
        "    for step in ((os.rename, place, place + '.aside'), (os.symlink, target, place), (os.unlink, place),\n"
        "                 (os.rename, place + '.aside', place)):\n"
        "        try: step[0](*step[1:])\n"
        "        except OSError: pass\n"
    )
    argv = [sys.executable, "-c", code, str(scene.theirs / "state" / name), str(scene.roots / "folder")]
    process = subprocess.Popen(argv)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", ["restore.unfinished", "hub.pages"])
def test_names_swapped_during_a_restore_lead_root_nowhere(scene: Scene, name: str) -> None:
    """Directories exchanged for links again and again while root restores: root's files stay root's."""
    source = backup(scene)
    with swapping(scene, name):
        for _ in range(3):
            scene.command("hub", "restore", source, "--force")
    assert scene.untouched()


@pytest.mark.skipif(munged_path() is None, reason="needs munged: make packages")
def test_a_backup_into_their_directory_is_written_as_they(scene: Scene) -> None:
    """A file of root that they moved to the name of the unfinished backup is not emptied; a backup there is theirs."""
    hub_place = scene.place / "hub"
    hub_place.mkdir(exist_ok=True)
    with private_munged() as munge:
        hub = LoneHub(hub_place, munge)
        hub.start()
        try:
            keys = {"hub_url": hub.url, "munge_socket": munge}
            kept = scene.theirs / "out" / ".b.tar.unfinished"
            shutil.copy(scene.roots / "precious", kept)
            kept.chmod(0o600)
            assert scene.command("hub", "backup", scene.theirs / "out" / "b.tar", **keys)[0] == 1
            assert (kept.read_text(), kept.stat().st_uid) == ("precious", 0)
            (scene.theirs / "out" / "away").symlink_to(scene.roots / "folder")
            assert scene.command("hub", "backup", scene.theirs / "out" / "away", **keys)[0] == 1
            code, said = scene.command("hub", "backup", scene.theirs / "out" / "c.tar", **keys)
            assert code == 0, said
            assert (scene.theirs / "out" / "c.tar").stat().st_uid == THEM
        finally:
            hub.stop()
    assert scene.untouched()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("trick", [a_pipe, a_device])
@pytest.mark.parametrize("words", [("config", "check"), ("policy", "check")], ids=lambda words: words[0])
def test_what_is_no_file_among_policies_holds_no_check(
    scene: Scene, words: tuple[str, ...], trick: Callable[[Path], None]
) -> None:
    """A pipe or a device in the place of a policy is named in one line; root does not wait for it or open it."""
    trick(scene.theirs / "policies" / "a.toml")
    code, said = scene.command(*words)
    assert (code, "not a plain file" in said) == (2, True), said


SCRIPTS = {
    "prolog": PLUGINS / "prolog.d" / "gpuwaste.sh",
    "epilog": PLUGINS / "epilog.d" / "gpuwaste.sh",
    "gate": PLUGINS / "prolog.d" / "gpuwaste-health.sh",
}
UNFINISHED = {"prolog": "jobs/.7.start", "epilog": "jobs/.7.end", "gate": ".health-gate"}
PIDS = 3000  # as far as the attacker guesses ahead


@pytest.fixture
def run_dir(scene: Scene) -> Path:
    """Return the attacker's run directory, with a health file that names the job's GPU."""
    path = scene.theirs / "run"
    (path / "jobs").mkdir(parents=True)
    lines = (f"gpuwaste-health 1 {int(time.time())}", "GPU-b 1 2 lost 1700000000 gpu_lost")
    (path / "health").write_text("".join(f"{line}\n" for line in lines))
    own(scene.theirs)
    return path


def play(scene: Scene, script: str, jobs: Path, **env: str) -> int:
    """Run a script as slurmd does and wait for what it left in the background."""
    conf = scene.place / "health-gate.conf"
    conf.write_text("mode = suggest\n")
    read, write = os.pipe()  # held by whatever the script starts: its end says that all of them have ended
    names = {
        "PATH": os.environ["PATH"], "GPUWASTE_RUN_DIR": str(scene.theirs / "run"), "GPUWASTE_JOBS_DIR": str(jobs),
        "GPUWASTE_USER": "nobody", "GPUWASTE_HEALTH_CONF": str(conf), "SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "2",
        "SLURMD_NODENAME": "gpu1",
    }  # fmt: skip
    process = subprocess.Popen([SCRIPTS[script]], env={**names, **env}, pass_fds=(write,))
    os.close(write)
    code = process.wait(PATIENCE_S)
    try:
        select.select([read], [], [], 10.0)
    finally:
        os.close(read)
    return code


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("owner", ["their own", "in their own", "a link of theirs"])
def test_root_s_scripts_write_through_no_link(scene: Scene, run_dir: Path, script: str, owner: str) -> None:
    """Links to a pipe under every name that the script may choose, in each directory of theirs: nothing is written."""
    victim = scene.place / "victim"
    victim.unlink(missing_ok=True)
    os.mkfifo(victim, 0o600)
    listening = os.open(victim, os.O_RDONLY | os.O_NONBLOCK)
    base = run_dir / UNFINISHED[script]
    places = [(base.parent, base.name)]
    jobs = run_dir / "jobs"
    if owner == "in their own":
        jobs = run_dir / "inner"
        jobs.mkdir()
        jobs.chmod(0o755)
        places.append((jobs, base.name))
    elif owner == "a link of theirs":
        (run_dir / "link").symlink_to(scene.roots / "folder")
        (scene.roots / "folder").chmod(0o755)
        jobs = run_dir / "link"
    with subprocess.Popen(["true"]) as last:
        pid = last.pid
    for place, name in places:
        for number in range(pid, pid + PIDS):
            (place / f"{name}.{number}").symlink_to(victim)
    try:
        assert play(scene, script, jobs) == 0
        with contextlib.suppress(BlockingIOError):
            assert os.read(listening, 100) == b""
    finally:
        os.close(listening)
    made = [path for path in run_dir.rglob("*") if path.lstat().st_uid == 0 and path != jobs]
    assert [path for path in made if not path.is_symlink()] == []
    assert scene.untouched()


def test_a_pipe_in_the_health_file_s_place_holds_no_process(scene: Scene, run_dir: Path) -> None:
    """The file is exchanged for a pipe after root looked at it and before it reads: nobody waits there for ever."""
    commands = scene.place / "bin"
    commands.mkdir(exist_ok=True)
    pipe = run_dir / "health"
    (commands / "date").write_text(f'#!/bin/sh\nrm -f {pipe}; mkfifo {pipe}; exec /bin/date "$@"\n')
    (commands / "date").chmod(0o755)
    assert play(scene, "gate", run_dir / "jobs", PATH=f"{commands}:{os.environ['PATH']}") == 0
    assert pipe.is_fifo()
    with pytest.raises(OSError, match="No such device or address"):  # nobody has it open for reading
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
