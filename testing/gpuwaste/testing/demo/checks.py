"""Compares what gpuwaste reports with what the load programs measured and what accounting has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from subprocess import CompletedProcess
from typing import Any, Protocol

from gpuwaste.core.units import say_percent
from gpuwaste.testing.demo.measured import Due, due
from gpuwaste.testing.demo.story import Story
from gpuwaste.testing.running_site import SiteOptions
from gpuwaste.testing.simnvml import OracleEvent, oracle_seconds

Document = Mapping[str, Any]


class ReportedSite(Protocol):
    """A site that ran the demo: the one on this host, or the one of a recording."""

    options: SiteOptions

    @property
    def window(self) -> tuple[str, ...]:
        """Arguments of `report` that keep to the run."""
        ...

    def oracle(self) -> list[OracleEvent]:
        """Return what the load programs say that they did."""
        ...

    def gpuwaste(self, *arguments: str, user: str, check: bool = True) -> CompletedProcess[str]:
        """Run the command as a user."""
        ...

    def json(self, *arguments: str, user: str) -> dict[str, Any]:
        """Return the document that the command gives."""
        ...


@dataclass(frozen=True, slots=True)
class DemoCheck:
    """One statement of gpuwaste: what was measured, what is reported, and whether they agree."""

    what: str
    truth: str
    said: str
    ok: bool


def check_story(site: ReportedSite, story: Story) -> list[DemoCheck]:
    """Return every check of the demo."""
    events = site.oracle()
    documents = {name: site.json("job", str(job), user="root") for name, job in story.jobs.items()}
    tolerance_s = 2 * site.options.interval_s
    wanted = {
        name: due(story.plan[name], document["runs"], events, tolerance_s) for name, document in documents.items()
    }
    checks = [
        *_findings(wanted, documents),
        _all_findings(site, story, wanted),
        _headline(documents["train-ddp"], tolerance_s),
        _untouched(documents["preprocess"]),
    ]
    checks.append(_no_waste(documents["solver"]))
    checks += _seconds(documents, events, tolerance_s)
    checks += _edges(documents, events, tolerance_s)
    checks += _gap(story, documents, tolerance_s)
    checks += _advice(story)
    return checks


def _findings(wanted: Mapping[str, Due], documents: Mapping[str, Document]) -> Iterator[DemoCheck]:
    for name, document in documents.items():
        # An array's finding stands over several jobs: the job's own page may show it once for all of them.
        kinds = {finding["kind"] for finding in document["findings"]} or {""}
        ok = len(kinds) == 1 and kinds <= wanted[name].kinds
        yield DemoCheck(f"finding of {name}", wanted[name].text, ", ".join(sorted(kinds)) or "none", ok)


def _all_findings(site: ReportedSite, story: Story, wanted: Mapping[str, Due]) -> DemoCheck:
    """Hold the cluster's findings, also those over several jobs, against what is due: each on its case and no other."""
    document = site.json("report", "--allusers", *site.window, user="root")
    said = {
        (finding["kind"], int(run["printed_id"].partition("_")[0]))
        for finding in document["findings"]
        for run in finding["runs"]
    }
    may = {(kind, story.jobs[name]) for name, one in wanted.items() for kind in one.kinds if kind}
    must = {(kind, story.jobs[name]) for name, one in wanted.items() for kind in one.kinds if "" not in one.kinds}
    return DemoCheck(
        "jobs with a finding",
        f"{len(must)} jobs",
        _words(said - may, must - said),
        must <= said <= may,
    )


def _words(extra: set[tuple[str, int]], missing: set[tuple[str, int]]) -> str:
    parts = [
        f"{word} " + ", ".join(f"{kind} of {job}" for kind, job in sorted(found))
        for word, found in (("also", extra), ("missing:", missing))
        if found
    ]
    return "; ".join(parts) or "the same jobs"


def _headline(document: Document, tolerance_s: float) -> DemoCheck:
    run = document["runs"][-1]
    totals = run["totals"]
    share, unknown = totals["wasted_s"] / totals["gpu_s"], totals["unknown_s"] / totals["gpu_s"]
    edges = tolerance_s / (run["end"] - run["start"])
    fix = [line for finding in document["findings"] for line in finding["fix"]]
    named = any("#SBATCH" in line and ":1" in line for line in fix)
    return DemoCheck(
        "train-ddp used 1 of 4 GPUs", "75 % wasted", f"{say_percent(share)}, {fix[0] if fix else '-'}",
        0.75 - unknown - edges < share < 0.75 + edges and named,
    )  # fmt: skip


