"""Figure: the right size replayed on public data: what it frees beside the runs that would have died, by threshold.

Each run is judged by the rule (`ledger/right_size/rule.py`) with what had ended at its submission. Beside it stand
plain rules: the highest of the last runs, and that with a fifth more. GPU memory is from GenTD26 (Alibaba, 2026), a
day of 144 pods that serve models: a part of a pod's time counts as a run, and the parts before it as such jobs; the
largest peak is 47 GiB, so the GPU is taken to have 48, and half, two thirds and five sixths of it as the smaller
sizes. Time limits are from logs of the Parallel Workloads Archive: such jobs are those of one user, size and limit.
Then one line of JSON. `--pass` measures the pass of the hub instead.
"""

import argparse
import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from tools.data.places import find

from bench.sizes_pass import NODES, measure
from gpuwaste.core.units import HOUR_S, MINUTE_S
from gpuwaste.ledger.right_size.findings.time_limit_longer_than_needed import GAIN
from gpuwaste.ledger.right_size.rule import MIN_RUNS, WINDOW, Growth, Growths, Peak, growth, need_of
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.formats.log_file import read_lines
from gpuwaste.slurm.formats.swf_log import read_swf
from gpuwaste.slurm.submit.friendly_amounts import friendly_s
from gpuwaste.store.duckdb_connection import connect

MEMORY: Final = "gpu/alibaba_gentd26/pod_gpu_memory_used_bytes.parquet"
LOGS: Final = {
    "KTH-SP2": "swf/KTH-SP2-1996-2.1-cln.swf.xz",
    "CEA-Curie 03/04": "swf/CEA-Curie-sample-2012-03_04.with_status.swf.xz",
    "CEA-Curie 06/07": "swf/CEA-Curie-sample-2012-06_07.with_status.swf.xz",
}
THRESHOLDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
DIED: Final = 0.01
CARD_B: Final = 48 * (1 << 30)
SIZES: Final = tuple(CARD_B * part for part in (1 / 2, 2 / 3, 5 / 6))
PARTS_MIN: Final = (15, 60)
Size = Callable[[Sequence[Peak], Growths], float | None]
"""The size that a rule gives a run, from the peaks of the last such jobs and all growths; None: as requested."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: of which jobs, what it used and was given, and for how many hours of how many units."""

    jobs: str
    peak: Peak
    hours: float
    tells: bool = True  # whether it ended by itself or for lack of what it was given


@dataclass(slots=True)
class Replayed:
    """What one rule came to."""

    rule: str
    runs: int = 0
    sized: int = 0
    died: int = 0
    hours: float = 0.0
    freed: float = 0.0

    @property
    def died_share(self) -> float:
        """Of the runs with a smaller size, those that needed more."""
        return self.died / self.sized if self.sized else 0.0

    @property
    def freed_share(self) -> float:
        """Of all hours, those freed."""
        return self.freed / self.hours if self.hours else 0.0


def replay(runs: Iterable[Run], rules: dict[str, Size]) -> list[Replayed]:
    """Judge runs in the order of their submission, each with what had ended by then."""
    found = {name: Replayed(name) for name in rules}
    peaks: dict[str, list[Peak]] = {}
    growths = Growths()
    open_runs: list[tuple[float, int, Run, Growth | None]] = []
    for number, run in enumerate(sorted(runs, key=lambda run: run.peak.submit)):
        while open_runs and open_runs[0][0] <= run.peak.submit:
            _, _, ended, grown = heapq.heappop(open_runs)
            if ended.tells and grown is not None:
                growths.add(grown)
            if ended.tells:
                theirs = peaks.setdefault(ended.jobs, [])
                theirs.append(ended.peak)
                del theirs[:-WINDOW]
        last = peaks.get(run.jobs, [])
        for name, rule in rules.items():
            _judge(found[name], run, rule(last, growths) if len(last) >= MIN_RUNS else None)
        heapq.heappush(open_runs, (run.peak.end, number, run, growth(last, run.peak)))
    return list(found.values())


def _judge(found: Replayed, run: Run, size: float | None) -> None:
    """Count a run; one that reached what it was given would have died in any case."""
    found.runs += 1
    found.hours += run.hours
    if size is None or size >= run.peak.given or run.peak.used >= run.peak.given:
        return
    found.sized += 1
    if run.peak.used > size:
        found.died += 1
    else:
        found.freed += run.hours * (1 - size / run.peak.given)


def memory_rules() -> dict[str, Size]:
    """Return the smallest size that fits by each rule."""

    def fits(chance: float) -> Size:
        def rule(last: Sequence[Peak], growths: Growths) -> float | None:
            need = need_of(last, growths)
            return None if need is None else next((size for size in SIZES if need.chance(size) <= chance), None)

        return rule

    def plain(factor: float) -> Size:
        return lambda last, _: next((size for size in SIZES if size >= factor * max(p.used for p in last)), None)

    rules = {f"chance at most {chance:.1%}": fits(chance) for chance in THRESHOLDS}
    return {**rules, "highest of the last runs": plain(1.0), "highest and a fifth more": plain(1.2)}


