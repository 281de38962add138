"""The submit plugin: configured in slurm.conf, installed, and built for the running release of Slurm."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.slurm.formats.conf_file import read_text
from gpuwaste.slurm.formats.plugin_file import read_plugin

PLACE: Final = 75
NAME: Final = "plugin"
ROLES: Final = frozenset({Role.ADVISOR})
_CONF: Final = "/etc/slurm/slurm.conf"
_SETTING: Final = re.compile(r"\s*JobSubmitPlugins\s*=\s*(\S*)", re.IGNORECASE)
_FILE: Final = "job_submit_gpuwaste.so"


def check(around: Surroundings) -> Iterator[Check]:
    """Check PluginDir; a plugin that is missing or of another release keeps slurmctld from starting."""
    slurm = around.slurm.config()
    named, conf = slurm.settings.get("JobSubmitPlugins", ""), Path(slurm.settings.get("SLURM_CONF", _CONF))
    if _names_ours(named):
        yield _shared_object(slurm.settings.get("PluginDir", ""), slurm.version)
    elif _names_ours(_written(conf)):
        yield Check(
            NAME,
            Status.WARN,
            f"{conf} names the submit plugin, but slurmctld runs without it: no job gets advice",
            "as root: systemctl restart slurmctld",
        )
    elif "lua" in [name.strip() for name in named.split(",")]:
        yield _lua(conf.with_name("job_submit.lua"))
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


def _names_ours(setting: str) -> bool:
    return not {"gpuwaste", "job_submit/gpuwaste"}.isdisjoint(name.strip() for name in setting.split(","))


def _written(conf: Path) -> str:
    """Return JobSubmitPlugins as slurm.conf has it now; empty where the file cannot be read here."""
    try:
        lines = read_text(conf)
    except ConfigError:
        return ""
    found = [match[1] for line in lines if (match := _SETTING.match(line.text))]
    return found[-1] if found else ""


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
