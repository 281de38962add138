"""What a check has in its hands: one release's cluster with our plugins built for it, and the advisors' socket."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpuwaste.advice.submit_frames import encode_reply
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.jobs.verdict import Action
from gpuwaste.slurm.formats.printed_run import token_of
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import ManagedProcess, wait_until
from gpuwaste.testing.running_site import Site
from gpuwaste.testing.scripted_advisor import Answer, ScriptedAdvisor
from tools.matrix.releases import Release

USER: Final = "alice"
_SLURM_PLUGINS: Final = "/usr/lib/x86_64-linux-gnu/slurm-wlm"  # Debian's, in all suites
_PROBE_S: Final = 30.0
TOKEN: Final = "0123456789abcdef"  # noqa: S105 a verdict's id
Request = dict[str, Any]


class CheckError(GpuwasteError):
    """A check found something else than it should."""


@dataclass
class Rig:
    """One release at work."""

    release: Release
    version: str
    tree: Path | None
    folder: Path
    """The column's own folder, the same name in the tree."""
    cluster: LoopbackCluster
    site: Site
    requests: dict[str, Any] = field(default_factory=dict)
    """What the plugin sent for each line of the fixed list."""
    _in_use: str = ""
    _edited: int = 0

    @property
    def plugins(self) -> Path:
        """Where our plugins are, built for this release."""
        return self.folder / "plugins"

    @property
    def log(self) -> Path:
        """Slurmctld's log."""
        return self.cluster.directory / "log" / "slurmctld.log"

    def use(self, job_submit: str, folder: Path | None = None) -> None:
        """Let slurmctld run with these job_submit plugins, as a site would: one line of slurm.conf and a restart."""
        wanted = f"{job_submit} {folder}"
        if self._in_use != wanted:
            self.write_slurm_conf(job_submit, folder or self.plugins)
            self.cluster.restart_slurmctld()
            self.cluster.wait_nodes_idle()
            self._in_use = wanted

    def use_lua(self, script: str) -> None:
        """Let slurmctld run job_submit/lua with this script as the site's job_submit.lua, as after an edit of it."""
        path = self.cluster.layout.slurm_conf.with_name("job_submit.lua")
        path.write_text(script, encoding="utf-8")
        # slurmctld loads a script that is younger, in whole seconds, than the last one, or than its last load.
        self._edited = max(int(time.time()) + 2, self._edited + 1)
        os.utime(path, (self._edited, self._edited))
        self.use("lua")

    def write_slurm_conf(self, job_submit: str, folder: Path) -> None:
        """Write the lines of job_submit into slurm.conf and forget what slurmctld runs with."""
        path = self.cluster.layout.slurm_conf
        kept = [line for line in path.read_text().splitlines() if not re.match(r"(JobSubmitPlugins|PluginDir)=", line)]
        ours = [f"JobSubmitPlugins={job_submit}", f"PluginDir={folder}:{_SLURM_PLUGINS}"] if job_submit else []
        path.write_text("\n".join([*kept, *ours]) + "\n")
        self._in_use = ""

    def submit(
        self, *options: str, command: str = "sbatch", script: str = "exit 0", user: str = USER
    ) -> subprocess.CompletedProcess[str]:
        """Run sbatch, srun or salloc as a user, whatever comes of it."""
        if command == "sbatch":
            argv = [command, "--parsable", "--output=/dev/null", *options]
            return self.cluster.run(argv, user, stdin=f"#!/bin/bash\n{script}\n", check=False, timeout_s=60)
        return self.cluster.run([command, *options], user, check=False, timeout_s=60)

    def accepted(self, *options: str, script: str = "exit 0", user: str = USER) -> int:
        """Submit a batch job that must be accepted without a word; return its id."""
        done = self.submit(*options, script=script, user=user)
        expect(done.returncode == 0, f"sbatch {' '.join(options)} exited {done.returncode}: {done.stderr.strip()}")
        expect(not done.stderr.strip(), f"sbatch said: {done.stderr.strip()}")
        return int(done.stdout.split(";")[0])

    def job(self, job_id: int | str) -> Mapping[str, str]:
        """Return what scontrol shows of a job."""
        jobs = self.cluster.show_job(job_id)
        expect(bool(jobs), f"job {job_id} is not in scontrol's list")
        return jobs[0]

    def token(self, job_id: int | str) -> str:
        """Return the verdict's id in a job's admin_comment, "" where there is none."""
        return token_of(self.job(job_id).get("AdminComment", ""))

    @contextmanager
    def advisor(self, answer: Answer) -> Iterator[ScriptedAdvisor]:
        """Have an advisor that answers so, from when the plugin asks it: its breaker may have been open."""
        self.site.advisor_socket.unlink(missing_ok=True)
        with ScriptedAdvisor(self.site.advisor_socket, answer) as advisor:
            self._wait_asked(lambda: bool(advisor.requests))
            advisor.requests.clear()
            yield advisor
        expect(not advisor.errors, f"malformed requests: {[str(error) for error in advisor.errors[:3]]}")

    @contextmanager
    def faulty(self, way: str) -> Iterator[ManagedProcess]:
        """Have an advisor at fault in one of the ways of testing.faulty_advisor."""
        socket = self.site.advisor_socket
        runtime = self.site.runtime
        argv = runtime.module("gpuwaste.testing.faulty_advisor", str(socket), way)
        process = self.cluster.spawn(argv, user="gpuwaste", env=runtime.env, name=f"advisor-{way}")
        try:
            process.wait_for(socket.exists, what="the faulty advisor to listen")
            yield process
        finally:
            process.stop()
            socket.unlink(missing_ok=True)

    def _wait_asked(self, asked: Any) -> None:
        def probed() -> bool:
            self.submit("--test-only")
            return bool(asked())

        wait_until(probed, _PROBE_S, "the plugin to ask the advisor", self.log_tail, poll_s=0.1)

    def log_tail(self) -> str:
        """Return the end of slurmctld's log."""
        return self.cluster.processes["slurmctld"].tail()

    def log_size(self) -> int:
        """Return where slurmctld's log ends now, for `log_after`."""
        return self.log.stat().st_size

    def log_after(self, size: int) -> str:
        """Return what slurmctld has logged since."""
        return self.log.read_bytes()[size:].decode(errors="replace")

    def clean(self) -> None:
        """End the check's jobs and remove the socket and the kill switch."""
        self.site.advisor_socket.unlink(missing_ok=True)
        self.site.kill_switch.unlink(missing_ok=True)
        self.cluster.cancel_jobs()

    def free(self) -> None:
        """Remove the column's data."""
        shutil.rmtree(self.cluster.directory, ignore_errors=True)


def says(action: Action, *lines: str, code: int = 0) -> Answer:
    """Return an answer that is the same for every request."""
    return lambda _: encode_reply(TOKEN, action, lines, code=code, as_of=int(time.time()))


def expect(truth: bool, otherwise: str) -> None:
    """Raise CheckError where something is not as it should be."""
    if not truth:
        raise CheckError(otherwise)
