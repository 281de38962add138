"""The doctor of an idle site has nothing to say but ok, and its exit status says so too."""

from typing import Final

from tools.field.lab import Lab, expect

NAME: Final = "doctor without fail or warn"


def run(lab: Lab) -> None:
    """Ask it, once the agent has sampled."""
    lab.well("of an idle site", timeout_s=30)
    done = lab.machine.try_run(lab.machine.doctor, timeout_s=60)
    expect(done.returncode == 0, f"exit status {done.returncode}")
    expect(not done.stderr.strip(), f"on standard error: {done.stderr.strip()}")
