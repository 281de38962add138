"""The RPMs, installed with their scriptlets in bare Debian roots, and their daemons on the loopback cluster."""

import json
import os
import pwd
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from tests.system.rpm_scene import (
    CONFIG,
    NODE,
    SITE_PACKAGES,
    Host,
    add_users,
    names,
    pick,
    set_keys,
)
from tools.reference.before_install import is_told
from tools.rpm import variants
from tools.rpm.build import Build, current, here, rebuild, spec_version
from tools.rpm.root import Root
from tools.rpm.scratch import scratch
from tools.rpm.variants import OLDER, OLDER_SET, OTHER_SLURM
from tools.rpm.wheels import ROOT

from gpuwaste.cli.doctor_checks import SCRIPT
from gpuwaste.net.addresses import parse_endpoint
from gpuwaste.net.http import HttpExchange, HttpRequest
from gpuwaste.store.database import schema_number
from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.sim_build import build_native

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]  # a Debian root is filled and booted for the first test
ALL: Final = (
    "gpuwaste", "gpuwaste-actor", "gpuwaste-advisor", "gpuwaste-agent", "gpuwaste-estimate", "gpuwaste-hub",
    "gpuwaste-lake", "gpuwaste-lake-s3", "gpuwaste-models", "gpuwaste-runtime", "gpuwaste-runtime-onnx", "gpuwaste-sim",
    "gpuwaste-slurm-plugin",
)  # fmt: skip
MODES: Final = {
    "/etc/gpuwaste": ("root", 0o755),
    CONFIG: ("root", 0o644),
    "/etc/gpuwaste/policies.d/00-shadow.toml": ("root", 0o644),
    "/usr/bin/gpuwaste": ("root", 0o755),
    "/usr/lib/sysusers.d/gpuwaste.conf": ("root", 0o644),
    "/usr/lib/tmpfiles.d/gpuwaste.conf": ("root", 0o644),
    "/usr/lib/systemd/system/gpuwaste-agent.service": ("root", 0o644),
    "/usr/lib/systemd/system/gpuwaste-hub.service": ("root", 0o644),
    "/usr/lib/systemd/system/gpuwaste-advisor.service": ("root", 0o644),
    "/usr/lib/systemd/system/gpuwaste-actor.service": ("root", 0o644),
    "/usr/lib/systemd/system/gpuwaste-train.service": ("root", 0o644),
    "/usr/lib/systemd/system/gpuwaste-train.timer": ("root", 0o644),
    "/usr/lib/systemd/system/gpuwaste-propose.service": ("root", 0o644),
    "/usr/lib/systemd/system/gpuwaste-propose.timer": ("root", 0o644),
    "/usr/lib/sysusers.d/gpuwaste-actor.conf": ("root", 0o644),
    "/usr/libexec/gpuwaste/gpuwaste-mail": ("root", 0o755),
    "/usr/libexec/gpuwaste/prolog.d/gpuwaste.sh": ("root", 0o755),
    "/usr/libexec/gpuwaste/prolog.d/gpuwaste-health.sh": ("root", 0o755),
    "/usr/libexec/gpuwaste/epilog.d/gpuwaste.sh": ("root", 0o755),
    "/usr/share/gpuwaste/lua/gpuwaste.lua": ("root", 0o644),
    "/usr/share/gpuwaste/ondemand/passenger_wsgi.py": ("root", 0o644),
    "/usr/share/man/man1/gpuwaste.1.gz": ("root", 0o644),
    "/run/gpuwaste": ("gpuwaste", 0o755),
    "/run/gpuwaste-jobs": ("root", 0o755),
    "/var/lib/gpuwaste": ("root", 0o755),
    "/var/lib/gpuwaste/agent": ("gpuwaste", 0o750),
    "/var/lib/gpuwaste/hub": ("gpuwaste", 0o750),
    "/var/lib/gpuwaste/advisor": ("gpuwaste", 0o750),
    "/var/lib/gpuwaste/models": ("gpuwaste", 0o750),
    "/var/lib/gpuwaste-actor": ("gpuwaste-actor", 0o750),
}
PLUGIN: Final = "job_submit_gpuwaste.so"
OLD_STORE: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from gpuwaste.store.database import Database
store = Database.open(Path("/var/lib/gpuwaste/hub/hub.duckdb"), "hub")
needed = store.execute("SELECT column_name, data_type FROM information_schema.columns "
    "WHERE table_name = 'jobs' AND is_nullable = 'NO' AND column_default IS NULL ORDER BY ordinal_position").fetchall()
