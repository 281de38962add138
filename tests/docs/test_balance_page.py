"""The how-to page of the balance."""

from pathlib import Path

from gpuwaste.ledger.balance.class_names import CLASS_MEANS, CLASS_NAMES, WAITED_FOR

PAGE = (Path(__file__).parents[2] / "docs/how-to/balance.md").read_text(encoding="utf-8")


def test_the_page_has_each_class() -> None:
    """The table of classes is that of the code, and the next one has advice for each cause of free GPUs."""
    _, classes, causes = PAGE.split("\n## ", 3)[:3]
    rows = [f"| {CLASS_NAMES[of]} | {means} |" for of, means in CLASS_MEANS.items()]
    assert [line for line in classes.splitlines() if line.startswith("| ")][1:] == rows
    for of in WAITED_FOR:
        assert f"\n| {CLASS_NAMES[of]} | " in causes, of
