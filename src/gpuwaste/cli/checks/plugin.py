"""The submit plugin: configured in slurm.conf, installed, and built for the running release of Slurm."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.plugin_file import read_plugin

PLACE: Final = 75
NAME: Final = "plugin"
ROLES: Final = frozenset({Role.ADVISOR})
_FILE: Final = "job_submit_gpuwaste.so"


def check(around: Surroundings) -> Iterator[Check]:
    """Check PluginDir; a plugin that is missing or of another release keeps slurmctld from starting."""
    slurm = around.slurm.config()
    named = [name.strip() for name in slurm.settings.get("JobSubmitPlugins", "").split(",")]
    if "gpuwaste" in named or "job_submit/gpuwaste" in named:
        yield _shared_object(slurm.settings.get("PluginDir", ""), slurm.version)
    elif "lua" in named:
        yield _lua(Path(slurm.settings.get("SLURM_CONF", "/etc/slurm/slurm.conf")).with_name("job_submit.lua"))
    else:
        yield Check(
            NAME,
            Status.WARN,
            "slurm.conf has no submit plugin of gpuwaste: no job gets advice",
            "JobSubmitPlugins=gpuwaste",
        )
    switch = Path(around.config.plugin.kill_switch)
    if switch.exists():
        yield Check(
            "switch", Status.WARN, f"{switch} exists: the plugins accept every job without advice", f"rm {switch}"
        )


def _shared_object(plugin_dir: str, running: str) -> Check:
    """Judge the first file that slurmctld would find."""
    places = [Path(place) / _FILE for place in plugin_dir.split(":") if place]
    path = next((place for place in places if place.exists()), None)
    stop = "take gpuwaste out of JobSubmitPlugins before slurmctld restarts: otherwise it cannot start"
    if path is None:
        return Check(NAME, Status.FAIL, f"{_FILE} is not in PluginDir={plugin_dir}", f"install it, or {stop}")
    try:
        plugin = read_plugin(path)
    except (ParseError, OSError) as error:
        return Check(NAME, Status.FAIL, str(error), f"install it again, or {stop}")
    if plugin.release != running:
        found = f"{path} was built for Slurm {plugin.release}, slurmctld is {running}"
        return Check(NAME, Status.FAIL, found, f"install the one for {running}, or {stop}")
    return Check(NAME, Status.OK, f"{path}, built for Slurm {plugin.release}")


def _lua(path: Path) -> Check:
    try:
        asks = "gpuwaste" in path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return Check(NAME, Status.FAIL, f"{path}: {error.strerror}", "slurmctld needs it: JobSubmitPlugins=lua")
    if asks:
        return Check(NAME, Status.OK, f"{path} names gpuwaste")
    return Check(NAME, Status.WARN, f"{path} does not ask gpuwaste", "see docs/how-to/submit-lua.md")
