"""What `gpuwaste doctor` looks at: each check is a function that returns one line with how to mend it."""

import ctypes
import os
import pwd
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Protocol

from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, NoDataError, SlurmError
from gpuwaste.slurm.client import SlurmClient

_ADVISOR_S: Final = 5.0


class Status(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor: what was looked at, what was found, and how to mend it."""

    name: str
    status: Status
    found: str
    mend: str = ""


class AskHub(Protocol):
    """Asks the hub for a document."""

    def __call__(self, config: Config, path: str) -> object:
        """Return the document at `path`."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the checks look at: the configuration, Slurm, the hub, and as whom."""

    config: Config
    config_path: Path
    slurm: SlurmClient
    ask_hub: AskHub
    user: str  # who runs the checks


def run_checks(around: Surroundings) -> Iterator[Check]:
    """Run every check in turn; one that meets an error is a failed check."""
    for name, check in CHECKS.items():
        try:
            yield from check(around)
        except GpuwasteError as error:
            yield Check(name, Status.FAIL, str(error))


def check_versions(around: Surroundings) -> Iterator[Check]:
    """Name our version and Slurm's."""
    slurm = around.slurm.config()
    tried = (22, 5) <= _version(slurm.version) <= (26, 5)
    found = f"gpuwaste {version('gpuwaste')}, Slurm {slurm.version or 'unknown'}, cluster {slurm.cluster_name}"
    yield Check(
        "version", Status.OK if tried else Status.WARN, found, "" if tried else "tried with Slurm 22.05 to 26.05"
    )
    named = around.config.common.cluster
    if named and named != slurm.cluster_name:
        yield Check(
            "cluster", Status.FAIL, f"[common] cluster is {named!r}", f"set it to {slurm.cluster_name!r}, or ''"
        )


def check_config(around: Surroundings) -> Iterator[Check]:
    """Say which file counts; that it can be read is proven by having come here."""
    if around.config_path.exists():
        yield Check("config", Status.OK, str(around.config_path))
    else:
        yield Check("config", Status.WARN, f"{around.config_path} is absent: the defaults are used")


def check_munge(around: Surroundings) -> Iterator[Check]:
    """Make a credential and read it back."""
    from gpuwaste.wire.munge import Munge

    if around.config.common.token_file:
        yield Check("munge", Status.OK, "not used: token_file is set")
        return
    try:
        munge = Munge(around.config.common.munge_socket)
        identity = munge.decode(munge.encode(b"doctor"))
    except GpuwasteError as error:
        yield Check("munge", Status.FAIL, str(error), "start munged, or set [common] munge_socket or token_file")
        return
    yield Check("munge", Status.OK, f"credentials work for uid {identity.uid} from {identity.origin_address}")


def check_rights(around: Surroundings) -> Iterator[Check]:
    """Prove on another user's job that Slurm shows us all jobs."""
    me = around.user
    private = around.slurm.config().private_data & {"jobs", "all"}
    others = sorted({job.user for job in around.slurm.jobs()} - {me})
    mend = f"sacctmgr modify user {me} set adminlevel=Operator"
    if others:
        yield Check("rights", Status.OK, f"{me} sees jobs of {len(others)} other user(s), such as {others[0]}")
        return
    level = around.slurm.admin_levels().get(me, "None")
    if level != "None" or me in {"root", "slurm"}:
        yield Check("rights", Status.WARN, f"no other user's job is there to prove it on; admin level {level}")
    elif private:
        yield Check(
            "rights", Status.FAIL, f"PrivateData=jobs hides other users' jobs from {me}, without an error", mend
        )
    else:
        yield Check("rights", Status.WARN, "no other user's job is there to prove it on; PrivateData is not set")


def check_nvml(_around: Surroundings) -> Iterator[Check]:
    """Load NVML's library, as the agent does."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        yield Check("nvml", Status.WARN, str(error), "on a GPU node: install the driver; elsewhere: nothing to do")
        return
    yield Check("nvml", Status.OK, "libnvidia-ml.so.1 can be loaded")


def check_spool(around: Surroundings) -> Iterator[Check]:
    """Look at slurmd's spool directory, where the agent sees jobs come and go."""
    host = socket.gethostname().split(".")[0]
    node = around.config.agent.node_name or host
    path = Path(around.config.agent.spool_dir or around.slurm.config().spool_dir(node, host))
    yield _directory("spool", path, os.R_OK | os.X_OK, Status.WARN, "on a GPU node: start slurmd, or set spool_dir")


def check_run_dir(around: Surroundings) -> Iterator[Check]:
    """Look at the directory of sockets and prolog files."""
    path = Path(around.config.common.run_dir)
    yield _directory("run dir", path, os.R_OK | os.X_OK, Status.FAIL, f"systemd-tmpfiles --create, or mkdir {path}")


def check_hub(around: Surroundings) -> Iterator[Check]:
    """Ask the hub how it is."""
    url = around.config.common.hub_url
    try:
        around.ask_hub(around.config, "/v1/health")
    except NoDataError as error:
        yield Check("hub", Status.FAIL, f"{url}: {error}", "set [common] hub_url to the hub")
    except GpuwasteError as error:
        yield Check("hub", Status.FAIL, str(error), "start the hub (gpuwaste hub run), or set [common] hub_url")
    else:
        yield Check("hub", Status.OK, f"{url} answers")


def check_advisor(around: Surroundings) -> Iterator[Check]:
    """Ask the advisor of this host for a trial that it scores and does not record."""
    from gpuwaste.wire.advice import MAX_REPLY, decode_reply, encode_frame

    path, start = Path(around.config.advisor.socket), "beside slurmctld: gpuwaste advisor run; elsewhere nothing"
    trial: dict[str, Any] = {"op": "submit", "via": "doctor", "uid": os.geteuid(), "deadline_us": 1_000_000}
    trial["job"] = {"user_id": os.geteuid(), "name": "doctor", "script_bytes": 1, "test_only": True}
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(_ADVISOR_S)
            sock.connect(str(path))
            sock.sendall(encode_frame(trial))
            reply = sock.recv(2 * MAX_REPLY)
    except (FileNotFoundError, ConnectionRefusedError):
        yield Check("advisor", Status.WARN, f"{path}: nobody listens", start)
        return
    except OSError as error:
        reply = b""
        if not isinstance(error, ConnectionResetError | BrokenPipeError):
            yield Check("advisor", Status.FAIL, f"{path}: {error}", "see the advisor's log; submissions pass meanwhile")
            return
    if not reply:
        yield Check("advisor", Status.WARN, f"{path}: does not answer {around.user}", "ask as root or as SlurmUser")
        return
    as_of = int(decode_reply(reply).get("as_of") or 0)
    if not as_of:
        mend = "see its log: is the hub reached?"
        yield Check("advisor", Status.WARN, f"{path} answers, without a history that is up to date", mend)
        return
    yield Check("advisor", Status.OK, f"{path} answers")


CHECKS: dict[str, Callable[[Surroundings], Iterator[Check]]] = {
    "version": check_versions,
    "config": check_config,
    "munge": check_munge,
    "rights": check_rights,
    "nvml": check_nvml,
    "spool": check_spool,
    "run dir": check_run_dir,
    "hub": check_hub,
    "advisor": check_advisor,
}


def _directory(name: str, path: Path, mode: int, bad: Status, mend: str) -> Check:
    if not path.is_dir():
        return Check(name, bad, f"{path} is no directory", mend)
    if not os.access(path, mode):
        return Check(name, bad, f"{path} cannot be read", f"run as the agent's user, or chmod {path}")
    return Check(name, Status.OK, str(path))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


def user_name() -> str:
    """Return the caller's name. Raises SlurmError where his uid has none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise SlurmError(f"uid {os.geteuid()} has no name on this host: add the user") from None
