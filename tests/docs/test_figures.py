"""What pages say of the cost of gpuwaste: each figure is the value of a line of docs/figures.md."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIGURES = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
QUANTITY = re.compile(r"\d[\d,.]*(?: to \d[\d,.]*)? (?:%|MB|ms|s|rows|jobs)(?![\w-])")
CORE = "agent, 8 GPUs at 10 s, CPU of a core"
MEMORY = "agent, resident memory"
CHILD = "agent with the child that folds samples, 96 times a day"
SAMPLES = "agent, raw samples of a day with WAL"
OUTBOX = "agent, outbox with WAL"
REPORT = "`gpuwaste report`, the default 7 days, 1,000,000 jobs in the hub, predictions loaded"
INGEST = "hub, ingest through HTTP and munge, full batches"
ROWS = f"{8 * 24} rows"  # of 8 GPUs in a day, one each hour
PASSAGES = [
    ("README.md", r"## What it costs\n\n(.*?)\n\n", (CORE, MEMORY, CHILD, SAMPLES, REPORT, INGEST)),
    ("docs/explanation/comparison.md", r"(its authors' figure, compared with .*?)\n\n", (MEMORY, CHILD)),
    ("docs/explanation/comparison.md", r"\| (gpuwaste agent, 8 .*?)\n", (MEMORY, CHILD, CORE, SAMPLES, OUTBOX)),
    ("docs/how-to/tuning.md", r"(An agent uses .*?)\n", (CORE, MEMORY, CHILD)),
]  # fmt: skip


def value_of(line: str) -> str:
    """Return the first quantity of a line's value: 42 MB, 199 ms, 15,883 rows."""
    (cell,) = re.findall(rf"^\| {re.escape(line)} \| (.*?) \|", FIGURES, re.MULTILINE)
    found = QUANTITY.search(cell.replace("rows/s", "rows"))
    assert found is not None, cell
    return found[0]


@pytest.mark.parametrize(("page", "passage", "lines"), PASSAGES)
def test_a_figure_is_that_of_the_figures(page: str, passage: str, lines: tuple[str, ...]) -> None:
    """Each line's value is in the passage, and no other quantity but those that the lines' own words have."""
    (text,) = re.findall(passage, (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    words = " ".join(text.split())
    values = [value_of(line) for line in lines]
    assert [value for value in values if value not in words] == []
    own = QUANTITY.findall(" ".join(lines))
    assert [found for found in QUANTITY.findall(words) if found not in {*values, *own, "1,000,000 jobs", ROWS}] == []
