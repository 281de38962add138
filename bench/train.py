"""Figure: gpuwaste model train with its search on 100,000 jobs: seconds by stage, memory.

The jobs are made (gpuwaste.testing.planted), because no public log has labels for every target: all seven are learnt,
which is the longest case. Prints each stage, then one line of JSON. Measured in a process of its own, the reading of
the history left out (bench.history has that).
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command does, before XGBoost is loaded

from gpuwaste.advice.predict.bundle import Registry
from gpuwaste.advice.renewal.card_types import TrainingSettings
from gpuwaste.models.bundle_training import train
from gpuwaste.models.job_source import JobSource
from gpuwaste.models.training_progress import TrainingProgress
from gpuwaste.testing.planted import planted_table

TARGET_S: Final = 600
TARGET_MB: Final = 2000


def main() -> int:
    """Make the jobs, train, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    table = planted_table(options.jobs, users=400)
    progress = TrainingProgress(sys.stdout)
    settings = TrainingSettings(trials=options.trials, threads=options.threads)
    began, worked = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as folder:
        source = JobSource(table, "bench", f"{options.jobs} made jobs")
        trained = train(source, Registry(Path(folder)), settings, created_utc=int(time.time()), progress=progress)
    figures = {
        "bench": "train",
        "jobs": options.jobs,
        "targets": len(trained.card.targets),
        "trials": options.trials,
        "threads": options.threads,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - worked, 1),
        "target_s": TARGET_S,
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "target_mb": TARGET_MB,
        "stages": {name: round(seconds, 1) for name, seconds in progress.seconds.items()},
    }
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
