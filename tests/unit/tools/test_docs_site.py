"""The documentation's site: how a page of the repository becomes a page of the site."""

from pathlib import Path

import pytest
from tools.docs_site.__main__ import loaded
from tools.docs_site.layout import navigation, page, places
from tools.docs_site.markdown_dialect import translated

from gpuwaste.core.errors import GpuwasteError

SOURCE = "https://example.org/gpuwaste"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a small repository: two pages with a map, a file and a folder beside them."""
    for name, text in {
        "README.md": "# The project\n",
        "docs/README.md": "# All\n\n## You ask\n\n| q | [two](how-to/two.md#part), [code](../src) |\n",
        "docs/how-to/two.md": "# Two\n\n[all](../README.md#you-ask), [file](../../src/a.py), `[no](link.md)`\n",
        "docs/other.md": "# Other\n",
        "src/a.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_links_lead_to_pages_or_to_the_repository(repository: Path) -> None:
    """A link to a page stays in the site with its anchor; a link to a file leads to the repository; code stays."""
    text = page(repository, "docs/how-to/two.md", places(repository), SOURCE)
    assert text == f"# Two\n\n[all](../README.md#you-ask), [file]({SOURCE}/blob/main/src/a.py), `[no](link.md)`\n"
    assert f"[code]({SOURCE}/tree/main/src)" in page(repository, "docs/README.md", places(repository), SOURCE)


def test_a_dead_link_ends_the_build(repository: Path) -> None:
    """The error names the page and the link."""
    (repository / "docs/other.md").write_text("[gone](gone.md)\n", encoding="utf-8")
    with pytest.raises(GpuwasteError, match=r"docs/other\.md: gone\.md is no file"):
        page(repository, "docs/other.md", places(repository), SOURCE)


def test_the_navigation_is_that_of_the_map(repository: Path) -> None:
    """Each section of docs/README.md has its pages in their order; no page is left out."""
    assert navigation(repository, places(repository)) == [
        {"Documentation": "README.md"},
        {"You ask": ["how-to/two.md"]},
        {"Decisions": ["other.md", "overview.md"]},
    ]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("text\n- one\n- two\n", "text\n\n- one\n- two\n"),
        ("text\n|a|b|\n|-|-|\n", "text\n\n|a|b|\n|-|-|\n"),
        ("1. one\n2. two\n", "1. one\n2. two\n"),
        ("- one\n  more\n", "- one\n    more\n"),
        ("1. one\n\n   ```sh\n   a\n     b\n   ```\n", "1. one\n\n    ```sh\n    a\n      b\n    ```\n"),
        ("```toml rule\n- x\n  y = 1\n```\n", "```toml\n- x\n  y = 1\n```\n"),
        ("<!-- generated -->\n\n# Title\n", "# Title\n"),
    ],
)
def test_markdown_is_translated(written: str, read: str) -> None:
    """Lists, tables and blocks are such as Python-Markdown takes them; what is in a block stays."""
    assert translated(written) == read


def test_a_page_that_loads_from_another_host_is_found(tmp_path: Path) -> None:
    """A script or style sheet of another host is named; a link to one is none."""
    path = tmp_path / "a.html"
    path.write_text('<a href="https://x.org">x</a><script src="https://cdn.example/a.js"></script>', encoding="utf-8")
    assert loaded(path) == ['a.html: <script src="https://cdn.example/a.js']
