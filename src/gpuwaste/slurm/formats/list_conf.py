"""The private configuration with which `slurmd -G` runs: the site's node and GPU lines, and nothing that is running.

Every slurmd that starts, even one that only prints, sends its log settings to each slurmstepd in SlurmdSpoolDir (since
23.11) and sets up its cgroups. Started by a user, the first adds a line to the output of each running job, and the
second fails with cgroup v2. So it gets a folder of its own: an empty spool directory, no cgroups, no address of
slurmctld. Of the site's slurm.conf it gets the few lines that the list depends on, and all of gres.conf.

Formats: slurm.conf(5), gres.conf(5), cgroup.conf(5); what slurmd does at its start: _slurmd_init() in
src/slurmd/slurmd/slurmd.c of Slurm 22.05 to 26.05.
"""

import contextlib
import os
import re
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ConfigError, ParseError, SlurmError
from gpuwaste.core.text import words_of
from gpuwaste.slurm.formats.conf_file import ConfText, read_text
from gpuwaste.slurm.site.cluster_model import SlurmConfig

DEFAULT_CONF: Final = Path("/etc/slurm/slurm.conf")
CONFIGLESS_CONF: Final = Path("/run/slurm/conf/slurm.conf")
"""Where slurmd of a site without files on its nodes links to what it got from slurmctld."""
PREFIX: Final = "gpuwaste-slurmd-"
"""Of the folders, in the directory for temporary files."""
_LEFT_OVER_S: Final = 600.0  # no slurmd -G runs that long: the process that made the folder was killed
_MAX_SWEPT: Final = 10_000  # names in the directory for temporary files that are checked
_KEPT: Final = frozenset({"grestypes", "plugindir", "slurmdparameters", "authtype", "authinfo", "nodename"})
_DISABLED_SINCE: Final = (24, 5)
_KEY_B: Final = 64
_LOG: Final = "slurmd.log"
_LOG_B: Final = 4096
_SAID_ANYWAY: Final = (b"Node configuration differs from hardware", b"slurmd initialization failed")
_VERSION: Final = re.compile(r"(\d{2})\.(\d{2})\.")
_CONF: Final = """\
ClusterName=gpuwaste
SlurmctldHost=localhost
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SlurmdDebug=info
SlurmdSyslogDebug=quiet
SlurmdSpoolDir="{folder}/spool"
SlurmdLogFile="{folder}/{log}"
SlurmdPidFile="{folder}/slurmd.pid"
"""


def existing_conf(given: str, more: Iterable[str] = ()) -> Path:
    """Return the site's slurm.conf: `given` or SLURM_CONF, as they are; else the first that exists of the usual places.

    `more` is tried after them and may run a query. Where none exists, the usual place is returned.
    """
    if named := given or os.environ.get("SLURM_CONF"):
        return Path(named)
    with contextlib.suppress(SlurmError, ParseError):
        for path in chain((DEFAULT_CONF, CONFIGLESS_CONF), map(Path, more)):
            if _is_file(path):
                return path
    return DEFAULT_CONF


def asked_places(ask: Callable[[], SlurmConfig], node: str) -> Iterator[str]:
    """Yield other places of a node's slurm.conf; `ask` is called when the first is requested."""
    config = ask()
    yield config.settings.get("SLURM_CONF", "")
    yield f"{config.spool_dir(node, socket.gethostname().partition('.')[0])}/conf-cache/slurm.conf"


def release_of(text: str) -> tuple[int, int] | None:
    """Return (24, 11) of `slurm-wlm 24.11.5`, None where no release is named."""
    found = _VERSION.search(text)
    return (int(found[1]), int(found[2])) if found else None


def no_cgroups(release: tuple[int, int] | None) -> str:
    """Return the CgroupPlugin with which slurmd sets up nothing; None is treated as a current release.

    Before 24.05 there is no `disabled`, and v1 does nothing until a step asks, whatever the node's layout.
    """
    return "disabled" if release is None or release >= _DISABLED_SINCE else "cgroup/v1"


