"""python -m tools.pictures: the pictures of README and docs, into docs/pictures.

The pages are of a hub on loopback with drawn jobs, seen by Debian's Chromium (make packages). The charts are those that
`gpuwaste analyze --html` writes of the public logs (make data); without the logs they stay as they are.
"""

import os
import random
import shutil
import sys
import tempfile
from http import HTTPStatus
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, sync_playwright
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.cli.main import main as gpuwaste
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.hub_rows import HOUR, batch, hour, record
from tools.data.places import find

PICTURES: Final = Path(__file__).parents[1] / "docs" / "pictures"
CHROMIUM: Final = "/usr/bin/chromium"
NOW: Final = HOUR + 20 * DAY_S
ALICE: Final = 1001
OPERATOR: Final = 1004
KTH: Final = "KTH-SP2-1996-2.1-cln"
ATLAS: Final = "LLNL-Atlas-2006-2.1-cln"
CHARTS: Final = (
    (KTH, "jobs", "jobs.svg"),
    (KTH, "queue", "queue.svg"),
    (KTH, "sizes", "sizes.svg"),
    (KTH, "waits", "waits.2.svg"),
    (KTH, "states", "states.svg"),
    (KTH, "limits", "limits.svg"),
    (ATLAS, "sizes", "sizes.svg"),
    (ATLAS, "states", "states.svg"),
)
"""Log, view, and the chart's file."""
USERS: Final = (  # user, account, job name, GPUs of a job, GPUs that work, jobs
    ("alice", "vision", "train", 4, 1, 9),
    ("alice", "vision", "evaluate", 1, 1, 6),
    ("bob", "language", "finetune", 8, 8, 6),
    ("carol", "physics", "sweep", 2, 1, 10),
    ("dave", "physics", "notebook", 1, 0, 8),
    ("erin", "language", "tokenize", 2, 2, 7),
    ("frank", "chemistry", "dynamics", 4, 3, 5),
)


def main() -> int:
    """Make the pictures."""
    PICTURES.mkdir(exist_ok=True)
    for log, view, file in CHARTS:
        source = find(f"swf/{log}.swf.xz")
        if source is None:
            sys.stderr.write(f"pictures: no {log}: make data fetches it\n")
            continue
        with tempfile.TemporaryDirectory() as folder:
            gpuwaste(["analyze", "--swf", str(source), "--view", view, "--html", f"{folder}/pages"])
            shutil.copy(Path(folder) / "pages" / file, PICTURES / f"{log.split('-')[0].lower()}-{view}.svg")
    with tempfile.TemporaryDirectory() as folder, running_hub(Path(folder), clock=ShiftedClock(NOW)) as rig:
        draw_jobs(rig)
        with sync_playwright() as playwright:
            arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
            take(browser, rig, ALICE, "/me", "me.png")
            take(browser, rig, OPERATOR, "/analytics/waste", "waste.png")
            browser.close()
    return 0


def take(browser: Browser, rig: Rig, uid: int, target: str, name: str) -> None:
    """Take a picture of the top of a page, as a user sees it."""
    context = browser.new_context(viewport={"width": 1000, "height": 760}, timezone_id="UTC")
    link, _, value = rig.cookie(uid).partition("=")
    context.add_cookies([{"name": link, "value": value, "url": f"http://127.0.0.1:{rig.port}"}])
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{rig.port}{target}", wait_until="networkidle")
    page.screenshot(path=PICTURES / name)
    context.close()


def draw_jobs(rig: Rig) -> None:
    """Store the jobs of six users in the last three weeks; the same at each call."""
    drawn, number = random.Random(1), 4000  # noqa: S311 pictures, not secrets
    for user, account, name, gpus, busy, jobs in USERS:
        for place in range(jobs):
            number += 1
            start = NOW - HOUR_S * (3 + place * 16 + drawn.randrange(12))
            hours = drawn.randrange(2, 8)
            upsert_jobs(rig.store, [
                record(
                    number, user, account, submit=start - 600, start=start, end=start + hours * HOUR_S,
                    elapsed_s=hours * HOUR_S, gpus=gpus, gpu_type="a100", cpus=8 * gpus, name=name,
                    alloc_tres=f"cpu={8 * gpus},gres/gpu={gpus}", time_limit_s=DAY_S,
                    submit_line=f"sbatch --gres=gpu:a100:{gpus} {name}.sh", interactive=name == "notebook",
                )
            ])  # fmt: skip
            rows = [
                _row(number, start + at * HOUR_S, start, gpu, 40 + 50 * (gpu + at) % 60 if gpu < busy else 0)
                for gpu in range(gpus)
                for at in range(hours)
            ]
            answer = rig.post(batch(*rows))
            if answer.status != HTTPStatus.OK:
                raise RuntimeError(answer.body)


def _row(job: int, begin: int, start: int, gpu: int, use: int) -> AllocationHour:
    idle = HOUR_S * 1000 if use == 0 else 0
    return hour(
        job, run_key=RunKey("gw", job, start), gpu_uuid=f"GPU-{job}-{gpu}", hour_utc=begin, t0_ms=begin * 1000,
        t1_ms=(begin + HOUR_S) * 1000, util_ms={use: HOUR_S * 1000}, idle_run_ms=idle, proc_seen=not idle,
        mem_max_b=0 if idle else 30 << 30, mem_total_b=80 << 30, final=True,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
