"""The agent of this node, asked over its control socket: samples, collectors, whose GPU, and what waits to be sent."""

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
    """Ask for the status, and judge each part of it."""
    try:
        status = around.ask_agent(around.config)
    except NoDataError as error:
        yield Check(NAME, Status.FAIL, str(error), "systemctl start gpuwaste-agent, and read its log")
        return
    except UsageError as error:
        yield Check(NAME, Status.WARN, str(error), "run the doctor as root or as the agent's user")
        return
    yield _samples(around, status)
    yield from _collectors(status)
    yield _device_map(status)
    yield _outbox(status)


def _samples(around: Surroundings, status: Mapping[str, Any]) -> Check:
    last_us = status.get("last_sample_us")
    what = f"node {status.get('node')}, {status.get('gpus', 0)} GPUs, version {status.get('version')}"
    if status.get("released_s"):
        return Check(NAME, Status.WARN, f"{what}: GPUs are released for {status['released_s']:.0f} s more")
    if last_us is None:
        return Check(NAME, Status.WARN, f"{what}: no sample yet", "ask again after [agent] interval_s")
    age_s = (around.clock.utc_us() - last_us) / 1e6
    figures = {"sample_age_s": round(age_s, 1)}
    if age_s > _LATE_TICKS * around.config.agent.interval_s + 1:
        return Check(
            NAME, Status.FAIL, f"{what}: last sample {age_s:.0f} s ago", "the driver hangs: nvidia-smi", figures
        )
    return Check(NAME, Status.OK, f"{what}, last sample {age_s:.0f} s ago", figures=figures)


def _collectors(status: Mapping[str, Any]) -> Iterator[Check]:
    silent = sorted(name for name, works in status.get("collectors", {}).items() if not works)
    if silent:
        yield Check(
            "collectors", Status.FAIL, f"{', '.join(silent)} cannot read", "the agent's log says why (gpuwaste-agent)"
        )


def _device_map(status: Mapping[str, Any]) -> Check:
    """Judge whose GPU: conflicts first, then sources of facts that are silent."""
    conflicts = sorted(f"{uuid} ({reason or 'conflict'})" for uuid, reason in status.get("unmapped", {}).items())
    facts = status.get("facts", {})
    silent = {name: words for name, words in facts.items() if words != "ok" and not words.startswith(_BY_NATURE)}
    figures = {"gpu_conflicts": float(len(conflicts))}
    if conflicts:
        found = f"sources disagree about whose GPU it is: {', '.join(conflicts)}"
        return Check(
            "map", Status.FAIL, found, "docs: whose GPU; compare scontrol show job -d with nvidia-smi", figures
        )
    if silent:
        words = "; ".join(f"{name}: {words}" for name, words in sorted(silent.items()))
        return Check("map", Status.WARN, f"silent sources: {words}", "jobs are attributed by fewer sources", figures)
    return Check("map", Status.OK, f"{len(status.get('jobs', ()))} jobs, no conflict", figures=figures)


def _outbox(status: Mapping[str, Any]) -> Check:
    rows = status.get("outbox_rows")
    if rows is None:
        return Check("outbox", Status.FAIL, "cannot be read", "the agent's log says why; is the disk full?")
    figures = {"outbox_rows": float(rows)}
    if status.get("hub", "ok") != "ok":
        return Check("outbox", Status.WARN, f"{rows} rows wait: {status['hub']}", "nothing is lost meanwhile", figures)
    return Check("outbox", Status.OK, f"{rows} rows wait, {status.get('sent_rows', 0)} were sent", figures=figures)
