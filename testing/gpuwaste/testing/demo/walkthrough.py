"""What the demo shows first, in three sentences each: alice's waste, her page, and what sbatch prints for her."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.units import say_duration
from gpuwaste.testing.demo.checks import ReportedSite
from gpuwaste.testing.demo.jobs import FIRST
from gpuwaste.testing.demo.saved_page import SavedPage
from gpuwaste.testing.demo.story import ShownAdvice, Story

WIDTH: Final = 100
_SHOWN_UNKNOWN_MIN: Final = 0.05
"""GPU-minutes; less than this is printed as 0.0."""


@dataclass(frozen=True, slots=True)
class Section:
    """A question, three sentences that answer it, and lines as a terminal shows them."""

    question: str
    sentences: tuple[str, str, str]
    terminal: tuple[str, ...] = ()


def sections(site: ReportedSite, story: Story, page: SavedPage | None) -> Iterator[Section]:
    """Yield what is known of alice's first job; without a page or advice their sections are left out."""
    job = FIRST[0]
    number = story.jobs[job.name]
    yield _of_waste(number, job.name, site.json("job", str(number), user=job.user))
    if page is not None:
        yield _of_page(page)
    if story.advice is not None:
        yield _of_advice(story.advice)


def section_lines(number: int, section: Section) -> list[str]:
    """Return a section as it is printed: at most 100 columns, but for lines of a terminal."""
    lines = [f"{number}. {section.question}"]
    for sentence in section.sentences:
        lines += textwrap.wrap(sentence, WIDTH, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False)
    return [*lines, *(f"      {line}" for line in section.terminal)]


def _of_waste(number: int, name: str, document: Mapping[str, Any]) -> Section:
    run = document["runs"][-1]
    devices, totals = run["devices"], run["totals"]
    used = sum(device["level"] != "none" for device in devices)
    wasted, held, unknown = (totals[key] / 60 for key in ("wasted_s", "gpu_s", "unknown_s"))
    gap = f" and {unknown:.1f} as unknown (no samples)" if unknown >= _SHOWN_UNKNOWN_MIN else ""
    length = say_duration(run["end"] - run["start"])
    return Section(
        "What did alice waste?",
        (
            f"Job {number} ({name}) held {len(devices)} GPUs for {length} and used {used} of them.",
            f"gpuwaste reports {wasted:.1f} of its {held:.1f} GPU-minutes as wasted{gap}.",
            "The report names the line to change:",
        ),
        (f"alice$ gpuwaste job {number}", *_fix(document)),
    )


def _fix(document: Mapping[str, Any]) -> Sequence[str]:
    """Return the first changed line of the job's script that the report gives; nothing where it has none."""
    lines = [line.strip() for finding in document["findings"] for text in finding["fix"] for line in text.splitlines()]
    return [line for line in lines if line.startswith("#SBATCH")][:1]


def _of_page(page: SavedPage) -> Section:
    return Section(
        "What does her page show?",
        (
            "gpuwaste web prints a link that opens alice's page on the hub.",
            f"The page begins: {page.heading}",
            "This is a copy of the page, for any browser:",
        ),
        (str(page.path),),
    )


def _of_advice(advice: ShownAdvice) -> Section:
    silent = "gets no advice" if not advice.control else "gets advice too"
    return Section(
        "What does sbatch print?",
        (
            f"{advice.owner} submits {advice.name} again with the same request.",
            f"{advice.other} submits the same request for the first time and {silent}.",
            f"For {advice.owner}, sbatch accepts the job and prints advice from the first run:",
        ),
        (f"{advice.owner}$ {advice.command}", *advice.told.splitlines()),
    )


def page_path(folder: Path) -> Path:
    """Return where the copy of alice's page is kept."""
    return folder / "alice.html"