values = {"VARCHAR": "''", "BOOLEAN": "false"}
given = {"cluster": "'gw'", "job_id": "77", "printed_id": "'77'", "name": "'before'"}
columns = ", ".join(f"{given.get(name, values.get(kind, '0'))} AS \\"{name}\\"" for name, kind in needed)
store.execute(f"INSERT INTO jobs BY NAME SELECT {columns}")
print(store.version)
store.close()
"""
LOAD_EXTENSIONS: Final = """
import sys
sys.path.insert(0, sys.argv[1])
import duckdb
from gpuwaste.store.duckdb_connection import load_extension
connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
for name in ("ducklake", "postgres_scanner", "httpfs"):
    load_extension(connection, name)
loaded = "SELECT extension_name FROM duckdb_extensions() WHERE loaded AND install_path = '' ORDER BY 1"
print(*[name for name, in connection.execute(loaded).fetchall()])
"""
READ_STORE: Final = """
import sys
sys.path.insert(0, sys.argv[1])
import duckdb
store = duckdb.connect("/var/lib/gpuwaste/hub/hub.duckdb", read_only=True)
print(store.execute("SELECT max(version) FROM schema_version").fetchone()[0])
print(store.execute("SELECT name FROM jobs WHERE job_id = 77").fetchone()[0])
"""


@pytest.fixture(scope="module")
def packages() -> list[Path]:
    """Return the RPMs of this tree: those of `make rpm` where they are of the same files, else built now."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    if absent := [command for command in ("rpmbuild", "debootstrap", "unshare") if not shutil.which(command)]:
        pytest.skip(f"not installed: {', '.join(absent)}; run tools/install-debian-packages (Debian 12)")
    return current()


@pytest.fixture(scope="module")
def older(packages: list[Path]) -> list[Path]:
    """Return the RPMs of a version before this one: another example of the configuration."""
    return variants.older()


@pytest.fixture(scope="module")
def workspace() -> Iterator[Path]:
    """Return a short directory that all users may enter: roots and the cluster, with Unix sockets, lie in it."""
    with scratch() as path:
        yield path


def new_root(path: Path) -> Root:
    """Return a bare root that has the cluster's users."""
    cluster_host.add_users()
    root = Root.copy(path)
    add_users(root, pwd.getpwnam(cluster_host.AGENT_USER).pw_uid)
    return root


@pytest.fixture(scope="module")
def installed(packages: list[Path], workspace: Path) -> tuple[Root, set[str]]:
    """Return a root with all packages, and what was in it before."""
    root = new_root(workspace / "root")
    before = root.tree()
    root.install(*pick(packages))
    return root, before


@pytest.fixture(scope="module")
def site(installed: tuple[Root, set[str]], workspace: Path) -> Iterator[Site]:
    """Return a cluster whose slurmctld, prolog and epilog have what the packages installed; no daemon of ours yet."""
    root = installed[0]
    with ExitStack() as stack:
        plugins = workspace / "plugins"
        plugins.mkdir(mode=0o755)
        (plugins / PLUGIN).symlink_to(next(root.path.rglob(PLUGIN)))
        scripts = {
            name: tuple(str(path) for path in sorted(root.file(f"/usr/libexec/gpuwaste/{name}.d").iterdir()))
            for name in ("prolog", "epilog")
        }
        variant = Variant(
            job_submit="gpuwaste", plugin_dir=str(plugins), prolog=scripts["prolog"], epilog=scripts["epilog"]
        )
        cluster = stack.enter_context(LoopbackCluster(workspace / "c", variant, remove=True))
        advice = {"socket": str(cluster.nodes[NODE].run_dir / "advisor.sock")}
        site = Site(cluster, build_native(), SiteOptions(advisor=advice, plugin={"deadline_us": 1_000_000}))
        site.prepare()
        yield site


