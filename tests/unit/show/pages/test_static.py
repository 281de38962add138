"""The files of the pages: those of others are what VENDORED.toml says, and the colours can be told apart."""

import hashlib
import re
import tomllib
from importlib import resources

import pytest

from gpuwaste.show.static_files import PREFIX, served_files, static_files, static_url

FOLDER = resources.files("gpuwaste.show") / "static"
OURS = {
    "charts.css",
    "curves.js",
    "map.js",
    "zoom.js",
    "follow.js",
    "gpuwaste.css",
    "gpuwaste.js",
    "icon.svg",
    "VENDORED.toml",
}
CSS = (FOLDER / "gpuwaste.css").read_text(encoding="utf-8")


def test_every_vendored_file_has_its_hash_and_its_licence() -> None:
    """What is in the folder and not ours is in the table, with the hash that it has and a licence text."""
    table = tomllib.loads((FOLDER / "VENDORED.toml").read_text(encoding="utf-8"))["file"]
    for row in table:
        assert hashlib.sha256((FOLDER / row["name"]).read_bytes()).hexdigest() == row["sha256"], row["name"]
        assert len((FOLDER / row["licence_file"]).read_text(encoding="utf-8")) > 300
        assert row["version"]
        assert row["licence"]
    names = {entry.name for entry in FOLDER.iterdir() if entry.is_file()}
    assert names - OURS == {row["name"] for row in table}


def test_a_url_has_the_hash_of_the_content() -> None:
    """So that a browser may keep the file for good."""
    for name, file in static_files().items():
        digest = hashlib.sha256(file.content).hexdigest()[:12]
        assert static_url(name) == f"{PREFIX}{name.rpartition('.')[0]}.{digest}.{name.rpartition('.')[2]}"
        assert served_files()[file.served] is file


def tokens(dark: bool) -> dict[str, str]:
    """Return the colours of one scheme."""
    light, _, rest = CSS.partition("@media (prefers-color-scheme: dark)")
    part = rest.partition("}\n}")[0] if dark else light
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", part))


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_texts_and_marks_stand_out(dark: bool) -> None:
    """Texts have 4.5 to 1 on page and panel, marks 3 to 1 on the page, in both schemes."""
    found = tokens(dark)
    assert len(found) == 10
    for name in ("text", "muted", "accent"):
        for ground in ("page", "panel"):
            assert contrast(found[name], found[ground]) >= 4.5, (name, ground)
    for name in ("high", "moderate", "low", "idle"):
        assert contrast(found[name], found["page"]) >= 3, name


def test_the_style_sheet_and_the_script_name_nothing_elsewhere() -> None:
    """The policy would refuse it."""
    for name in ("gpuwaste.css", "gpuwaste.js", "curves.js", "follow.js", "map.js"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert "http" not in text
        assert "@import" not in text
