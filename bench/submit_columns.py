"""The columns of bench/submit.py: what slurm.conf and job_submit.lua say in each, and what must be built for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.testing.running_site import Site
from gpuwaste.testing.submit_plugins import build_plugins

_SLURM_PLUGINS: Final = "/usr/lib/x86_64-linux-gnu/slurm-wlm"
_NOOP: Final = """\
function slurm_job_submit(job_desc, part_list, submit_uid) return slurm.SUCCESS end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return slurm.SUCCESS end
return slurm.SUCCESS
"""
_ASKS: Final = """\
package.path = "{folder}/?.lua;" .. package.path
package.cpath = "{folder}/?.so;" .. package.cpath
local gpuwaste = require("gpuwaste")
function slurm_job_submit(job_desc, part_list, submit_uid) return gpuwaste.submit(job_desc, part_list, submit_uid) end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return gpuwaste.modify(job_desc, job_rec, part_list, modify_uid)
end
return slurm.SUCCESS
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The folder of the built plugins and their client, and job_submit.lua's place."""

    plugin_dir: Path
    script: Path


@dataclass(frozen=True, slots=True)
class Column:
    """One column: JobSubmitPlugins, and what else slurmctld needs to start with it."""

    name: str
    plugins: str
    install: Callable[[Prepared], Mapping[str, str]]


def prepare(site: Site) -> Prepared:
    """Build the plugins and put them where slurmctld's user reads them."""
    folder = build_plugins("c", "client", "lua", out=site.directory / "job_submit")
    return Prepared(folder, site.cluster.layout.slurm_conf.parent / "job_submit.lua")


def _none(_prepared: Prepared) -> Mapping[str, str]:
    return {"PluginDir": ""}


def _noop(prepared: Prepared) -> Mapping[str, str]:
    prepared.script.write_text(_NOOP)
    return {"PluginDir": ""}


def _lua(prepared: Prepared) -> Mapping[str, str]:
    prepared.script.write_text(_ASKS.format(folder=prepared.plugin_dir))
    return {"PluginDir": ""}


def _c(prepared: Prepared) -> Mapping[str, str]:
    return {"PluginDir": f"{prepared.plugin_dir}:{_SLURM_PLUGINS}"}


COLUMNS: Final = (
    Column("none", "", _none),
    Column("no-op Lua", "lua", _noop),
    Column("our Lua", "lua", _lua),
    Column("our C", "gpuwaste", _c),
)