def owner_and_mode(root: Root, name: str) -> tuple[str, int]:
    """Return who owns a path of the root, by the root's own users, and its permissions."""
    found = root.file(name).lstat()
    users = [line.split(":") for line in root.file("/etc/passwd").read_text(encoding="utf-8").splitlines()]
    return next(user[0] for user in users if int(user[2]) == found.st_uid), stat.S_IMODE(found.st_mode)


def page(host: Host, user: str, target: str) -> tuple[int, bool]:
    """Return what a user's browser gets after the link of `gpuwaste web`: the status, whether GPU-time is there."""
    url = host.command(user, "web").stdout.strip()
    base, _, link = url.partition("/enter#")
    same = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    server = HttpExchange(parse_endpoint(base), None, patient(60), 1 << 24)
    entered = server.send(HttpRequest("POST", "/enter", f"link={link}".encode(), same))
    cookie = entered.headers["Set-Cookie"].partition(";")[0]
    answer = server.send(HttpRequest("GET", target, b"", {"Cookie": cookie}))
    return answer.status, b"GPU-minutes" in answer.body


def test_twelve_packages(packages: list[Path]) -> None:
    """The spec gives the twelve packages, of the project's version, and their source."""
    assert names(pick(packages)) == sorted(ALL)
    assert any(package.name == f"gpuwaste-{spec_version()}-1.src.rpm" for package in packages)
    assert f'version = "{spec_version()}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_page_has_every_requirement(packages: list[Path]) -> None:
    """What the built packages require, what rpm added included, is on docs/reference/before-install.md."""
    for package in packages:
        query = ["rpm", "-qp", "--nosignature", "--qf", "%{NAME} %{VERSION} %{RELEASE}", str(package)]
        name, version, release = subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()
        listed = ["rpm", "-qp", "--nosignature", "--requires", str(package)]
        needs = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.splitlines()
        settings = {"version": version, "release": release, "gpuwaste_python": f"python{here().python}"}
        settings |= {"slurm_requires": "slurm", "slurm_version": release.removeprefix("1.slurm")}
        assert [need for need in needs if not is_told(name, need, settings)] == []
        assert needs


def test_before_install_asks_rpm(packages: list[Path], tmp_path: Path) -> None:
    """With --packages the script prints what the real rpm misses on a host without any RPM, and ends with 1."""
    files = tmp_path / "packages"
    files.mkdir()
    for package in pick(packages, "gpuwaste", "gpuwaste-hub", "gpuwaste-runtime", "gpuwaste-slurm-plugin"):
        (files / package.name).symlink_to(package)
    argv = ["sh", str(SCRIPT), "--fields", "--packages", str(files)]
    env = {**os.environ, "HOME": str(tmp_path)}  # Debian's rpm has its database there
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    found = {what.removesuffix(" is missing"): status for status, name, what, _ in lines if name == "requires"}
    assert {"/bin/sh", "shadow-utils", "glibc >= 2.28", f"python{here().python}"} <= found.keys()
    assert found["shadow-utils"] == "warn"
    assert found["libc.so.6()(64bit)"] == "fail"
    assert not any(need.startswith("gpuwaste") for need in found)
    assert done.returncode == 1


def test_packages_for_tests_say_what_the_usual_ones_say(packages: list[Path], older: list[Path]) -> None:
    """The older version is built quickly, and yet has the needs and scriptlets of a usual build."""

    def said(built: list[Path], version: str) -> dict[str, str]:
        query = ["rpm", "-qp", "--nosignature", "--requires", "--provides", "--scripts"]
        texts = {package: subprocess.check_output([*query, str(package)], text=True) for package in built}
        return {names([package])[0]: text.replace(version, "VERSION") for package, text in texts.items()}

    assert said(older, OLDER) == said(pick(packages, *OLDER_SET), spec_version())


