#!/usr/bin/python3.11 -IB
"""systemctl on a host without systemd: starts a unit's ExecStart as its User with its environment, and no more.

It makes the unit's directories, gives it its capabilities and umask, waits for READY=1 (Type=notify) or for the end of
the parent (Type=forking), and ends it by SIGTERM. Units are enabled for nothing: no boot comes. What a unit is kept
from (files, system calls, memory) is not put in force here. tests.system.rpm_machine makes it /usr/bin/systemctl.
"""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

UNITS = [Path(path) for path in ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")]
STATE = Path("/run/units")
NOTHING = {"daemon-reload", "preset", "enable", "disable"}
"""What has no meaning without a boot; --now starts or stops all the same."""
START_S, STOP_S = 120.0, 60.0


class Unit:
    """One service by its file."""

    def __init__(self, name: str) -> None:
        """Read it. Exits where there is none."""
        self.name = name.removesuffix(".service")
        files = [folder / f"{self.name}.service" for folder in UNITS]
        file = next((path for path in files if path.exists()), None)
        if file is None:
            sys.exit(f"Unit {self.name}.service could not be found.")
        self.keys: dict[str, list[str]] = {}
        for line in file.read_text(encoding="utf-8").splitlines():
            key, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                self.keys.setdefault(key, []).append(value)
        self.user = self.one("User", "root")
        self.pid_file = STATE / self.name

    def one(self, key: str, otherwise: str = "") -> str:
        """Return a setting that stands once."""
        return self.keys.get(key, [otherwise])[-1]

    def environment(self) -> dict[str, str]:
        """Return what the unit and its EnvironmentFiles say."""
        lines = [word for text in self.keys.get("Environment", []) for word in shlex.split(text)]
        for name in self.keys.get("EnvironmentFile", []):
            path = Path(name.removeprefix("-"))
            if path.exists() or not name.startswith("-"):
                lines += [line for line in path.read_text().splitlines() if "=" in line and line[0] not in "#;"]
        pairs = (line.partition("=") for line in lines)
        return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **{key: "".join(shlex.split(text)) for key, _, text in pairs}}

    def pid(self) -> int:
        """Return the main process; 0 where none runs."""
        if not self.pid_file.exists():
            return 0
        pid = int(self.pid_file.read_text())
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return 0
        return 0 if state == "Z" else pid

    def start(self) -> None:
        """Start it and return when it serves. Exits where it does not."""
        if self.pid():
            return
        self.make_directories()
        env = self.environment()
        words = []
        for word in self.one("ExecStart").split():
            words += shlex.split(env.get(word[1:], "")) if word.startswith("$") else [word]
        notify = self.one("Type") == "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready, self.log().open("ab") as log:
            if notify:
                env["NOTIFY_SOCKET"] = str(STATE / f"{self.name}.notify")
                Path(env["NOTIFY_SOCKET"]).unlink(missing_ok=True)
                ready.bind(env["NOTIFY_SOCKET"])
                Path(env["NOTIFY_SOCKET"]).chmod(0o777)
            process = subprocess.Popen(
                [*self.as_user(), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                cwd="/",
                start_new_session=True,
                umask=int(self.one("UMask", "0022"), 8),
            )
            self.pid_file.write_text(str(process.pid))
            if notify:
                self.wait_ready(process, ready)
        if self.one("Type") == "forking":
            if process.wait(START_S):
                self.fail(f"exited with {process.returncode}")
            self.pid_file.write_text(Path(self.one("PIDFile")).read_text())

    def wait_ready(self, process: subprocess.Popen[bytes], ready: socket.socket) -> None:
        """Wait for the daemon's word that it serves."""
        ready.settimeout(0.2)
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if process.poll() is not None:
                self.fail(f"exited with {process.returncode}")
            try:
                if b"READY=1" in ready.recv(4096):
                    return
            except TimeoutError:
                continue
        self.fail(f"was not ready within {START_S:g} s")

    def fail(self, why: str) -> None:
        """Say so, with the end of the log."""
        sys.exit(f"{self.name} {why}\n{self.log().read_text(errors='replace')[-3000:]}")

    def log(self) -> Path:
        """Where its output goes."""
        return Path(f"/var/log/unit-{self.name}.log")

    def make_directories(self) -> None:
        """Make /run/... and /var/lib/... of the unit's user."""
        STATE.mkdir(mode=0o755, exist_ok=True)
        for key, top in (("RuntimeDirectory", "/run"), ("StateDirectory", "/var/lib")):
            for name in self.one(key).split():
                path = Path(top, name)
                path.mkdir(parents=True, exist_ok=True)
                shutil.chown(path, self.user, self.one("Group", self.user))
                path.chmod(int(self.one(f"{key}Mode", "0755"), 8))

    def as_user(self) -> list[str]:
        """Return the command that changes the user and keeps the unit's capabilities alone."""
        if self.user == "root":
            return []
        names = self.one("AmbientCapabilities").split()
        plus = "".join(f",+{name.removeprefix('CAP_').lower()}" for name in names)
        ambient = [f"--ambient-caps=-all{plus}"] if plus else []
        group = self.one("Group", self.user)
        limits = [f"--inh-caps=-all{plus}", *ambient, f"--bounding-set=-all{plus}", "--no-new-privs"]
        return ["setpriv", f"--reuid={self.user}", f"--regid={group}", "--init-groups", *limits, "--"]

    def stop(self) -> None:
        """End it; kill it where it resists."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            until = time.monotonic() + STOP_S
            if pid := self.pid():
                os.kill(pid, number)
            while self.pid() and time.monotonic() < until:
                time.sleep(0.05)
        self.pid_file.unlink(missing_ok=True)

    def reload(self) -> None:
        """Do what ExecReload says."""
        subprocess.run(self.one("ExecReload").replace("$MAINPID", str(self.pid())).split(), check=True)


def main() -> None:
    """Do what one command line says."""
    verb, *names = [word for word in sys.argv[1:] if not word.startswith("-")]
    for unit in map(Unit, names):
        if verb in {"start", "stop", "reload"}:
            getattr(unit, verb)()
        elif verb == "restart" or (verb == "try-restart" and unit.pid()):
            unit.stop()
            unit.start()
        elif verb == "enable" and "--now" in sys.argv:
            unit.start()
        elif verb == "disable" and "--now" in sys.argv:
            unit.stop()
        elif verb == "is-active":
            sys.exit(0 if unit.pid() else 3)
        elif verb not in NOTHING | {"try-restart"}:
            sys.exit(f"systemctl {verb}: not known here")


if __name__ == "__main__":
    main()
