"""Figure: what a submission costs slurmctld, side by side: no plugin, a no-op job_submit.lua, our Lua, our C plugin.

One real slurmctld has 20,000 held jobs in memory and accounting on. In each round it starts once with each column, from
the same saved state, in another order; then come three loads through libslurm, without sbatch's own start:

- one a second: one submission a second, as jobs trickle in. Only so the job list has changed before each, and
  job_submit/lua builds its table of all jobs anew;
- one by one: 400 submissions, each as soon as the one before is answered;
- eight at once: 8 processes with 60 submissions each.

"RPC" is slurmctld's own mean of REQUEST_SUBMIT_BATCH_JOB (sdiag), "call" what the submitter waits. "Added" compares
with the column without a plugin of the same round; medians of the rounds, with the least and the most.

The exchange is timed from the plugins' side: a program with their own client asks the same advisor, with a deadline
that hides nothing; "bare" is the same beside an advisor that does nothing but answer, the host's own share. The
advisor is hung with SIGSTOP; once the breaker is open, blocks of submissions alternate with
blocks under the kill switch, where the plugin does nothing at all. What one core of the advisor gives and what it
holds in memory with 100,000 users' history is taken from a run of bench/advisor.py. Prints a table, then one line of
JSON.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.submit_columns import COLUMNS, Column, Prepared, prepare
from bench.submit_exchange import advisor_alone, bare_us, exchange_us, hung_loss, percentile
from bench.submit_site import Load, SubmitSite
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.sim_build import build_native

LOADS: Final = {"one a second": (8, 1, 1050), "one by one": (400, 1, 0), "eight at once": (60, 8, 0)}
TARGETS: Final = {
    "c_added_rpc_ms": 0.25,
    "c_added_rpc_one_a_second_ms": 0.25,
    "exchange_p99_ms": 1.0,
    "exchange_p999_ms": 2.0,
    "hung_loss_pct": 5.0,
    "advisor_rss_mb": 250,
    "advisor_verdicts_per_s": 5000,
}
AT_LEAST: Final = frozenset({"advisor_verdicts_per_s"})
_SHARES: Final = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
Rounds = dict[tuple[str, str], list[Load]]


def main() -> int:
    """Measure and print; 0 when every target is met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=20_000, help="held jobs in memory")
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gwbench", dir="/tmp") as name:
        Path(name).chmod(0o755)
        figures = measure(Path(name), options.jobs, options.rounds)
    print(__doc__.partition("\n\n")[2])
    result = show(figures)
    print(json.dumps({"bench": "submit", "jobs": options.jobs, "rounds": options.rounds, **result}))
    return 0 if all(_met(name, value) for name, value in result.items()) else 1


def _met(name: str, value: float) -> bool:
    """Tell whether a figure has no target or meets it."""
    target = TARGETS.get(name)
    return target is None or (value >= target if name in AT_LEAST else value <= target)


def measure(directory: Path, jobs: int, rounds: int) -> dict[str, Any]:
    """Run everything on a cluster in `directory`."""
    began = time.monotonic()
    # Sacct of so many jobs, every few seconds, is the hub's load and no part of a submission.
    options = SiteOptions(sacct_every_s=3600.0)
    with LoopbackCluster(directory / "c", remove=True) as cluster:
        submit = SubmitSite(cluster)
        submit.fill(jobs)
        site = Site(cluster, build_native(), options)
        site.prepare()
        site.start_hub()
        site.start_advisor()
        prepared = prepare(site)
        found: Rounds = {}
        losses: list[float] = []
        for number in range(rounds):
            turn = number % len(COLUMNS)
            for column in (*COLUMNS[turn:], *COLUMNS[:turn]):
                _column(submit, column, prepared, found)
                if column.name == "our C":
                    losses += hung_loss(submit, site)
        exchange = exchange_us(site, prepared.plugin_dir)
        bare = bare_us(site, prepared.plugin_dir)
        in_memory = submit.jobs()
        site.stop()
    return {
        "loads": found, "losses": losses, "exchange": exchange, "bare": bare, "jobs": in_memory,
        "advisor": advisor_alone(), "took_s": time.monotonic() - began,
    }  # fmt: skip


