"""The agent's sampler, device map and hours on one node of a loopback cluster, written down for a judge.

python -m gpuwaste.testing.attribution_probe NODE LOG INTERVAL_S SPOOL_DIR RUN_DIR [COLLECTOR...]

Appends one JSON line per tick to LOG: {"t", "looked", "held": {uuid: [[job, source, confidence, share, keyed], ...]},
"samples": {uuid: job or null}, "suspended": [...], "ended": [...]}, and one per row that is due: {"row": ...}.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, TextIO

from gpuwaste.agent.collectors import CollectorSettings, create_collectors
from gpuwaste.agent.device_map import node_device_map
from gpuwaste.agent.facts.gpu_identities import PositionTable
from gpuwaste.agent.facts.prolog_files import PrologSource
from gpuwaste.agent.hour_aggregator import HourAggregator
from gpuwaste.agent.node_map import Questions
from gpuwaste.agent.observation import Observation
from gpuwaste.agent.sampler import Sampler
from gpuwaste.agent.sampling import tick_of
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.slurm.clients.command_client import CommandClient

_JITTER_S = 1.0


class Scribe:
    """Writes down what every observation says."""

    name = "probe"

    def __init__(self, log: TextIO, book: HourAggregator) -> None:
        self._log = log
        self._book = book

    def accept(self, seen: Observation) -> None:
        """Write a tick and the rows that it made due."""
        held: dict[str, list[list[Any]]] = {}
        for item in seen.jobs.holdings:
            facts = [item.job_id, item.map_source, item.confidence, item.share, item.run_key is not None]
            held.setdefault(item.gpu_uuid, []).append(facts)
        self._write({
            "sources": dict(seen.sources),
            "t": seen.t_utc_us / 1e6,
            "looked": SystemClock().utc_us() / 1e6,
            "gpus": [gpu.uuid for gpu in seen.gpus],
            "held": held,
            "samples": {sample.gpu_uuid: sample.job_id for sample in seen.samples},
            "suspended": sorted({item.job_id for item in seen.jobs.holdings if item.suspended}),
            "ended": [[job, end_us / 1e6] for job, end_us in seen.jobs.ended],
        })  # fmt: skip
        self._book.observe(tick_of(seen))
        self.rows(self._book.due(seen.t_utc_us))

    def rows(self, rows: list[AllocationHour]) -> None:
        """Write rows."""
        for row in rows:
            self._write({"row": row.to_wire()})

    def _write(self, line: dict[str, Any]) -> None:
        self._log.write(json.dumps(line) + "\n")
        self._log.flush()


def main() -> None:
    """Run until SIGTERM."""
    node, log, interval_s, spool_dir, jobs_dir = sys.argv[1:6]
    clock = SystemClock()
    slurm = CommandClient()
    positions = PositionTable(lambda: slurm.device_list(node), (Path(os.environ["SLURM_CONF"]),))
    positions.check()
    questions = Questions(node, None, slurm, clock, jitter_s=_JITTER_S, chores=(positions.check,))
    settings = CollectorSettings(clock, node, Path("/nonexistent"), Path(spool_dir))
    prolog = PrologSource(Path(jobs_dir))
    device_map = node_device_map(node, "gw", positions, questions, spool_dir=Path(spool_dir), prolog=prolog)
    book = HourAggregator("gw", node, float(interval_s), 5.0)
    with Path(log).open("a", encoding="utf-8") as out:
        scribe = Scribe(out, book)
        sampler = Sampler(
            clock=clock,
            interval_s=float(interval_s),
            collectors=create_collectors(("nvml", *sys.argv[6:], "host"), settings),
            device_map=device_map,
            sinks=(scribe,),
            events=EventLog(clock),
        )
        signal.signal(signal.SIGTERM, lambda *_: sampler.stop())
        questions.worker.start()
        thread = threading.Thread(target=sampler.run)
        thread.start()
        thread.join()
        questions.worker.stop()
        scribe.rows(book.flush(clock.utc_us()))
        out.write(
            json.dumps({"slurmctld_questions": questions.slurmctld_questions, "facts": device_map.sources}) + "\n"
        )


if __name__ == "__main__":
    main()