@contextlib.contextmanager
def private_conf(site_conf: Path, release: tuple[int, int] | None) -> Iterator[Path]:
    """Make the folder and yield its slurm.conf; the folder is always removed at the end.

    `release` is slurmd's; None is treated as a current one. Raises ConfigError for a file of the site that cannot be
    used, SlurmError where no folder can be made.
    """
    if not os.path.lexists(site_conf):
        raise ConfigError(f"{site_conf}: no such file: set [common] slurm_conf to the slurm.conf of this node")
    lines = read_text(site_conf)
    if not any(line.key == "nodename" for line in lines):
        raise ConfigError(f"{site_conf}: no NodeName: not a slurm.conf with this cluster's nodes")
    gres = _gres_lines(site_conf.with_name("gres.conf"), lines)
    folder = _made_folder()
    try:
        conf = folder / "slurm.conf"
        try:
            _write(folder, _slurm_text(lines, folder), gres, f"CgroupPlugin={no_cgroups(release)}\n")
        except OSError as error:
            raise SlurmError(f"{folder}: cannot write the configuration for slurmd -G: {error.strerror}") from error
        yield conf
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def reasons(conf: Path, stderr: bytes) -> bytes:
    """Return what a slurmd with a private configuration logged and printed, the reason for its exit last."""
    lines = [*_log_end(conf.parent / _LOG).splitlines(), *stderr.splitlines()]
    return b"\n".join(line for line in lines if not any(words in line for words in _SAID_ANYWAY))


def _log_end(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_B))
            return file.read(_LOG_B)
    except OSError:
        return b""


def _slurm_text(lines: list[ConfText], folder: Path) -> str:
    keys = _KEPT
    kept = []
    if any(line.key == "authtype" and line.value.lower() == "auth/slurm" for line in lines):
        keys = keys - {"authinfo"}
        kept.append("AuthInfo=disable_sack")  # else it takes over the socket where the running slurmd signs for users
    kept += [line.text for line in lines if line.key in keys]
    return "\n".join([_CONF.format(folder=folder, log=_LOG), *kept, ""])


def _gres_lines(path: Path, lines: list[ConfText]) -> str | None:
    """Return gres.conf with what it includes, None where the site has none."""
    if not os.path.lexists(path):
        return None
    cluster = next((line.value.lower() for line in reversed(lines) if line.key == "clustername"), "")
    return "\n".join([*(line.text for line in read_text(path, cluster)), ""])


def _write(folder: Path, conf: str, gres: str | None, cgroup: str) -> None:
    (folder / "spool").mkdir(mode=0o700)
    (folder / "slurm.conf").write_text(conf, encoding="utf-8")
    (folder / "cgroup.conf").write_text(cgroup, encoding="utf-8")
    if gres is not None:
        (folder / "gres.conf").write_text(gres, encoding="utf-8")
    key = folder / "slurm.key"  # auth/slurm reads one at its start; no message is ever signed with it
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(_KEY_B))


def _made_folder() -> Path:
    try:
        place = Path(tempfile.gettempdir())
        _sweep(place)
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    except OSError as error:
        said = words_of(error.strerror or error)
        raise SlurmError(f"slurmd -G: no folder for temporary files: {said}: set TMPDIR") from error


def _sweep(place: Path) -> None:
    """Remove folders that a killed process of the same user left."""
    with os.scandir(place) as entries:
        names = [entry.name for entry in islice(entries, _MAX_SWEPT) if entry.name.startswith(PREFIX)]
    for name in names:
        path = place / name
        with contextlib.suppress(OSError):
            status = path.lstat()
            if status.st_uid == os.geteuid() and time.time() - status.st_mtime > _LEFT_OVER_S:
                shutil.rmtree(path, ignore_errors=True)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False
