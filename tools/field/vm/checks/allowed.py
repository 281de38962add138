"""AllowedCPUs of a unit, as a site sets it to keep cores for jobs: the agent runs on those and measures."""

from typing import Final

from tools.field.lab import Lab, expect

NAME: Final = "AllowedCPUs of the agent"
_UNIT: Final = "gpuwaste-agent"


def run(lab: Lab) -> None:
    """Set it for the running agent and for one that starts, and take it back."""
    lab.machine.run(f"systemctl set-property --runtime {_UNIT} AllowedCPUs=1")
    try:
        _on(lab, "1")
        lab.machine.run(f"systemctl restart {_UNIT}")
        _on(lab, "1")
        lab.well("with AllowedCPUs", timeout_s=30)
    finally:
        lab.machine.run(f"systemctl set-property --runtime {_UNIT} AllowedCPUs=")
    lab.machine.run(f"systemctl restart {_UNIT}")
    _on(lab, f"0-{lab.machine.cpus - 1}")


def _on(lab: Lab, cpus: str) -> None:
    main = lab.unit(_UNIT, "MainPID")
    said = set(lab.machine.run(f"sed -n 's/^Cpus_allowed_list:\\t//p' /proc/{main}/task/*/status").split())
    expect(said == {cpus}, f"threads of the agent may run on {said}, not {cpus}")
