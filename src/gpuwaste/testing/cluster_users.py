"""Users of a cluster who come and go with a test: nobody has ever heard of their names."""

import pwd
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import ClusterError, wait_until

_LOCK_S = 30.0


@contextmanager
def passing_user(cluster: LoopbackCluster, account: str = "proj1") -> Iterator[str]:
    """Make a user of a drawn name on this host and in an account of the cluster; afterwards both forget him.

    His jobs must have ended by then. A process that is killed leaves the user behind, without a home or a password.
    """
    name = f"u{secrets.token_hex(5)}"
    _change("useradd", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", name)
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
        ran = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=30, check=False)
        said.append(ran.stderr.strip())
        return ran.returncode == 0 or _is_there(arguments[-1]) == (command == "useradd")

    wait_until(done, _LOCK_S, f"{command} {arguments[-1]}", lambda: said[-1], poll_s=0.2)


def _is_there(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True