def test_fresh_install(installed: tuple[Root, set[str]]) -> None:
    """Files, owners, modes and the user are as the documentation says, and the command works alone."""
    root = installed[0]
    assert {name: owner_and_mode(root, name) for name in MODES} == MODES
    uid = str(pwd.getpwnam(cluster_host.AGENT_USER).pw_uid)
    entry = root.run("getent", "passwd", "gpuwaste").stdout.strip().split(":")
    assert (entry[2], entry[5:]) == (uid, ["/var/lib/gpuwaste", "/sbin/nologin"])
    users = root.file("/etc/passwd").read_text(encoding="utf-8")
    root.run("systemd-sysusers", "gpuwaste.conf")
    assert root.file("/etc/passwd").read_text(encoding="utf-8") == users
    assert root.run("gpuwaste", "--version").stdout == f"gpuwaste {spec_version()}\n"
    assert root.run("gpuwaste", "config", "check").returncode == 0
    assert root.rpm("-V", "--nodeps", *ALL).stdout == ""


def test_private_packages(installed: tuple[Root, set[str]]) -> None:
    """The host's Python and gpuwaste's see nothing of each other, and running it leaves no file behind."""
    root = installed[0]
    for folder in ("/usr/lib/python3/dist-packages", "/usr/local/lib/python3.11/dist-packages", "/root"):
        root.write(f"{folder}/duckdb.py", "raise SystemExit('the wrong duckdb')\n")
    before = root.tree()
    wrong = {"PYTHONPATH": "/root", "PYTHONHOME": "/nowhere", "HOME": "/root"}
    assert root.run("gpuwaste", "--version", env=wrong).stdout.startswith("gpuwaste ")
    assert "usage" in root.run("gpuwaste", "hub", "--help", env=wrong).stdout
    seen = root.run("python3.11", "-c", "import prometheus_client", check=False).stderr
    assert "ModuleNotFoundError" in seen
    assert root.tree() == before


def test_extensions_of_a_lake(installed: tuple[Root, set[str]]) -> None:
    """Without a network and a home the installed Python loads a lake's extensions, from the files of their packages."""
    root = installed[0]
    alone = ("unshare", "--net", "setpriv", "--reuid=gpuwaste", "--regid=gpuwaste", "--clear-groups")
    said = root.run(*alone, "python3.11", "-ISBc", LOAD_EXTENSIONS, SITE_PACKAGES, env={"HOME": "/nowhere"})
    assert said.stdout.split() == ["ducklake", "httpfs", "postgres_scanner"]
    packaged = {"gpuwaste-lake": {"ducklake", "postgres_scanner"}, "gpuwaste-lake-s3": {"httpfs"}}
    for name, expected in packaged.items():
        files = root.rpm("-ql", name).stdout.splitlines()
        assert {Path(file).stem for file in files if file.endswith(".duckdb_extension")} == expected
    others = [name for name in ALL if name not in packaged]
    assert "duckdb_extension" not in root.rpm("-ql", *others).stdout


def test_three_services(installed: tuple[Root, set[str]], site: Site) -> None:
    """Hub, agent and advisor run as installed: a job is judged at its submission, reported and shown in a browser."""
    host = Host(installed[0], site.cluster, site)
    text = host.configure()
    assert host.command("root", "config", "check").returncode == 0, host.command("root", "config", "check")
    with host.services("hub", "agent", "advisor"):
        job = site.submit("alice", "--phase 6:90:20000", gres="gpu:1", nodelist=NODE)
        site.cluster.wait_job(job, "COMPLETED", timeout_s=90)
        assert re.search(r"gw=[0-9a-z]{16}", site.cluster.show_job(job)[0].get("AdminComment", ""))
        document = site.wait_reported(job, 1, 90)
        told = json.loads(host.command("alice", "job", str(job), "--json").stdout)
        assert told["runs"][0]["devices"][0]["gpu_uuid"] == document["runs"][0]["devices"][0]["gpu_uuid"]
        report = host.command("alice", "report")
        assert report.returncode == 0, report.stderr
        assert "alice" in report.stdout
        assert host.command("bob", "job", str(job)).returncode != 0
        assert page(host, "alice", f"/jobs/{job}") == (200, True)
        assert page(host, "bob", f"/jobs/{job}") == (404, False)
    assert (host.root.file("/var/lib/gpuwaste/hub") / "hub.duckdb").exists()
    changed = host.root.rpm("-V", "--nodeps", *ALL, check=False).stdout.splitlines()
    assert [line.split()[1:] for line in changed] == [["c", CONFIG]]
    assert host.root.file(CONFIG).read_text(encoding="utf-8") == text


