"""An agent over MemoryMax is killed by the kernel and started again; what the hub has acknowledged stays as it was."""

from typing import Final

from tools.field.lab import Lab, expect

NAME: Final = "agent killed over MemoryMax"
_UNIT: Final = "gpuwaste-agent"
_TOO_LITTLE: Final = "8M"
_SECONDS: Final = 40
_UNKNOWN_S: Final = 25.0
"""RestartSec, and the start of the agent."""


def run(lab: Lab) -> None:
    """Give a running agent less than it has; systemd gives the next one what the unit says."""
    earlier = lab.play("bob", 1, ["20:40:1000"])
    lab.sampled([earlier])
    lab.ended(earlier, 60)
    lab.confirmed(earlier, "bob")
    acknowledged = lab.job(earlier, "bob")
    job = lab.play("alice", 1, [f"{_SECONDS}:70:5000"])
    lab.sampled([job])
    before = int(lab.unit(_UNIT, "NRestarts"))
    group = f"/sys/fs/cgroup{lab.unit(_UNIT, 'ControlGroup')}"
    # Not set-property: it would hold for the next one too.
    lab.machine.run(f"echo {_TOO_LITTLE} >{group}/memory.max")
    lab.started_again(_UNIT, before, 60)
    journal = lab.machine.run(f"journalctl --unit={_UNIT} --output=cat --lines=40")
    expect("oom-kill" in journal, f"systemd does not say oom-kill: {journal[-500:]}")
    lab.active()
    lab.ended(job, _SECONDS + 30)
    (mean,) = lab.confirmed(job, "alice", unknown_s=_UNKNOWN_S)
    expect(abs(mean - 70) <= 5, f"job {job} played 70 %: {mean}")  # noqa: PLR2004
    runs = lab.job(earlier, "bob").get("runs")
    expect(runs == acknowledged["runs"], f"job {earlier} before: {acknowledged['runs']}, after: {runs}")
    lab.well("after the agent was killed", timeout_s=60)
