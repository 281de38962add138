"""Figure: samples on the right job, unknown and wrong, by layout, on real clusters drawn at random (--rounds 3).

Each round is a cluster of its own: device order, GPU choice, names, utilization and the order of submission are drawn
(--seed: random by default). A probe with the prolog's files and one with slurmctld's answers alone watch each node.
"Wrong" has to be 0.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

from gpuwaste.testing.attribution import MODES, Field, judge
from gpuwaste.testing.cluster import LoopbackCluster, Variant


def _round(seed: int, shards: int) -> Counter[tuple[str, str]]:
    directory = Path(tempfile.mkdtemp(prefix="gwb", dir="/tmp"))
    directory.chmod(0o755)
    rng = random.Random(seed)  # noqa: S311 a drawn input
    order = {node: tuple(rng.sample(range(10), 4)) for node in (f"b{seed}xgpu1", f"b{seed}xgpu2")}
    variant = Variant(seed=seed, shards=shards, node_prefix=f"b{seed}x", gres_order=order)
    try:
        with LoopbackCluster(directory, variant, remove=True) as cluster:
            field = Field(cluster, seed)
            for node in field.nodes:
                for mode in MODES:
                    field.probe(node, mode)
            jobs = field.submit_layouts()
            field.salloc()
            helper = threading.Thread(target=field.suspend, args=(jobs["suspend"], 2))
            helper.start()
            field.requeue(jobs["requeue"])
            helper.join()
            field.note_second_run(jobs["requeue"])
            field.wait_all()
            field.submit_stray()
            field.wait_all()
            verdicts = judge(field)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    for verdict in verdicts:
        if verdict.kind == "wrong":
            print(f"seed {seed}: {verdict.text}", file=sys.stderr)
    return Counter((f"{item.mode} {item.label.rstrip('-123')}", item.kind) for item in verdicts)


def main() -> None:
    """Play the rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1000))
    options = parser.parse_args()
    rounds, seed = options.rounds, options.seed
    counts: Counter[tuple[str, str]] = Counter()
    for index in range(rounds):
        counts += _round(seed + index, shards=4 * (index % 2))
        print(f"round {index + 1} of {rounds}, seed {seed + index}", file=sys.stderr)
    kinds = ("right", "unknown", "wrong")
    print(f"{'facts, layout':<28} {'right':>8} {'unknown':>8} {'wrong':>8} {'right %':>8}")
    names = sorted({name for name, _ in counts})
    for name in names:
        row = [counts[name, kind] for kind in kinds]
        print(f"{name:<28} {row[0]:>8} {row[1]:>8} {row[2]:>8} {100 * row[0] / sum(row):>8.1f}")
    totals = {
        mode: {kind: sum(counts[name, kind] for name in names if name.startswith(mode)) for kind in kinds}
        for mode in MODES
    }
    print(json.dumps({"bench": "attribution", "rounds": rounds, "seed": seed, **totals}))


if __name__ == "__main__":
    main()
