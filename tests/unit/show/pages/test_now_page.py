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
    page = Reading(now_page(found, 1, Frame(operator=True), str))
    bars = [one for one in page.all("svg") if one.get("class") == "level-bar"]
    assert (len(bars), "Held and idle" in page.said("h2")) == ((1, True) if held else (0, False))
    assert ("appears here when it starts" in page.said("p")) is not held


@pytest.mark.parametrize(
    ("held", "gpus", "words"),
    [
        (1, 0, "1 GPU is held by a job now, and it is not reported idle;"),
        (2, 0, "2 GPUs are held by jobs now, and none of them is reported idle;"),
        (1, 16, "1 of 16 GPUs is held by jobs now, and none of them is reported idle;"),
    ],
)
def test_the_number_of_held_gpus_and_its_verb_agree(held: int, gpus: int, words: str) -> None:
    """One GPU, two GPUs, and one of those that are known."""
    found: Any = documents.read(documents.now())
    totals = replace(found.totals, held=held, gpus=gpus, jobs=1, idle=0, idle_jobs=0)
    page = Reading(now_page(replace(found, totals=totals, idle=[]), 1, Frame(operator=True), str))
    assert words in "".join(page.said("h1")).replace("\N{NO-BREAK SPACE}", " ")
