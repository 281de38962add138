"""The source RPM, built against a release's headers, gives the plugin that this release's slurmctld takes."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

from tools.matrix.rig import TOKEN, Rig, expect, says
from tools.rpm.build import Build, build, rebuild
from tools.rpm.root import DATABASE

NAME: Final = "C plugin of the source RPM"
JOB_SUBMIT: Final = ""


def run(rig: Rig) -> None:
    """Build it as upgrade.md says, unpack it, and submit a job under it."""
    folder = rig.folder / "packaged"
    shutil.rmtree(folder, ignore_errors=True)
    headers = f"{rig.tree or ''}/usr/include"
    plugin = _rebuilt(folder, headers)
    needs = _rpm("-qpR", "--nosignature", str(plugin))
    expect(f"slurm = {rig.version}\n" in needs, f"{plugin.name} requires: {needs}")
    unpacked = folder / "root"
    unpacked.mkdir()
    _rpm(f"--root={unpacked}", f"--dbpath={DATABASE}", "-i", "--nodeps", "--noscripts", "--nosignature", str(plugin))
    (library,) = unpacked.rglob("job_submit_gpuwaste.so")
    rig.use("gpuwaste", library.parent)
    try:
        with rig.advisor(says("pass")):
            job = rig.accepted()
        expect(rig.token(job) == TOKEN, f"AdminComment is {rig.job(job).get('AdminComment')!r}")
    finally:
        rig.use("")


def _rebuilt(folder: Path, headers: str) -> Path:
    """Return the plugin's package: a source RPM without wheels, built again without Python."""
    source = build(Build(folder / "source", without=("python",), defines={"slurm_include": headers}))
    (source_rpm,) = (path for path in source if path.name.endswith(".src.rpm"))
    built = rebuild(source_rpm, Build(folder / "rpm", without=("python",), defines={"slurm_include": headers}))
    (plugin,) = (path for path in built if path.name.startswith("gpuwaste-slurm-plugin"))
    return plugin


def _rpm(*words: str) -> str:
    done = subprocess.run(["rpm", *words], capture_output=True, text=True, check=False)
    expect(done.returncode == 0, f"rpm {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
