"""The curves of a job in a real browser: from a real agent's store over real munge, and what is said without one."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.browser.conftest import Reader, Readers
from tests.browser.scene import ALICE, WASTEFUL
from tests.browser.window import keep_picture
from tests.integration.agent.sample_node import HUB, answering_node
from tests.integration.hub.rig import Rig, running_hub
from tests.unit.agent.fakes import START_US
from tests.unit.agent.samples import BASE, at

from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.net.munge_credentials import Munge, MungeIssuer
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.hub_rows import batch, hour, record
from gpuwaste.testing.lone_hub import munged_path, private_munged

pytestmark = [
    pytest.mark.sockets,
    pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)"),
]
START: Final = START_US // 1_000_000
SAMPLES: Final = 30
JOB: Final = 9
_DRAWN: Final = "() => performance.getEntriesByName('curves-drawn').length > 0"
_INKED: Final = """() => [...document.querySelectorAll("#curves canvas")].map((canvas) => {
  const found = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return found.some((value, index) => index % 4 === 3 && value > 0);
})"""


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Run a hub whose job 9 has two GPUs and five minutes of samples on a node that answers."""
    with private_munged() as munge, answering_node(munge, tmp_path_factory.mktemp("node")) as node:
        sample = replace(BASE, run_key=RunKey("gw", JOB, START))
        for n in range(1, SAMPLES + 1):
            ticks = [
                replace(at(sample, n), gpu_uuid=uuid, util_pct=float(used))
                for uuid, used in (("GPU-a", n), ("GPU-b", 0))
            ]
            node.store.append(ticks)
        keys = {"agent_url": f"http://127.0.0.1:{node.port}"}
        issuer = MungeIssuer(Munge(munge), HUB)
        with running_hub(tmp_path_factory.mktemp("hub"), agents=issuer, hub_keys=keys) as rig:
            run: dict[str, Any] = {"submit": START - 60, "start": START, "end": START + 300}
            upsert_jobs(rig.store, [record(JOB, "alice", gpus=2, alloc_tres="cpu=4,gres/gpu=2", **run)])
            span: dict[str, Any] = {
                "hour_utc": START,
                "t0_ms": START * 1000,
                "t1_ms": START * 1000 + 300_000,
                "cpu_s": 750.0,
            }
            key = RunKey("gw", JOB, START)
            rows = [
                hour(JOB, run_key=key, gpu_uuid=uuid, util_ms={used: 300_000}, **span)
                for uuid, used in (("GPU-a", 15), ("GPU-b", 0))
            ]
            assert rig.post(batch(*rows)).json["accepted"] == 2
            yield rig


def curves_of(found: Reader, job: int) -> None:
    """Open the page of a job, scroll to the curves, and wait until they are drawn."""
    found.open(f"/jobs/{job}")
    found.page.locator("#curves").scroll_into_view_if_needed()
    found.page.wait_for_function(_DRAWN)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
def test_the_curves_of_each_gpu_are_drawn_and_nothing_is_refused(
    reader: Readers, answering: Rig, width: int, scheme: str
) -> None:
    """Each GPU has a chart with its figures in words; CPUs are by the hour; the policy and axe find nothing."""
    found = reader(ALICE, answering, width=width, color_scheme=scheme)
    curves_of(found, JOB)
    page = found.page
    assert page.locator("#curves figcaption").all_inner_texts() == [
        "GPU 0 on gpu1\nmean 16 %, maximum 30 %",
        "GPU 1 on gpu1\nmean 0 %, maximum 0 %",
    ]
    assert page.evaluate(_INKED) == [True, True]
    keep_picture(page, f"curves-{width}-{scheme}")
    assert found.violations() == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert found.axe() == []
    page.get_by_label("CPUs").check()
    assert page.locator("#curves figcaption").all_inner_texts() == [
        "CPUs on gpu1\nmean 2.5 CPUs, maximum 2.5 CPUs, 4 held"
    ]
    page.get_by_label("Power").check()
    assert page.locator("#curves figcaption").first.inner_text().endswith("mean 70.0 W, maximum 70.0 W")


def test_hover_and_zoom_are_of_all_charts_together(reader: Readers, answering: Rig) -> None:
    """The pointer over one chart shows the value of each at that time; a drag zooms both, and the policy holds."""
    found = reader(ALICE, answering)
    curves_of(found, JOB)
    over = found.page.locator("#curves .u-over")
    box = over.first.bounding_box()
    assert box is not None
    found.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    found.page.wait_for_function("() => document.querySelectorAll('#curves figcaption')[1].innerText.includes(': 0 %')")
    assert ": 15 %" in found.page.locator("#curves figcaption").first.inner_text()
    found.page.mouse.down()
    found.page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 20, steps=4)
    found.page.mouse.up()
    assert found.violations() == []


def test_a_hub_that_asks_no_agent_says_so_and_draws_hours(reader: Readers) -> None:
    """The reason is on the page; each GPU's chart is of the ledger's hours, with a gap for the unknown one."""
    found = reader(ALICE)
    curves_of(found, WASTEFUL)
    said = found.page.locator("#curves [role=status]").inner_text()
    assert "agents are not queried: [hub] agent_url is not set; the curves show hourly means instead." in said
    assert found.page.locator("#curves figure").count() == 4
    means = found.page.locator("#curves figcaption .number").all_inner_texts()
    assert means[0] == f"mean {found.page.locator('.gpus .number').first.inner_text()}, maximum 91 %"
    assert found.page.evaluate(_INKED) == [True] * 4
    assert found.violations() == []


def test_a_hub_that_does_not_answer_can_be_asked_again(reader: Readers) -> None:
    """The page says so when the connection breaks, and a button loads the curves again."""
    found = reader(ALICE)
    found.page.route("**/curves.json", lambda route: route.abort())
    found.open(f"/jobs/{WASTEFUL}")
    found.page.locator("#curves").scroll_into_view_if_needed()
    found.page.get_by_text("The hub does not answer.").wait_for()
    assert found.page.locator("#curves figure").count() == 0
    found.page.unroute("**/curves.json")
    found.page.get_by_role("button", name="Load the curves again").click()
    found.page.wait_for_function(_DRAWN)
    assert found.violations() == []


def test_curves_load_when_they_come_into_view_and_move_nothing(reader: Readers) -> None:
    """On a low window no samples are requested before the reader scrolls; what is below stays where it was."""
    found = reader(ALICE)
    page, asked = found.page, list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": 1440, "height": 200})
    found.open(f"/jobs/{WASTEFUL}")
    assert not [url for url in asked if url.endswith("curves.json")]
    height = "() => document.getElementById('curves').offsetHeight"
    before = page.evaluate(height)
    page.locator("#curves").scroll_into_view_if_needed()
    page.wait_for_function(_DRAWN)
    assert len([url for url in asked if url.endswith("curves.json")]) == 1
    assert abs(page.evaluate(height) - before) <= 48  # a line or two about the source


def test_without_scripts_the_strip_stands_in(reader: Readers) -> None:
    """The section says so; the link leads to the same as numbers."""
    found = reader(ALICE, java_script_enabled=False)
    found.open(f"/jobs/{WASTEFUL}")
    assert "Without it, the strips above show the mean of each hour." in found.page.locator("#curves").inner_text()
    assert found.page.locator("svg.strip").count() == 4
    assert found.page.locator("#curves fieldset").is_hidden()
    assert (
        found.page.get_by_role("link", name="Curves as JSON").get_attribute("href") == f"/jobs/{WASTEFUL}/curves.json"
    )
