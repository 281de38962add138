"""`python -m gpuwaste.testing.demo`: runs the demo on a real cluster, or plays the recording where that cannot be."""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tabulate import tabulate

from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.demo.checks import Check, check_story
from gpuwaste.testing.demo.jobs import FIRST
from gpuwaste.testing.demo.story import Story, play
from gpuwaste.testing.simnvml import build_native
from gpuwaste.testing.site import Site, SiteOptions

OPTIONS = SiteOptions(
    interval_s=2.0, ship_every_s=6.0, sacct_every_s=3.0, hub={"finding_min_s": 15.0, "interactive_grace_s": 10.0}
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; 0 when every check holds."""
    parser = argparse.ArgumentParser(prog="python -m gpuwaste.testing.demo", description=__doc__)
    parser.add_argument("--seed", type=int, help="draw the order of the GPUs from this seed")
    parser.add_argument("--result", type=Path, help="write checks and reports to this JSON file")
    arguments = parser.parse_args(argv)
    reason = cluster_host.missing()
    if reason:
        print(f"demo: no real cluster here ({reason}): playing a recorded run")
        return 1
    return _run(arguments.seed, arguments.result)


def _run(seed: int | None, result: Path | None) -> int:
    drawn = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    say = _progress(time.monotonic())
    native = build_native()
    directory = Path(tempfile.mkdtemp(prefix="gwdemo", dir="/tmp"))
    directory.chmod(0o755)
    try:
        say(f"starting Slurm (munge, MariaDB, slurmdbd, slurmctld, slurmrestd, 3 nodes), seed {drawn}")
        with LoopbackCluster(directory, Variant(seed=drawn), remove=True) as cluster:
            say("starting the hub and three agents")
            with Site(cluster, native, OPTIONS) as site:
                story = play(site, say)
                reports = _reports(site, story)
                checks = check_story(site, story)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    _print(reports, checks)
    say(f"done: {sum(c.ok for c in checks)} of {len(checks)} checks hold")
    if result:
        document = {"seed": drawn, "reports": reports, "checks": [[c.what, c.truth, c.said, c.ok] for c in checks]}
        result.write_text(json.dumps(document, indent=1))
    return 0 if all(check.ok for check in checks) else 1


def _progress(began: float) -> Callable[[str], None]:
    def say(text: str) -> None:
        print(f"[{time.monotonic() - began:5.0f} s] {text}", flush=True)

    return say


def _reports(site: Site, story: Story) -> dict[str, str]:
    """Return what each person sees, by the command that he runs."""
    shown = {"gpuwaste top   (while the first jobs ran)": story.top}
    first = story.jobs[FIRST[0].name]
    for user, command in (
        ("alice", ["report", "--user", "alice"]),
        ("bob", ["report"]),
        ("carol", ["report", "--account", "proj2"]),
        ("alice", ["job", str(first)]),
        ("bob", ["job", str(first)]),
        ("root", ["report", "--cluster"]),
    ):
        done = site.gpuwaste(*command, user=user, check=False)
        shown[f"{user}$ gpuwaste {' '.join(command)}"] = done.stdout + done.stderr
    return shown


def _print(reports: dict[str, str], checks: Sequence[Check]) -> None:
    for command, text in reports.items():
        print(f"\n{command}\n{text}")
    rows = [("ok" if c.ok else "FAILED", c.what, c.truth, c.said) for c in checks]
    print(tabulate(rows, headers=["", "held against the load programs and sacct", "truth", "gpuwaste says"]))


if __name__ == "__main__":
    sys.exit(main())
