"""The plugin that was built against this release's headers loads, and asks in this release's name."""

from typing import Final

from tools.matrix.rig import Rig, expect, says

NAME: Final = "C plugin: builds, loads, asks"
JOB_SUBMIT: Final = "gpuwaste"


def run(rig: Rig) -> None:
    """Submit one job past an advisor that passes all."""
    shown = rig.cluster.run(["scontrol", "show", "config"]).stdout
    loaded = next((line for line in shown.splitlines() if line.startswith("JobSubmitPlugins")), "")
    expect(loaded.partition("=")[2].strip() == "gpuwaste", f"scontrol show config: {loaded!r}")
    with rig.advisor(says("pass")) as advisor:
        rig.accepted("--job-name=first")
        request = next((r for r in advisor.requests if r["job"].get("name") == "first"), {})
    expect(bool(request), "the job was accepted, but the advisor was not asked about it")
    said = (request["op"], request["via"], request["slurm"])
    expect(said == ("submit", "c", rig.version), f"the plugin says {said}, not submit, c, {rig.version}")