def test_plugin_in_use_stays(installed: tuple[Root, set[str]], tmp_path: Path) -> None:
    """The plugin cannot be erased while slurm.conf names it, by whatever spelling, Include or continued line."""
    root = installed[0]
    for name, text in (
        ("slurm.conf", "ClusterName=x\nJobSubmitPlugins=lua,gpuwaste\n"),
        ("slurm.conf", "jobsubmitplugins = lua,\\\n  gpuwaste # ours\n"),
        ("slurm.conf", "Prolog=/usr/libexec/gpuwaste/prolog.d/*\n"),
        ("slurm.conf", "MailProg = /usr/libexec/gpuwaste/gpuwaste-mail\n"),
        ("extra.conf", "JobSubmitPlugins=gpuwaste\n"),
    ):
        root.write("/etc/slurm/slurm.conf", "Include extra.conf\n")
        root.write(f"/etc/slurm/{name}", text)
        done = root.rpm("-e", "gpuwaste-slurm-plugin", check=False)
        assert done.returncode != 0
        assert f"is in use: /etc/slurm/{name}" in done.stderr
        assert list(root.path.rglob(PLUGIN)), text
    root.write("/etc/slurm/extra.conf", "# JobSubmitPlugins=gpuwaste\nProlog=/etc/slurm/prolog.d/*\n")
    root.write("/etc/slurm/slurm.conf", "Include extra.conf\nInclude nowhere.conf\n")
    root.rpm("-e", "--test", "gpuwaste-slurm-plugin")


def test_plugin_of_another_release(installed: tuple[Root, set[str]]) -> None:
    """The source RPM gives the plugin for another Slurm's headers, which the host of this Slurm then refuses."""
    plugin = variants.other_plugin()
    assert plugin.name.split("-")[4] == f"1.slurm{OTHER_SLURM}.x86_64.rpm"
    wanted = subprocess.run(["rpm", "-qpR", plugin], capture_output=True, text=True, check=True).stdout
    assert f"slurm = {OTHER_SLURM}\n" in wanted
    done = installed[0].install(plugin, check=False, options=["--oldpackage"])
    assert done.returncode != 0
    assert f"is for Slurm {OTHER_SLURM}, but slurmctld here is 22.05.8" in done.stderr
    assert "22.05.8" in installed[0].rpm("-q", "gpuwaste-slurm-plugin").stdout


def test_upgrade_and_back(packages: list[Path], older: list[Path], site: Site, workspace: Path) -> None:
    """Upgrades keep the changed configuration and migrate the store; back lead the backup and old packages."""
    root = new_root(workspace / "upgraded")
    root.install(*older)
    assert root.run("gpuwaste", "--version").stdout == f"gpuwaste {OLDER}\n"
    interpreter = ("setpriv", "--reuid=gpuwaste", "--regid=gpuwaste", "--clear-groups", "python3.11", "-ISB", "-c")
    number = schema_number("hub")
    assert root.run(*interpreter, OLD_STORE, SITE_PACKAGES).stdout == f"{number}\n"
    host = Host(root, site.cluster, site)
    text = host.configure()
    backup = workspace / "backup"
    shutil.copytree(root.file("/var/lib/gpuwaste/hub"), backup)

    root.install(*pick(packages, *OLDER_SET))
    assert root.run("gpuwaste", "--version").stdout == f"gpuwaste {spec_version()}\n"
    assert root.file(CONFIG).read_text(encoding="utf-8") == text
    assert root.file(f"{CONFIG}.rpmnew").read_text(encoding="utf-8") == (ROOT / "etc/gpuwaste.toml").read_text()
    changed = root.rpm("-V", "--nodeps", *OLDER_SET, check=False).stdout.splitlines()
    assert [line.split()[1:] for line in changed] == [["c", CONFIG]]
    leftover = [name for name in root.tree() if f"gpuwaste-{OLDER}" in name]
    assert not leftover
    root.install(*pick(variants.newer(), *OLDER_SET))
    with host.services("hub"):
        pass
    assert root.run(*interpreter, READ_STORE, SITE_PACKAGES).stdout.split() == [str(number + 1), "before"]

    root.install(*older, options=["--oldpackage"])
    said = host.command("gpuwaste", "hub", "run")
    assert said.returncode == 1
    assert "newer than this version's" in said.stderr
    store = root.file("/var/lib/gpuwaste/hub/hub.duckdb")
    shutil.copyfile(backup / "hub.duckdb", store)
    assert root.run(*interpreter, READ_STORE, SITE_PACKAGES).stdout.split() == [str(number), "before"]
    assert root.file(CONFIG).read_text(encoding="utf-8") == text


