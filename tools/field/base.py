"""What can be asked of a machine of the field, whatever it is made of: commands, files, a start and an end."""

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.cluster_process import wait_until
from tools.trees import debian

NAME: Final = "admin1"
"""The host's name, as the install page has it."""
RUN_S: Final = 120.0


class AnyMachine(ABC):
    """A machine whose files are in `folder`."""

    folder: Path
    cpus: int
    complete = False
    """Its cgroups have all controllers."""
    pace = 1.0
    """How many times as long as on this host a command may take; all limits of time are multiplied by it."""
    stretch = 1
    """How many times as long jobs play, so that what is done meanwhile finds them running."""

    @property
    def doctor(self) -> str:
        """The doctor's command, with as much time as it has on this host."""
        return "gpuwaste doctor" if self.pace == 1 else f"gpuwaste doctor --timeout {20 * self.pace:g}"

    @abstractmethod
    def boot(self, lowers: Sequence[Path]) -> None:
        """Start it on what its files have, over a tree; return when its init has started all. Raises GpuwasteError."""

    @abstractmethod
    def try_run(self, script: str, *, user: str = "root", timeout_s: float = RUN_S) -> subprocess.CompletedProcess[str]:
        """Run a shell script as a user; after `timeout_s` it is killed, with exit status 124 or 137."""

    @abstractmethod
    def put(self, source: Path, name: str) -> None:
        """Copy a file or a folder of this host into the machine, to the path `name`, with its modes."""

    @abstractmethod
    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the machine."""

    @abstractmethod
    def reboot(self, lowers: Sequence[Path]) -> None:
        """Shut it down in good order, as a sysadmin does, and start it again. Raises GpuwasteError."""

    @abstractmethod
    def heard(self) -> list[str]:
        """Return what left the machine, and what it asked DNS for, since its first start. Raises GpuwasteError."""

    @abstractmethod
    def down(self) -> None:
        """End it at once; its files stay. Raises GpuwasteError."""

    def remove(self) -> None:
        """End it and remove its files."""
        self.down()
        debian.remove_tree(self.folder)

    def run(self, script: str, *, user: str = "root", timeout_s: float = RUN_S) -> str:
        """Run a shell script, which ends at the first failure; return its output. Raises GpuwasteError."""
        done = self.try_run(script, user=user, timeout_s=timeout_s)
        if done.returncode:
            raise GpuwasteError(f"{script}\nexited with {done.returncode}\n{done.stdout}{done.stderr}".strip())
        return done.stdout

    def read(self, name: str) -> str:
        """Return the text of a file of the machine, "" where there is none."""
        return self.try_run(f"cat {name}").stdout

    def has(self, name: str) -> bool:
        """Tell whether the machine has a file or a folder."""
        return self.try_run(f"[ -e {name} ]").returncode == 0

    def wait(
        self, script: str, timeout_s: float, what: str, *, wanted: str | Sequence[str] = "", user: str = "root",
        poll_s: float = 0.3,
    ) -> str:  # fmt: skip
        """Run a script until it succeeds and says (one of) what is wanted; return its output. Raises GpuwasteError."""
        said = subprocess.CompletedProcess[str]([], 1, "", "")
        words = [wanted] if isinstance(wanted, str) else list(wanted)

        def done() -> bool:
            nonlocal said
            said = self.try_run(script, user=user)
            return said.returncode == 0 and any(word in said.stdout for word in words)

        def last() -> str:
            return f"{said.stdout}{said.stderr}"[-2000:]

        wait_until(done, timeout_s * self.pace, what, last, poll_s=poll_s)
        return said.stdout

    def words(self, script: str, user: str, timeout_s: float) -> list[str]:
        """Return the command line of a shell script in the machine, in an environment of its own."""
        own = ["env", "-i", f"PATH={debian.PATH}", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]
        own += [f"HOME={'/root' if user == 'root' else f'/home/{user}'}", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=cat"]
        change = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--"] if user != "root" else []
        limited = ["timeout", "--kill-after=5", f"{timeout_s:g}", "sh", "-ec", f"cd /\n{script}"]
        return [*own, *change, *limited]