def _untouched(document: Document) -> DemoCheck:
    devices = document["runs"][-1]["devices"]
    said = ", ".join("untouched" if device["untouched"] else device["level"] for device in devices)
    return DemoCheck("preprocess did not open its GPU", "untouched", said, all(d["untouched"] for d in devices))


def _no_waste(document: Document) -> DemoCheck:
    wasted = document["runs"][-1]["totals"]["wasted_s"]
    return DemoCheck("solver is busy", "0.0 s wasted", f"{wasted:.1f} s wasted", wasted == 0)


def _seconds(documents: Mapping[str, Document], events: list[OracleEvent], tolerance_s: float) -> Iterator[DemoCheck]:
    """Compare each device's active seconds with the oracle's, where unknown time may be active or not."""
    for name, document in documents.items():
        for run in document["runs"]:
            mine = [event for event in events if event.job_id == run["raw_id"]]
            for device in run["devices"]:
                yield _active(name, run, device, mine, tolerance_s)


def _active(name: str, run: Document, device: Document, events: list[OracleEvent], tolerance_s: float) -> DemoCheck:
    truth = oracle_seconds(events, device["gpu_uuid"], run["start"], run["end"])
    active = sum(seconds for pct, seconds in truth.items() if pct > 0)
    said = device["low_s"] + device["moderate_s"] + device["high_s"]
    unknown = device["unknown_s"]
    ok = active - unknown - tolerance_s <= said <= active + tolerance_s
    what = f"use by {name}: {device['node']} …{device['gpu_uuid'][-4:]}"
    return DemoCheck(what, f"active {active:.1f} s", f"{said:.1f} s (+{unknown:.1f} s unknown)", ok)


def _edges(documents: Mapping[str, Document], events: list[OracleEvent], tolerance_s: float) -> Iterator[DemoCheck]:
    """Compare the agents' own t0 and t1 with accounting's, and with the first and last word of the load program.

    Between slurmctld's start of a run and the first line of its script lies what slurmd takes, seconds on a busy host.
    """
    for name, document in documents.items():
        for run in document["runs"]:
            heard = [event.t_utc for event in events if event.job_id == run["raw_id"]]
            t0 = min(device["t0"] for device in run["devices"])
            t1 = max(device["t1"] for device in run["devices"])
            began, ended = max([run["start"], *heard[:1]]), min([run["end"], *heard[-1:]])
            ok = run["start"] - tolerance_s <= t0 <= began + tolerance_s
            ok = ok and ended - tolerance_s <= t1 <= run["end"] + tolerance_s
            said = f"start {t0 - run['start']:+.1f} s, end {t1 - run['end']:+.1f} s"
            truth = f"start {began - run['start']:+.1f} s, end {ended - run['end']:+.1f} s"
            yield DemoCheck(f"times of {name} {run['jobid']}", truth, said, ok)


def _gap(story: Story, documents: Mapping[str, Document], tolerance_s: float) -> Iterator[DemoCheck]:
    outage = story.outage
    if outage is None:
        return
    for name, document in documents.items():
        run = document["runs"][-1]
        overlap = min(outage.ended, run["end"]) - max(outage.began, run["start"])
        for device in run["devices"]:
            if device["node"] == outage.node and overlap > tolerance_s:
                said = device["unknown_s"]
                ok = abs(said - overlap) <= tolerance_s
                truth = f"agent stopped for {overlap:.1f} s"
                yield DemoCheck(f"unknown time of {name}", truth, f"{said:.1f} s unknown", ok)


def _advice(story: Story) -> Iterator[DemoCheck]:
    """Compare sbatch's output with the earlier run of its owner; the other user has no earlier run."""
    advice = story.advice
    if advice is None:
        return
    asked = story.plan[advice.name].gpus
    told = f"1 of {asked} GPUs" in advice.told and "gpu:a100:1" in advice.told
    said = "; ".join(line.removeprefix("sbatch: gpuwaste: ") for line in advice.told.splitlines())
    yield DemoCheck(f"advice at sbatch for {advice.owner}", f"used 1 of {asked} GPUs", said, told)
    what = f"advice at sbatch for {advice.other}"
    yield DemoCheck(what, "none: no earlier run", advice.control or "none", not advice.control)
