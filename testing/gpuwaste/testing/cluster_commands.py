"""Slurm's commands on a loopback cluster, as any of its users, each with a time limit."""

import base64
import hashlib
import hmac
import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from gpuwaste.core import job_states
from gpuwaste.testing.cluster_host import search_path
from gpuwaste.testing.cluster_options import Layout, Node
from gpuwaste.testing.cluster_process import MARKER, SLURM_POLL_S, ClusterError, as_user, wait_until
from gpuwaste.testing.patience import patient

JobId = int | str
"""7, "3_1" (array task) or "4+1" (het component)."""

ENDED = job_states.ENDED - {"REQUEUED"}
_API_VERSION: Final = re.compile(r"/slurm/(v\d+\.\d+\.\d+)/")
_MAX_OUTPUT: Final = 500  # characters of a job that is part of an error
SACCT_FIELDS = "JobIDRaw,JobID,User,Account,State,Start,End,Elapsed,NodeList,AllocTRES,ExitCode"


class SlurmCommands:
    """What a test or the demo does with a running cluster through Slurm's own commands."""

    layout: Layout
    node_env_extra: dict[str, dict[str, str]]

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes by name."""
        return self.layout.nodes

    def env(self, node: str | None = None) -> dict[str, str]:
        """Return the environment of the cluster's programs; with `node`, as on that node (its munge, its extras)."""
        env = {
            "PATH": search_path(),
            "LANG": "C.UTF-8",
            "SLURM_CONF": str(self.layout.slurm_conf),
            "MYSQL_UNIX_PORT": str(self.layout.mysql_socket),
            "GPUWASTE_MUNGE_SOCKET": str(self.layout.munge_socket),
            "GPUWASTE_CONFIG": str(self.layout.directory / "site" / "hub.toml"),
            MARKER: self.layout.cluster_id,
        }
        if "TZ" in os.environ:
            env["TZ"] = os.environ["TZ"]
        if node is not None:
            env["SLURMD_NODENAME"] = node
            env["GPUWASTE_MUNGE_SOCKET"] = str(self.nodes[node].munge_socket)
            env["GPUWASTE_RUN_DIR"] = str(self.nodes[node].run_dir)
            env["GPUWASTE_JOBS_DIR"] = str(self.nodes[node].jobs_dir)
            env |= self.node_env_extra.get(node, {})
        return env

    def run(
        self,
        argv: Sequence[str],
        user: str = "root",
        *,
        node: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        timeout_s: float = 30,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as `user` in his home of this cluster; ClusterError on a bad exit status or a timeout."""
        home = self.layout.directory / "home" / user
        own = {"USER": user, "LOGNAME": user, "HOME": str(home if home.exists() else self.layout.directory)}
        variables = {**self.env(node), "PATH": search_path(user), **own, **(env or {})}
        if shutil.which(argv[0], path=variables["PATH"]) is None:
            raise ClusterError(f"cannot run {argv[0]} as {user}: no such command")
        try:
            done = subprocess.run(
                [*as_user(user), *argv],  # Python itself would copy its own memory to become the user
                input=stdin,
                capture_output=True,
                text=True,
                errors="surrogateescape",
                timeout=patient(timeout_s),
                check=False,
                env=variables,
                cwd=own["HOME"],
            )
        except OSError as error:
            raise ClusterError(f"cannot run {argv[0]} as {user}: {error.strerror}") from error
        except subprocess.TimeoutExpired:
            raise ClusterError(f"no answer within {patient(timeout_s):g} s: {shlex.join(argv)} (as {user})") from None
        if check and done.returncode:
            text = (done.stderr or done.stdout).strip()
            raise ClusterError(f"{shlex.join(argv)} (as {user}) exited {done.returncode}: {text}")
        return done

    def sbatch(self, script: str | Sequence[str], user: str = "alice", **options: str | int | bool) -> int:
        """Submit a script (its text, or one command as a list) and return the job id.

        Options are sbatch's: `gres="gpu:2"`, `N=2`, `partition="cpu"`, `array="0-2"`, `exclusive=True`.
        """
        text = script if isinstance(script, str) else shlex.join(script)
        if not text.startswith("#!"):
            text = f"#!/bin/bash\n{text}\n"
        done = self.run(["sbatch", "--parsable", *_options(options)], user, stdin=text)
        return int(done.stdout.split(";")[0])

    def show_job(self, job_id: JobId, user: str = "root") -> list[dict[str, str]]:
        """Return `scontrol show job -d` as a dict per job, array task or het component; [] for an unknown job."""
        done = self.run(["scontrol", "-d", "-o", "show", "job", str(job_id)], user, check=False)
        if done.returncode:
            return []
        return [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in done.stdout.splitlines() if line.strip()]

    def job_states(self, job_id: JobId) -> list[str]:
        """Return the state of each of the job's records in slurmctld, "PROLOG" for one that runs no further yet."""
        jobs = [job for job in self.show_job(job_id) if "JobState" in job]
        return [
            "PROLOG" if job["JobState"] == "RUNNING" and job.get("Reason") == "Prolog" else job["JobState"]
            for job in jobs
        ]

    def wait_job(self, job_id: JobId, states: str | Collection[str] = ENDED, timeout_s: float = 60) -> list[str]:
        """Wait until all tasks of the job are in one of `states` and return them.

        ClusterError at once when they all have ended otherwise, and when `timeout_s` seconds are over.
        """
        wanted = {states} if isinstance(states, str) else set(states)
        seen: list[str] = []

        def reached() -> bool:
            seen[:] = self.job_states(job_id)
            if seen and set(seen) <= wanted:
                return True
            if seen and set(seen) <= ENDED:
                known = f"{self.show_job(job_id)}; its output: {self._end_of_output(job_id)}"
                raise ClusterError(f"job {job_id} ended as {seen}, not {sorted(wanted)}: {known}")
            return False

        wait_until(
            reached,
            timeout_s,
            f"job {job_id} to be {sorted(wanted)}",
            lambda: str(self.show_job(job_id)),
            poll_s=SLURM_POLL_S,
        )
        return seen

    def job_output(self, job_id: JobId) -> str:
        """Return what a batch job has written to its standard output so far."""
        return Path(self.show_job(job_id)[0]["StdOut"]).read_text(encoding="utf-8", errors="surrogateescape")

    def _end_of_output(self, job_id: JobId) -> str:
        try:
            return repr(self.job_output(job_id)[-_MAX_OUTPUT:])
        except (OSError, LookupError) as error:
            return str(error)

    def sacct(self, *arguments: str, user: str = "root", fields: str = SACCT_FIELDS) -> list[dict[str, str]]:
        """Return sacct's rows of the last days, allocations alone, times in epoch seconds.

        Without "-j" a new job comes late: slurmctld sends its eligible time, which the window needs, within 5 s.
        """
        argv = ["sacct", "-anP", "-X", "-S", "now-4days", "-E", "now+1days", "-o", fields, *arguments]
        names = fields.split(",")
        lines = self.run(argv, user, env={"SLURM_TIME_FORMAT": "%s"}).stdout.splitlines()
        return [dict(zip(names, line.split("|", len(names) - 1), strict=True)) for line in lines]

    def wait_accounted(self, job_id: JobId, timeout_s: float = 20) -> list[dict[str, str]]:
        """Wait until accounting has the end of all the job's rows and return them."""
        rows: list[dict[str, str]] = []

        def ended() -> bool:
            rows[:] = self.sacct("-j", str(job_id))
            return bool(rows) and all(row["State"].split()[0] in ENDED for row in rows)

        wait_until(ended, timeout_s, f"the end of job {job_id} in sacct", lambda: str(rows), poll_s=SLURM_POLL_S)
        return rows

    def jwt_token(self, user: str, lifespan_s: int = 3600) -> str:
        """Return a token for slurmrestd (header X-SLURM-USER-TOKEN), signed with the cluster's key."""
        now = int(time.time())
        parts = ({"alg": "HS256", "typ": "JWT"}, {"iat": now, "exp": now + lifespan_s, "sun": user})
        signed = b".".join(_base64url(json.dumps(part).encode()) for part in parts)
        key = (self.layout.directory / "etc" / "jwt.key").read_bytes()
        return b".".join([signed, _base64url(hmac.digest(key, signed, hashlib.sha256))]).decode()

    @cached_property
    def release(self) -> tuple[int, int]:
        """The release of the Slurm that runs, such as (24, 11)."""
        year, month = self.run(["sinfo", "-V"]).stdout.split()[-1].split(".")[:2]
        return int(year), int(month)

    def slurmrestd_versions(self) -> list[str]:
        """Return the API versions that slurmrestd serves, the oldest first, as its own description has them."""
        headers = {"X-SLURM-USER-NAME": "root", "X-SLURM-USER-TOKEN": self.jwt_token("root")}
        request = Request(f"{self.slurmrestd_url}/openapi/v3", headers=headers)  # noqa: S310 a loopback address of our own
        with urlopen(request, timeout=patient(20)) as answer:  # noqa: S310
            paths = json.load(answer)["paths"]
        return sorted({found[1] for path in paths if (found := _API_VERSION.match(path))})

    @property
    def slurmrestd_url(self) -> str:
        """Where slurmrestd answers, without a path."""
        return f"http://127.0.0.1:{self.layout.ports[2]}"


def tres_of(record: Mapping[str, str]) -> str:
    """Return what a record of `show_job` says that the job holds or, before its start, asks for."""
    held = record.get("AllocTRES", "(null)")
    return record["TRES"] if "TRES" in record else record["ReqTRES"] if held == "(null)" else held


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _options(options: Mapping[str, str | int | bool]) -> list[str]:
    words = []
    for name, value in options.items():
        dashes = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        if value is True:
            words.append(dashes)
        elif value is not False:
            words += [dashes, str(value)] if len(name) == 1 else [f"{dashes}={value}"]
    return words
