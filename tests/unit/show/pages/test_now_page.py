"""The page of the cluster now: without a held GPU it says so in words, with no empty bar."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.show import documents
from tests.unit.show.pages.test_view_page import Reading

from gpuwaste.ledger.now.now_page import now_page
from gpuwaste.show.environment import Frame


@pytest.mark.parametrize("held", [True, False])
def test_no_held_gpu_is_said_in_words(held: bool) -> None:
    """The bar and the table of holders are there where a job holds a GPU; else one sentence says what will come."""
    found: Any = documents.read(documents.now())
    if not held:
        totals = replace(found.totals, held=0, jobs=0, idle=0, idle_jobs=0, high=0, moderate=0, low=0, unknown=0)
        found = replace(found, totals=totals, idle=[])
    page = Reading(now_page(found, 1, Frame(operator=True)))
    bars = [one for one in page.all("svg") if one.get("class") == "level-bar"]
    assert (len(bars), "Jobs that hold idle GPUs" in page.said("h2")) == ((1, True) if held else (0, False))
    assert ("appears here when it starts" in page.said("p")) is not held


@pytest.mark.parametrize(
    ("held", "gpus", "words"),
    [
        (1, 0, "1 GPU is held by a job now; no GPU is reported idle; 1 node does not report."),
        (2, 0, "2 GPUs are held by a job now; no GPU is reported idle;"),
        (1, 16, "1 of 16 GPUs is held by a job now; no GPU is reported idle;"),
    ],
)
def test_the_number_of_held_gpus_and_its_verb_agree(held: int, gpus: int, words: str) -> None:
    """One GPU, two GPUs, and one of those that are known."""
    found: Any = documents.read(documents.now())
    totals = replace(found.totals, held=held, gpus=gpus, jobs=1, idle=0, idle_jobs=0)
    page = Reading(now_page(replace(found, totals=totals, idle=[]), 1, Frame(operator=True)))
    assert words in "".join(page.said("h1")).replace("\N{NO-BREAK SPACE}", " ")


def test_the_legend_draws_every_mark_of_the_map() -> None:
    """Each level, the hatch of what is unknown and the outline of free GPUs have a swatch and a word."""
    page = Reading(now_page(documents.read(documents.now()), 1, Frame(operator=True)))
    marks = [str(one["class"]) for one in page.all("rect") if one.get("width") == "100%"]
    assert marks[-6:] == ["high", "moderate", "low", "idle", "unknown", "free"]
    assert "unknown: no recent report" in page.said("li")
    assert "free: held by no job" in page.said("li")


def test_an_idle_gpu_has_its_age() -> None:
    """Since when, and for how long up to the last report."""
    page = Reading(now_page(documents.read(documents.now()), 1, Frame(operator=True)))
    assert ", 3 h 55 min" in page.said("td")


def test_the_order_is_a_link_that_the_pages_of_the_table_keep() -> None:
    """By waste the table has the same order as the map; its next page has it too."""
    found: Any = documents.read(documents.now())
    nodes = [replace(found.nodes[0], node=f"n{n}", wasted_s=float(n)) for n in range(60)]
    by_name = Reading(now_page(replace(found, nodes=nodes), 1, Frame(operator=True)))
    by_waste = Reading(now_page(replace(found, nodes=nodes), 1, Frame(operator=True), "waste"))
    assert "/now?sort=waste#map" in [one.get("href") for one in by_name.all("a")]
    assert "/now?page=2#nodes" in [one.get("href") for one in by_name.all("a")]
    assert "/now?sort=waste&page=2#nodes" in [one.get("href") for one in by_waste.all("a")]
    cells = [cell for cell in by_waste.words["td"] if cell.startswith("n")]
    assert cells[:2] == ["n59", "n58"]