def test_taken_uid(packages: list[Path], workspace: Path) -> None:
    """Where the fixed uid belongs to somebody else nothing is installed, and the line says how to choose another."""
    root = Root.copy(workspace / "taken")
    with root.file("/etc/passwd").open("a", encoding="utf-8") as passwd:
        passwd.write("other:x:463:463::/:/sbin/nologin\n")
    (package,) = pick(packages, "gpuwaste")
    done = root.install(package, check=False)
    assert "uid or gid 463 is taken by other" in done.stderr
    assert not root.file("/usr/bin/gpuwaste").exists()
    root.write("/etc/sysusers.d/gpuwaste.conf", "u gpuwaste 464\n")
    root.install(package)
    assert root.run("id", "-u", "gpuwaste").stdout == "464\n"


def test_same_payload(packages: list[Path], tmp_path: Path) -> None:
    """A build from the source RPM, elsewhere and later, gives the same payload, byte for byte."""
    source = next(package for package in packages if package.name.endswith(".src.rpm"))
    compressed = {"gpuwaste_payload": "w7.zstdio"}  # as the spec says
    again = pick(rebuild(source, Build(tmp_path, without=("onnx",), defines=compressed, quick=True)))
    assert {"gpuwaste", "gpuwaste-hub", "gpuwaste-runtime", "gpuwaste-slurm-plugin"} <= set(names(again))

    def payloads(built: list[Path]) -> dict[str, str]:
        query = ["rpm", "-qp", "--nosignature", "--qf", "%{NAME} %{PAYLOADDIGEST}\n", *map(str, built)]
        lines = subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()
        return dict(line.split() for line in lines)

    # The simulator needs what a build without ONNX Runtime leaves out: numba is not in this one.
    first, same = payloads(pick(packages)), set(names(again)) - {"gpuwaste-sim"}
    assert {name: payloads(again)[name] for name in same} == {name: first[name] for name in same}


def test_erase(installed: tuple[Root, set[str]]) -> None:
    """After the packages are gone, the configuration that was changed and the data are all that is left."""
    root, before = installed
    root.write("/etc/slurm/slurm.conf", "ClusterName=x\n")
    if not re.search(r"^hub_url", root.file(CONFIG).read_text(encoding="utf-8"), re.MULTILINE):
        root.write(
            CONFIG, set_keys(root.file(CONFIG).read_text(encoding="utf-8"), {"common": {"hub_url": "http://x:1"}})
        )
    root.write("/var/lib/gpuwaste/hub/kept", "data\n")
    root.rpm("-e", "--nodeps", *ALL)
    left = {name for name in root.tree() - before if "gpuwaste" in name}
    kept = ("/etc/gpuwaste", "/var/lib/gpuwaste", "/run/gpuwaste")
    assert all(name.startswith(kept) for name in left), sorted(left)
    assert f"{CONFIG}.rpmsave" in left
    assert "/var/lib/gpuwaste/hub/kept" in left
    assert root.run("getent", "passwd", "gpuwaste").returncode == 0
