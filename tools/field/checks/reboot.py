"""The machine is restarted with a job running: all comes up by itself, the ledger has what it had, and measures on."""

from typing import Final

from tools.field import site
from tools.field.lab import UNITS, Lab, expect

NAME: Final = "reboot of the machine"
_SECONDS: Final = 25


def run(lab: Lab) -> None:
    """Reboot it; the job that it ran has its measured part in the ledger, a new one is confirmed."""
    lab.read_accounting_often()
    cut = lab.play("alice", 1, ["600:90:5000"])
    lab.sampled([cut])
    before = lab.job(cut, "root").get("job_id")
    lab.machine.reboot(lab.lowers)
    lab.active((*site.DAEMONS, *UNITS), timeout_s=90)
    lab.machine.try_run(f"scancel {cut}")
    site.idle(lab.machine)
    lab.well("after a reboot", timeout_s=90)
    job = lab.play("bob", 1, [f"{_SECONDS}:40:5000"])
    lab.ended(job, _SECONDS + 30)
    means = lab.confirmed(job, "bob")
    expect(len(means) == 1 and abs(means[0] - 40) <= 3, f"job {job} played 40 %: {means}")  # noqa: PLR2004
    runs = lab.job(cut, "alice")["runs"]
    measured = [device for run in runs for device in run["devices"] if device.get("mean_util_pct") is not None]
    expect(before is None or bool(measured), f"job {cut} has nothing that was measured before the reboot: {runs}")