def _column(submit: SubmitSite, column: Column, prepared: Prepared, found: Rounds) -> None:
    submit.restart(column.plugins, column.install(prepared))
    submit.load(10)  # the first ones after a start load and connect
    for load, (count, workers, every_ms) in LOADS.items():
        found.setdefault((column.name, load), []).append(submit.load(count, workers, every_ms))


def show(figures: dict[str, Any]) -> dict[str, Any]:
    """Print the tables and return the published figures."""
    found: Rounds = figures["loads"]
    print(f"{figures['jobs']} jobs in memory at the end of the last round, measured in {figures['took_s']:.0f} s\n")
    print(f"{'load':<14} {'plugin':<12} {'RPC ms':>22} {'added ms':>24} {'call ms':>8} {'p99':>7} {'/s':>6}")
    added: dict[tuple[str, str], float] = {}
    for load in LOADS:
        for column in COLUMNS:
            mine, base = found[column.name, load], found["none", load]
            plus = [(one.rpc_us - other.rpc_us) / 1000 for one, other in zip(mine, base, strict=True)]
            added[column.name, load] = statistics.median(plus)
            print(_line(load, column.name, mine, plus))
    exchange, losses = figures["exchange"], figures["losses"]
    result = {
        "c_added_rpc_ms": round(added["our C", "one by one"], 3),
        "c_added_rpc_one_a_second_ms": round(added["our C", "one a second"], 3),
        "lua_added_rpc_one_a_second_ms": round(added["our Lua", "one a second"], 3),
        "noop_lua_added_rpc_one_a_second_ms": round(added["no-op Lua", "one a second"], 3),
        "exchange_p50_ms": round(percentile(exchange, 0.5) / 1000, 3),
        "exchange_p99_ms": round(percentile(exchange, 0.99) / 1000, 3),
        "exchange_p999_ms": round(percentile(exchange, 0.999) / 1000, 3),
        **{f"bare_{name}_ms": round(percentile(figures["bare"], share) / 1000, 3) for name, share in _SHARES.items()},
        "hung_loss_pct": round(statistics.median(losses), 1),
        "advisor_verdicts_per_s": figures["advisor"]["verdicts_per_s"],
        "advisor_rss_mb": figures["advisor"]["rss_mb"],
    }
    spread = {
        "c_added_rpc_ms": "one by one",
        "c_added_rpc_one_a_second_ms": "few submissions, so that it is noisy",
        "exchange_p50_ms": f"{len(exchange)} exchanges, {min(exchange) / 1000:.3f} to {max(exchange) / 1000:.3f}",
        "hung_loss_pct": f"{min(losses):.1f} to {max(losses):.1f} in {len(losses)} pairs of blocks",
    }
    print(f"\n{'figure':<38} {'value':>9} {'target':>9}  {'':6} spread")
    for name, value in result.items():
        target = TARGETS.get(name)
        verdict = "" if target is None else "ok" if _met(name, value) else "MISSED"
        print(f"{name:<38} {value:>9} {'' if target is None else target:>9}  {verdict:6} {spread.get(name, '')}")
    return result


def _line(load: str, column: str, rounds: Sequence[Load], plus: Sequence[float]) -> str:
    rpc = [one.rpc_us / 1000 for one in rounds]
    calls = [us for one in rounds for us in one.call_us]
    added = "" if column == "none" else f"{statistics.median(plus):+.3f} ({min(plus):+.2f} to {max(plus):+.2f})"
    return (
        f"{load:<14} {column:<12} {statistics.median(rpc):>7.3f} ({min(rpc):.2f} to {max(rpc):.2f}) {added:>24} "
        f"{statistics.mean(calls) / 1000:>8.3f} {percentile(calls, 0.99) / 1000:>7.2f} "
        f"{statistics.median(one.per_s for one in rounds):>6.0f}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
