"""Users of a cluster who come and go with a test: nobody has ever heard of their names, nor of their uids."""

import pwd
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import ClusterError, wait_until
from gpuwaste.testing.patience import patient

_LOCK_S = 30.0
_UIDS = range(20_000, 60_000)  # a uid that comes again would be taken for the user who had it before


@contextmanager
def passing_user(cluster: LoopbackCluster, account: str = "proj1") -> Iterator[str]:
    """Make a user of a drawn name on this host and in an account of the cluster; afterwards both forget him.

    His jobs must have ended by then. A process that is killed leaves the user behind, without a home or a password.
    """
    name = f"u{secrets.token_hex(5)}"
    own = ("--uid", str(_free_uid()), "--user-group", "--no-create-home", "--home-dir", "/nonexistent")
    _change("useradd", *own, name)
    home = cluster.directory / "home" / name
    try:
        cluster.run(["sacctmgr", "-i", "add", "user", name, f"account={account}"])
        home.mkdir(mode=0o700)
        shutil.chown(home, name, name)
        yield name
    finally:
        with suppress(ClusterError):  # the cluster may be gone
            cluster.run(["sacctmgr", "-i", "delete", "user", name])
        shutil.rmtree(home, ignore_errors=True)
        _change("userdel", name)


def _change(command: str, *arguments: str) -> None:
    """Run useradd or userdel, which give up at once while another process changes the users."""
    said: list[str] = []

    def done() -> bool:
        ran = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=patient(30), check=False)
        said.append(ran.stderr.strip())
        return ran.returncode == 0 or _is_there(arguments[-1]) == (command == "useradd")

    wait_until(done, _LOCK_S, f"{command} {arguments[-1]}", lambda: said[-1], poll_s=0.2)


def _free_uid() -> int:
    while True:
        uid = secrets.choice(_UIDS)
        try:
            pwd.getpwuid(uid)
        except KeyError:
            return uid


def _is_there(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
