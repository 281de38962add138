"""The map of a large cluster in a real browser: all of it on one screen, each node with its name."""

from collections.abc import Iterator

import pytest
from tests.browser.conftest import Readers
from tests.browser.scene import OPER
from tests.browser.window import SCHEMES, Scheme, keep_picture, show
from tests.integration.hub.rig import Rig, running_hub
from tests.integration.hub.test_now import NOW, OPEN, used

from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.clocks import ShiftedClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import batch, record

NODES = [
    Node(f"r{rack:03}n{n:02}", address=f"10.1.{rack}.{n}", state="MIXED", gpus={"a100": 8})
    for rack in range(125)
    for n in range(16)
]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Run a hub of 2,000 nodes with eight GPUs each; job 7 is idle on the last of them, job 8 busy on the first."""
    slurm = FakeSlurm(node_list=NODES, levels={"oper": "Operator"})
    with running_hub(tmp_path_factory.mktemp("large"), slurm, clock=ShiftedClock(NOW)) as rig:
        rig.hub.get(ClusterFacts).refresh()
        first, last = NODES[0], NODES[-1]
        idle, busy = {**OPEN, "nodes": last.name}, {**OPEN, "nodes": first.name}
        upsert_jobs(rig.store, [record(7, "alice", **idle), record(8, "bob", "proj2", **busy)])
        for node, row in ((last, used(7, 0, node=last.name)), (first, used(8, 90, node=first.name))):
            assert rig.post(batch(row, node=node.name), origin=node.address).status == 200
        yield rig


@pytest.mark.parametrize("scheme", SCHEMES)
def test_two_thousand_nodes_are_on_one_screen(large: Rig, reader: Readers, scheme: Scheme) -> None:
    """Heading, legend and map are no higher than the window and as wide; on a telephone nothing scrolls sideways."""
    found = reader(OPER, rig=large)
    assert found.open("/now") == 200
    show(found.page, 1440, scheme)
    box = found.page.locator("section.map").bounding_box()
    assert box is not None
    assert box["height"] <= 900
    assert box["width"] == 1440
    assert found.page.locator(".node-map .node").count() == 2000
    keep_picture(found.page, f"map-1440-{scheme}")
    for width in (1440, 360):
        show(found.page, width, scheme)
        assert (found.too_wide(), found.axe(), found.violations()) == (0, [], [])
    keep_picture(found.page, f"map-360-{scheme}")


def test_a_node_has_its_name_under_the_pointer_and_by_the_arrow_keys(large: Rig, reader: Readers) -> None:
    """One tab stop leads to the map; an arrow key moves to the next node."""
    found = reader(OPER, rig=large)
    found.open("/now")
    page = found.page
    line = page.locator("#node-named")
    page.locator(".node-map .node").nth(17).hover()
    assert line.inner_text() == "r001n01: 0 of 8 GPUs held"
    page.locator(".map [role=group]").focus()
    page.keyboard.press("ArrowRight")
    assert line.inner_text().startswith("r001n02: ")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert line.inner_text().startswith("r001n00: ")
    assert page.locator(".node-map .current").count() == 1
    assert found.violations() == []


def test_the_largest_waste_is_first_without_scripts_too(large: Rig, reader: Readers) -> None:
    """The link leads to the same page, whose first node is the one with the idle GPU."""
    found = reader(OPER, rig=large, java_script_enabled=False)
    found.open("/now")
    first = found.page.locator(".node-map title").first
    assert (first.text_content() or "").startswith("r000n00: ")
    found.page.get_by_role("link", name="Show the largest waste first").click()
    assert "sort=waste" in found.page.url
    assert "r124n15: 1 of 8 GPUs held: 1 idle; 33.3 GPU-minutes wasted" in (first.text_content() or "")
    assert found.open("/now?sort=age") == 400
