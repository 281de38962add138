"""From this version to a newer one by apt while a job runs: services go on with it, configuration and ledger stay."""

from typing import Final

from tools.field import page
from tools.field.lab import UNITS, Lab, expect
from tools.field.newer import offer

NAME: Final = "upgrade from the version before"
_SECONDS: Final = 40


def run(lab: Lab) -> None:
    """Offer the same packages under a higher version, take the page's step, and look at what stayed."""
    lab.read_accounting_often()
    text = page.PAGE.read_text(encoding="utf-8")
    earlier = lab.play("bob", 1, ["10:30:1000"])
    lab.ended(earlier, 60)
    lab.confirmed(earlier, "bob")
    before, newer = offer(lab.machine)
    configuration = lab.configuration()
    job = lab.play("alice", 1, [f"{_SECONDS}:75:5000"], script="echo begins")
    lab.sampled([job])
    said = lab.machine.run(page.command(text, "upgrade"), timeout_s=300)
    lab.active()
    version = lab.machine.run("gpuwaste --version").strip()
    expect(version == f"gpuwaste {newer}", f"{version} after an upgrade from {before} to {newer}: {said[-1000:]}")
    for unit in UNITS:
        expect(lab.unit(unit, "UnitFileState") == "enabled", f"{unit} is not enabled any more")
    expect(lab.configuration() == configuration, "the configuration in use is another")
    lab.well("after an upgrade", timeout_s=60)
    doctor = "\n".join(lab.doctor())
    expect(doctor.count(f"version {newer}") >= 2, f"agent or hub runs on with {before}: {doctor}")  # noqa: PLR2004 agent, hub
    lab.ended(job, _SECONDS + 60)
    means = lab.confirmed(job, "alice", unknown_s=30)
    expect(len(means) == 1 and abs(means[0] - 75) <= 5, f"job {job} played 75 %: {means}")  # noqa: PLR2004
    expect(lab.output(job) == "begins\n", f"job {job} wrote {lab.output(job)!r}")
    lab.confirmed(earlier, "bob", timeout_s=5)
