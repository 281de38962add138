"""The columns of bench/submit.py: what slurm.conf and job_submit.lua say in each, and what must be built for it."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.submit_site import ROOT
from gpuwaste.testing.site import Site

_SLURM_PLUGINS: Final = "/usr/lib/x86_64-linux-gnu/slurm-wlm"
_NOOP: Final = """
function slurm_job_submit(job_desc, part_list, submit_uid) return slurm.SUCCESS end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return slurm.SUCCESS end
return slurm.SUCCESS
"""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is built: the plugin's folder, the folder of the plugins' client, and job_submit.lua's place."""

    plugin_dir: Path
    client: Path
    script: Path


@dataclass(frozen=True, slots=True)
class Column:
    """One column: JobSubmitPlugins, and what else slurmctld needs to start with it."""

    name: str
    plugins: str
    install: Callable[[Prepared], Mapping[str, str]]


def prepare(site: Site) -> Prepared:
    """Build the plugins and put them where slurmctld's user reads them."""
    built = ROOT / "build" / "job_submit"
    command = ["make", "--no-print-directory", "-C", str(ROOT / "plugins" / "job_submit"), f"OUT={built}"]
    subprocess.run([*command, f"PYTHON={sys.executable}", "all"], check=True)
    folder = site.directory / "job_submit"
    shutil.copytree(built, folder)
    return Prepared(folder, built, site.cluster.layout.slurm_conf.parent / "job_submit.lua")


def _none(_prepared: Prepared) -> Mapping[str, str]:
    return {"PluginDir": ""}


def _noop(prepared: Prepared) -> Mapping[str, str]:
    prepared.script.write_text(_NOOP)
    return {"PluginDir": ""}


def _lua(prepared: Prepared) -> Mapping[str, str]:
    prepared.script.write_text("")  # SEE lua-ready
    return {"PluginDir": ""}


def _c(prepared: Prepared) -> Mapping[str, str]:
    return {"PluginDir": f"{prepared.plugin_dir}:{_SLURM_PLUGINS}"}


COLUMNS: Final = (
    Column("none", "", _none),
    Column("no-op Lua", "lua", _noop),
    Column("our Lua", "lua", _lua),
    Column("our C", "gpuwaste", _c),
)
