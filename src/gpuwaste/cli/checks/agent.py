"""The agent of this node, queried over its control socket: samples, collectors, device map, outbox."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.core.errors import NoDataError, UsageError

PLACE: Final = 60
NAME: Final = "agent"
ROLES: Final = frozenset({Role.AGENT})
_LATE_TICKS: Final = 3
_BY_NATURE: Final = "no cgroup v1 device lists"  # cgroup v2 has none


def check(around: Surroundings) -> Iterator[Check]:
    """Query the status, and check each part of it."""
    try:
        status = around.ask_agent(around.config)
    except NoDataError as error:
        yield Check(NAME, Status.FAIL, str(error), "as root: systemctl start gpuwaste-agent, and read its log")
        return
    except UsageError as error:
        yield Check(NAME, Status.WARN, str(error), "run gpuwaste doctor as root or as the agent's user")
        return
    yield _samples(around, status)
    yield from _collectors(status)
    yield _device_map(status)
    yield _outbox(status)


def _samples(around: Surroundings, status: Mapping[str, Any]) -> Check:
    last_us = status.get("last_sample_us")
    what = f"node {status.get('node')}, {status.get('gpus', 0)} GPUs, version {status.get('version')}"
    if status.get("released_s"):
        return Check(NAME, Status.WARN, f"{what}: GPUs are released for another {status['released_s']:.0f} s")
    if last_us is None:
        return Check(NAME, Status.WARN, f"{what}: no sample yet", "run the doctor again after [agent] interval_s")
    age_s = (around.clock.utc_us() - last_us) / 1e6
    figures = {"sample_age_s": round(age_s, 1)}
    if age_s > _LATE_TICKS * around.config.agent.interval_s + 1:
        return Check(
            NAME,
            Status.FAIL,
            f"{what}: last sample {age_s:.0f} s ago",
            "the driver probably hangs: check nvidia-smi and dmesg",
            figures,
        )
    return Check(NAME, Status.OK, f"{what}, last sample {age_s:.0f} s ago", figures=figures)


def _collectors(status: Mapping[str, Any]) -> Iterator[Check]:
    silent = sorted(name for name, works in status.get("collectors", {}).items() if not works)
    if silent:
        yield Check(
            "collectors",
            Status.FAIL,
            f"cannot read: {', '.join(silent)}",
            "journalctl -u gpuwaste-agent gives the reason",
        )


def _device_map(status: Mapping[str, Any]) -> Check:
    """Check the device map: conflicts first, then sources that do not answer."""
    conflicts = sorted(f"{uuid} ({reason or 'conflict'})" for uuid, reason in status.get("unmapped", {}).items())
    facts = status.get("facts", {})
    silent = {name: words for name, words in facts.items() if words != "ok" and not words.startswith(_BY_NATURE)}
    figures = {"gpu_conflicts": float(len(conflicts))}
    if conflicts:
        found = f"sources disagree about the job of a GPU: {', '.join(conflicts)}"
        return Check(
            "map",
            Status.FAIL,
            found,
            "see docs/explanation/attribution.md; compare scontrol show job -d with nvidia-smi",
            figures,
        )
    if silent:
        words = "; ".join(f"{name}: {words}" for name, words in sorted(silent.items()))
        return Check(
            "map", Status.WARN, f"sources without an answer: {words}", "jobs are attributed by fewer sources", figures
        )
    return Check("map", Status.OK, f"{len(status.get('jobs', ()))} jobs, no conflict", figures=figures)


def _outbox(status: Mapping[str, Any]) -> Check:
    rows = status.get("outbox_rows")
    if rows is None:
        mend = "check the disk of [agent] state_dir; journalctl -u gpuwaste-agent gives the reason"
        return Check("outbox", Status.FAIL, "cannot be read", mend)
    figures = {"outbox_rows": float(rows)}
    if status.get("hub", "ok") != "ok":
        mend = "nothing is lost; they are sent when this is fixed"
        return Check("outbox", Status.WARN, f"{rows} rows wait: {status['hub']}", mend, figures)
    return Check("outbox", Status.OK, f"{rows} rows wait, {status.get('sent_rows', 0)} were sent", figures=figures)
