"""The layout of the house holds: one import name, four source roots."""

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_gpuwaste_itself_is_a_namespace_package() -> None:
    """No source root holds gpuwaste/__init__.py, so that the roots merge into one import name."""
    assert not list(ROOT.glob("*/gpuwaste/__init__.py"))


def test_every_subpackage_says_what_it_is_for() -> None:
    """Each sub-package has an __init__.py that starts with a docstring."""
    folders = {
        path.parent
        for root in ("src", "agent", "models", "testing")
        for path in (ROOT / root / "gpuwaste").rglob("*.py")
    }
    for folder in folders:
        text = (folder / "__init__.py").read_text()
        assert text.startswith('"""'), folder
