"""A Debian root with our RPMs on a node of the loopback cluster: its files, its daemons, its commands."""

import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.rpm.root import Root

from gpuwaste.testing.cluster import LoopbackCluster, ManagedProcess
from gpuwaste.testing.cluster_host import USERS, accepts
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site
from gpuwaste.testing.sim_build import library_env

NODE: Final = "gpu1"
CONFIG: Final = "/etc/gpuwaste/gpuwaste.toml"
SITE_PACKAGES: Final = "/usr/lib/gpuwaste/python"
_ENTER: Final = """
mkdir -p "$1$2"
mount --bind "$2" "$1$2"
mount --bind "$3" "$1/run/gpuwaste"
mount --bind "$4" "$1/run/gpuwaste-jobs"
mount -t proc proc "$1/proc"
root=$1
shift 4
exec chroot "$root" setpriv "$@"
"""
"""In a mount namespace that ends with the program: the cluster with its plugins, the node's /run/gpuwaste and jobs."""


def add_users(root: Root, uid: int) -> None:
    """Give the root the cluster's users, and the site's own uid for the daemons' user, as the host has it."""
    for name in ("/etc/passwd", "/etc/group"):
        known = Path(name).read_text(encoding="utf-8").splitlines()
        with root.file(name).open("a", encoding="utf-8") as target:
            target.write("".join(f"{line}\n" for line in known if line.split(":")[0] in USERS))
    root.write("/etc/sysusers.d/gpuwaste.conf", f'u gpuwaste {uid} "gpuwaste daemons" /var/lib/gpuwaste\n')


def set_keys(text: str, settings: Mapping[str, Mapping[str, Any]]) -> str:
    """Return gpuwaste.toml with keys set below the sections that it has, as its reader would write them."""
    for section, keys in settings.items():
        assert f"\n[{section}]\n" in text, section
        text = text.replace(f"\n[{section}]\n", f"\n{to_toml({section: keys})}", 1)
    return text


def names(packages: Collection[Path]) -> list[str]:
    """Return the names of packages from their files'."""
    return sorted(re.split(r"-\d", package.name)[0] for package in packages)


def pick(packages: Collection[Path], *wanted: str) -> list[Path]:
    """Return the packages of these names; without any, all but the source. No package's name begins another's file."""
    binary = [package for package in packages if not package.name.endswith(".src.rpm")]
    return [package for package in binary if not wanted or re.split(r"-\d", package.name)[0] in wanted]


def answers(url: str) -> bool:
    """Tell whether something serves HTTP there."""
    try:
        urllib.request.urlopen(url, timeout=patient(5)).close()  # noqa: S310 a loopback address of our own
    except urllib.error.HTTPError:
        return True
    except (urllib.error.URLError, OSError):
        return False
    return True


@dataclass(frozen=True)
class Host:
    """The root as one node of the cluster that runs hub, agent and advisor: everything where the packages put it."""

    root: Root
    cluster: LoopbackCluster
    site: Site

    @property
    def run_dir(self) -> Path:
        """The node's run directory: /run/gpuwaste in the root, and where slurmctld outside finds the advisor."""
        return self.cluster.nodes[NODE].run_dir

    def configure(self) -> str:
        """Edit the one file, as an administrator does; return it."""
        node, port = self.cluster.nodes[NODE], self.site.hub_port
        settings: dict[str, dict[str, Any]] = {
            "common": {
                "hub_url": f"http://127.0.0.1:{port}",
                "munge_socket": str(node.munge_socket),
                "slurm_conf": str(self.cluster.layout.slurm_conf),
            },
            "agent": {
                "node_name": NODE,
                "interval_s": 1.0,
                "ship_every_s": 2.0,
                "spool_dir": str(node.spool_dir),
                "listen": f"127.0.0.1:{self.site.exporters[NODE]}",
                "mig_minors": str(self.site.nodes[NODE].mig_minors),
            },
            "hub": {"listen": f"127.0.0.1:{port}", "sacct_every_s": 2.0},
            "advisor": {"listen": f"127.0.0.1:{self.site.advisor_port}", "history_every_s": 1.0},
        }
        text = set_keys(self.root.file(CONFIG).read_text(encoding="utf-8"), settings)
        self.root.write(CONFIG, text)
        return text

    def _enter(self, *words: str) -> list[str]:
        shell = ["unshare", "--mount", "--", "sh", "-ec", _ENTER, "enter"]
        bound = (self.cluster.directory.parent, self.run_dir, self.cluster.nodes[NODE].jobs_dir)
        return [*shell, str(self.root.path), *map(str, bound), *words]

    def _user(self, user: str) -> list[str]:
        return [f"--reuid={user}", f"--regid={user}", "--init-groups", "--inh-caps=-all", "--"]

    def command(self, user: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the installed command as a user, with the installed configuration."""
        argv = self._enter(*self._user(user), "/usr/bin/gpuwaste", *words)
        return self.cluster.run(argv, node=NODE, check=False)

    def start(self, program: str) -> ManagedProcess:
        """Start the installed daemon as its unit does, and wait until it serves."""
        argv = self._enter(*self._user("gpuwaste"), "/usr/bin/gpuwaste", program, "run")
        library = library_env(self.site.native) if program == "agent" else {}
        process = self.cluster.spawn(argv, user="root", node=NODE, env=library, name=f"installed-{program}")
        serving = {
            "hub": lambda: answers(f"http://127.0.0.1:{self.site.hub_port}/v1/health"),
            "agent": lambda: answers(f"http://127.0.0.1:{self.site.exporters[NODE]}/metrics"),
            "advisor": lambda: accepts(str(self.run_dir / "advisor.sock")),
        }
        process.wait_for(serving[program], 90, f"the installed {program} to serve")
        return process

    @contextmanager
    def services(self, *programs: str) -> Iterator[None]:
        """Run daemons, the first first."""
        started = []
        try:
            for program in programs:
                started.append(self.start(program))  # noqa: PERF401 what is started must be ended, whatever comes
            yield
        finally:
            for process in reversed(started):
                process.stop()
