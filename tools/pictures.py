"""python -m tools.pictures: the pictures of README and docs, into docs/pictures (make docs-pictures).

The pages are of a hub on loopback with drawn jobs, seen by Debian's Chromium (make packages). The charts are those that
`gpuwaste analyze --html` writes of the public logs (make data); without the logs they stay as they are.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from playwright.sync_api import Browser
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.cli.main import main as gpuwaste
from gpuwaste.testing import chromium
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from tools.data.places import find
from tools.picture_jobs import NODES, NOW, SHOWN_JOB, store_ended, store_running

PICTURES: Final = Path(__file__).parents[1] / "docs" / "pictures"
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


class Picture(NamedTuple):
    """A file, the uid of the reader, the page, and the height of the window in pixels."""

    name: str
    uid: int
    target: str
    height: int


PAGES: Final = (
    Picture("me.png", ALICE, "/me", 760),
    Picture("job.png", ALICE, f"/jobs/{SHOWN_JOB}", 900),
    Picture("dashboard.png", OPERATOR, "/analytics?days=30", 1000),
    Picture("now.png", OPERATOR, "/now#map", 700),
)


def main() -> int:
    """Make the pictures; 1 without Chromium."""
    if reason := chromium.missing():
        sys.stderr.write(f"pictures: {reason}\n")
        return 1
    PICTURES.mkdir(exist_ok=True)
    for log, view, file in CHARTS:
        _draw_chart(log, view, file)
    slurm = FakeSlurm(node_list=list(NODES), levels={"oper": "Operator"})
    with tempfile.TemporaryDirectory() as folder, running_hub(Path(folder), slurm, clock=ShiftedClock(NOW)) as rig:
        store_ended(rig)
        store_running(rig)
        with chromium.launched() as browser:
            for shot in PAGES:
                _take(browser, rig, shot)
    return 0


def _draw_chart(log: str, view: str, file: str) -> None:
    """Write the chart of a view of a public log; without the log it stays."""
    source = find(f"swf/{log}.swf.xz")
    if source is None:
        sys.stderr.write(f"pictures: no {log}: make data fetches it\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        gpuwaste(["analyze", "--swf", str(source), "--view", view, "--html", f"{folder}/pages"])
        shutil.copy(Path(folder) / "pages" / file, PICTURES / f"{log.partition('-')[0].lower()}-{view}.svg")


def _take(browser: Browser, rig: Rig, shot: Picture) -> None:
    """Take a picture of the top of a page, as a user sees it."""
    context = browser.new_context(viewport={"width": 1000, "height": shot.height}, timezone_id="UTC")
    name, _, value = rig.cookie(shot.uid).partition("=")
    origin = f"http://127.0.0.1:{rig.port}"
    context.add_cookies([{"name": name, "value": value, "url": origin}])
    page = context.new_page()
    page.goto(f"{origin}{shot.target}", wait_until="networkidle")
    page.screenshot(path=PICTURES / shot.name)
    context.close()


if __name__ == "__main__":
    sys.exit(main())
