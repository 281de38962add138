"""What the demo prints: sections of three sentences and a table of 100 columns."""

from pathlib import Path
from typing import Any, Final

import pytest

from gpuwaste.testing.demo.checks import DemoCheck
from gpuwaste.testing.demo.output import check_table, clock
from gpuwaste.testing.demo.saved_page import SavedPage, heading_of
from gpuwaste.testing.demo.story import ShownAdvice, Story, advice_lines, advice_of
from gpuwaste.testing.demo.walkthrough import WIDTH, section_lines, sections

COMMAND: Final = "sbatch --gres=gpu:a100:4 --job-name=train-ddp train-ddp.sh"
ADVICE: Final = ShownAdvice("train-ddp", COMMAND, "alice", "carol", "sbatch: gpuwaste: one\nsbatch: gpuwaste: two", "")
DOCUMENT: Final[dict[str, Any]] = {
    "runs": [
        {
            "start": 1000,
            "end": 1070,
            "totals": {"gpu_s": 280.0, "wasted_s": 210.0, "unknown_s": 0.0},
            "devices": [{"level": "high"}, {"level": "none"}, {"level": "none"}, {"level": "none"}],
        }
    ],
    "findings": [{"fix": ["Either ask for 1 GPU:", "    #SBATCH --gres=gpu:a100:1"]}],
}


class AliceSite:
    """A site that has one document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def json(self, *arguments: str, user: str) -> dict[str, Any]:
        """Return the document of alice's job."""
        assert (arguments, user) == (("job", "7"), "alice")
        return self.document


def printed(document: dict[str, Any], advice: ShownAdvice | None, page: SavedPage | None) -> list[list[str]]:
    """Return the sections of a story as they are printed."""
    story = Story(0.0, {"train-ddp": 7}, advice=advice)
    site: Any = AliceSite(document)
    return [section_lines(number, one) for number, one in enumerate(sections(site, story, page), start=1)]


def test_alice_has_her_waste_her_page_and_her_advice() -> None:
    """Each section is a question and three sentences with the figures of the report, then what a terminal shows."""
    page = SavedPage(Path("build/demo/alice.html"), "3.5 of your 4.7 GPU-minutes were idle.")
    waste, saved, advice = printed(DOCUMENT, ADVICE, page)
    assert waste == [
        "1. What did alice waste?",
        "   Job 7 (train-ddp) held 4 GPUs for 1 min 10 s and used 1 of them.",
        "   gpuwaste reports 3.5 of its 4.7 GPU-minutes as wasted.",
        "   The report names the line to change:",
        "      alice$ gpuwaste job 7",
        "      #SBATCH --gres=gpu:a100:1",
    ]
    assert "   The page begins: 3.5 of your 4.7 GPU-minutes were idle." in saved
    assert saved[-1].strip() == "build/demo/alice.html"
    assert advice[-3:] == [f"      alice$ {COMMAND}", "      sbatch: gpuwaste: one", "      sbatch: gpuwaste: two"]
    assert max(map(len, (*waste, *saved, *advice))) <= WIDTH


def test_unknown_time_is_named_and_what_is_missing_is_left_out() -> None:
    """A gap is printed beside the waste; without a page and advice there is one section."""
    run = {**DOCUMENT["runs"][0], "totals": {"gpu_s": 280.0, "wasted_s": 180.0, "unknown_s": 30.0}}
    (waste,) = printed({**DOCUMENT, "runs": [run]}, None, None)
    assert "   gpuwaste reports 3.0 of its 4.7 GPU-minutes as wasted and 0.5 as unknown (no samples)." in waste


def test_the_table_fits_100_columns() -> None:
    """Long cells are wrapped, none is lost, and the heads say what was measured and what was reported."""
    long = "sbatch: this job likely needs fewer than the 4 GPUs that it requests; use --gres=gpu:a100:1"
    checks = [DemoCheck("name " * 20, "x" * 90, long, ok=True), DemoCheck("b", "1", "13,404,995,584", ok=False)]
    table = check_table(checks, " [recorded]")
    lines = table.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert lines[0].split("  ")[-1].strip() == "reported by gpuwaste"
    assert "check [recorded]" in lines[0]
    assert "measured by the load program" in lines[0]
    assert table.count("x") == 90
    assert any(line.startswith("FAILED") and "13,404,995,584" in line for line in lines)


@pytest.mark.parametrize("control", ["", "sbatch: gpuwaste: three"])
def test_advice_is_restored_from_lines_of_progress(control: str) -> None:
    """A recording keeps what sbatch printed for both users; without one of them there is no advice."""
    advice = ShownAdvice(ADVICE.name, COMMAND, "alice", "carol", ADVICE.told, control)
    lines = ["job 1 ended", *advice_lines(advice)]
    assert advice_of(lines) == advice
    assert advice_of(lines[:3]) is None


def test_times_and_headings() -> None:
    """Elapsed time is minutes and seconds; a heading is its text without tags."""
    assert (clock(0.4), clock(65), clock(600)) == ("0:00", "1:05", "10:00")
    assert heading_of('<h1 class="x">3 &lt; <b>4</b>\n GPUs</h1><h1>no</h1>') == "3 < 4 GPUs"
    assert heading_of("<p>none</p>") == ""