def time_rules() -> dict[str, Size]:
    """Return the friendly limit by each rule; none where a run reached its limit, or it gains too little."""

    def of(bound: Size) -> Size:
        def rule(last: Sequence[Peak], growths: Growths) -> float | None:
            if any(peak.used >= peak.given for peak in last) or (found := bound(last, growths)) is None:
                return None
            limit = friendly_s(found)
            return limit if limit <= GAIN * last[-1].given else None

        return rule

    def bound(chance: float) -> Size:
        def rule(last: Sequence[Peak], growths: Growths) -> float | None:
            need = need_of(last, growths)
            return None if need is None else need.bound(chance)

        return of(rule)

    def plainly(factor: float) -> Size:
        return lambda last, _: factor * max(p.used for p in last)

    rules = {f"chance at most {chance:.1%}": bound(chance) for chance in THRESHOLDS}
    plain = {"highest of the last runs": 1.0, "highest and a fifth more": 1.2}
    return rules | {name: of(plainly(factor)) for name, factor in plain.items()}


def pod_parts(path: Path, minutes: int) -> Iterator[Run]:
    """Yield the parts of each pod's time with their peak of GPU memory; parts of which half is missing are left out."""
    rows = connect().execute(
        "SELECT container_ip, floor(timestamp_anon / $part_s) AS part, max(gpu_mem_used_bytes)"
        " FROM read_parquet($path) GROUP BY ALL HAVING count(*) >= $samples",
        {"path": str(path), "part_s": minutes * MINUTE_S, "samples": minutes // 2},
    )
    for pod, part, used in rows.fetchall():
        begin = part * minutes * MINUTE_S
        yield Run(pod, Peak(used, CARD_B, begin, begin + minutes * MINUTE_S), minutes * MINUTE_S / HOUR_S)


def limited_runs(path: Path) -> Iterator[Run]:
    """Yield the runs of a log that have a limit and ended by themselves or at the limit."""
    _, rows = read_swf(read_lines(path), "log")
    for job in rows:
        if not isinstance(job, JobRecord) or not job.time_limit_s or not job.elapsed_s or job.end is None:
            continue
        cpus, used = job.cpus or 1, min(job.elapsed_s, job.time_limit_s)
        hours = job.time_limit_s * cpus / HOUR_S
        tells = job.state == "COMPLETED" or used == job.time_limit_s
        peak = Peak(used, job.time_limit_s, job.submit, job.end)
        yield Run(f"{job.user} {cpus} {job.time_limit_s}", peak, hours, tells)


def main() -> int:
    """Replay each data set and print what each rule comes to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pass", dest="hub_pass", action="store_true", help="measure the hub's pass instead")
    parser.add_argument("--home", type=Path, help="directory that keeps the store of --pass for another run")
    parser.add_argument("--nodes", type=int, default=NODES, help="nodes of the site of --pass (default: %(default)s)")
    options = parser.parse_args()
    if options.hub_pass:
        print(json.dumps({"bench": "sizes", "pass": measure(options.home, options.nodes)}))
        return 0
    told = []
    sets: list[tuple[str, str, Callable[[Path], Iterator[Run]], dict[str, Size]]] = [
        (f"GPU memory, GenTD26 by {minutes} min", MEMORY, partial(pod_parts, minutes=minutes), memory_rules())
        for minutes in PARTS_MIN
    ]
    sets += [(f"time limit, {name}", file, limited_runs, time_rules()) for name, file in LOGS.items()]
    for name, file, read, rules in sets:
        path = find(file)
        if path is None:
            print(f"{name}: no data here: run `make data`")
            continue
        found = replay(read(path), rules)
        print(f"{name}: {found[0].runs:,} runs, {found[0].hours:,.0f} hours as requested")
        print(f"  {'':28} {'sized':>8} {'died':>6} {'share':>7} {'freed':>8}")
        for each in found:
            print(f"  {each.rule:28} {each.sized:8,} {each.died:6,} {each.died_share:7.2%} {each.freed_share:8.1%}")
        judged = next(each for each in found if each.rule == f"chance at most {DIED:.1%}")
        met = "not judged, no run was sized" if not judged.sized else "met" if judged.died_share <= DIED else "missed"
        print(f"  target: at most {DIED:.0%} of the sized runs died at a chance of {DIED:.0%}: {met}", flush=True)
        told.append({"set": name, "rules": [asdict(each) for each in found]})
    print(json.dumps({"bench": "sizes", "sets": told}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
