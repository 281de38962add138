"""A plugin that was built for another release is refused by slurmctld, with a line that says so."""

import shutil
from typing import Final

from tools.matrix.build import build_foreign
from tools.matrix.rig import Rig, expect

NAME: Final = "C plugin of another release: refused"
JOB_SUBMIT: Final = ""
_END_S: Final = 30


def run(rig: Rig) -> None:
    """Start slurmctld with a plugin built against other headers; it must end, saying why, and start again without."""
    foreign = rig.folder / "foreign"
    shutil.rmtree(foreign, ignore_errors=True)
    build_foreign(rig.tree, foreign)
    rig.cluster.processes["slurmctld"].stop()
    rig.write_slurm_conf("gpuwaste", foreign)
    mark = rig.log_size()
    try:
        done = rig.cluster.run(["slurmctld", "-D"], "slurm", check=False, timeout_s=_END_S)
    finally:
        rig.write_slurm_conf("", foreign)
        rig.cluster.restart_slurmctld()
    text = rig.log_after(mark) + done.stderr
    lines = [line for line in text.splitlines() if "job_submit_gpuwaste" in line and "ersion" in line]
    expect(done.returncode != 0, "slurmctld runs with a plugin that was built for another release")
    expect(bool(lines), f"slurmctld ended without a line on the plugin's version: {_end(text)}")


def _end(text: str) -> str:
    return " | ".join(text.splitlines()[-5:])
