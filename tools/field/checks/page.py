"""The install page's own check: its job is measured and reported, to whom may see it, and has a shadow verdict."""

import re
from typing import Final

from tools.field import install
from tools.field import page as pages
from tools.field.lab import Lab, expect

NAME: Final = "the install page's own check"
_IDLE_S: Final = 35.0
"""Of the page's 40 seconds."""
_METRIC: Final = re.compile(r"^gpuwaste_gpu_utilization_ratio\{.*\} ", re.MULTILINE)


def run(lab: Lab) -> None:
    """Take its steps; between them is the time that the page tells to wait."""
    text = pages.PAGE.read_text(encoding="utf-8")
    first, last = pages.steps(text, "Check")
    said = lab.machine.run(f"cd {install.CHECKOUT}\n{first.script}", timeout_s=180)
    (job,) = re.findall(r"^Submitted batch job (\d+)$", said, re.MULTILINE)
    expect(bool(_METRIC.search(said)), "the agent's metrics have no utilization of a GPU")
    (device,) = lab.measured(int(job), "alice")
    expect(device["idle_s"] >= _IDLE_S, f"job {job} used no GPU, and is not idle: {device}")
    lab.machine.wait("gpuwaste policy verdicts", 90, f"the verdict of job {job}", wanted=job, poll_s=2)
    said = lab.machine.run(last.script)
    expect("alice" in said, "the report of all users has no alice")
    expect("alice" in lab.machine.run("gpuwaste report --allusers", user="carol"), "staff do not see alice")
    others = lab.machine.try_run(f"gpuwaste job {job}", user="bob")
    expect(others.returncode != 0 and "GPU-" not in others.stdout, f"bob sees alice's job: {others.stdout}")
