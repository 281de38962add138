"""python -m tools.pictures: the pictures of README and docs, into docs/pictures (make docs-pictures).

The pages are of a hub on loopback with drawn jobs, seen by Debian's Chromium (make packages). The charts are those that
`gpuwaste analyze --html` writes of the public logs (make data); without the logs they stay as they are.
"""

import shutil
import sys
import tempfile
from collections.abc import Mapping
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
CURIE: Final = "CEA-Curie-sample-2012-06_07.with_status"


class Charts(NamedTuple):
    """A log, a view of it, its charts' files with the names of the pictures, and options of the command."""

    log: str
    view: str
    files: Mapping[str, str]
    options: tuple[str, ...] = ()


CHARTS: Final = (
    Charts(KTH, "jobs", {"jobs.svg": "kth-jobs.svg"}),
    Charts(KTH, "queue", {"queue.svg": "kth-queue.svg"}),
    Charts(KTH, "sizes", {"sizes.svg": "kth-sizes.svg"}),
    Charts(KTH, "waits", {"waits.2.svg": "kth-waits.svg"}),
    Charts(KTH, "states", {"states.svg": "kth-states.svg"}),
    Charts(KTH, "limits", {"limits.svg": "kth-limits.svg"}),
    Charts(KTH, "balance", {"balance.2.svg": "kth-balance-causes.svg", "balance.3.svg": "kth-balance-days.svg"}),
    Charts(
        CURIE,
        "balance",
        {"balance.2.svg": "curie-balance-causes.svg", "balance.3.svg": "curie-balance-days.svg"},
        ("-S", "1971-05-22", "-E", "1971-06-15", "--time-zone", "UTC"),
    ),
    Charts(ATLAS, "sizes", {"sizes.svg": "llnl-sizes.svg"}),
    Charts(ATLAS, "states", {"states.svg": "llnl-states.svg"}),
)


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
    for charts in CHARTS:
        _draw_charts(charts)
    slurm = FakeSlurm(node_list=list(NODES), levels={"oper": "Operator"})
    with tempfile.TemporaryDirectory() as folder, running_hub(Path(folder), slurm, clock=ShiftedClock(NOW)) as rig:
        store_ended(rig)
        store_running(rig)
        with chromium.launched() as browser:
            for shot in PAGES:
                _take(browser, rig, shot)
    return 0


def _draw_charts(charts: Charts) -> None:
    """Write charts of a view of a public log; without the log they stay."""
    source = find(f"swf/{charts.log}.swf.xz")
    if source is None:
        sys.stderr.write(f"pictures: no {charts.log}: make data fetches it\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        words = ["analyze", "--swf", str(source), "--view", charts.view, *charts.options]
        gpuwaste([*words, "--html", f"{folder}/pages"])
        for file, picture in charts.files.items():
            shutil.copy(Path(folder) / "pages" / file, PICTURES / picture)


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
