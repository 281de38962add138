"""A registry finds the modules of a package by their files."""

import sys
from pathlib import Path

import pytest

from gpuwaste.core.registry import ModuleRegistry


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Return the name of a package with the modules late, early and bad, a helper and a file that is no module."""
    name = f"registry_{request.node.name}"
    folder = tmp_path / name
    folder.mkdir()
    for file, text in {
        "__init__.py": "",
        "_helper.py": "",
        "late.py": "PLACE = 2",
        "early.py": "PLACE = 10",
        "bad.py": "",
        "words.toml": "",
    }.items():
        (folder / file).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_modules_are_known_by_their_files_and_imported_when_asked_for(package: str) -> None:
    """Names are sorted, without helpers and other files; to list and to look for them imports none."""
    registry = ModuleRegistry[object](package)
    assert (list(registry), len(registry)) == (["bad", "early", "late"], 3)
    assert "early" in registry
    assert "_helper" not in registry
    assert not [name for name in sys.modules if name.startswith(f"{package}.")]
    assert registry["early"] is sys.modules[f"{package}.early"]
    assert f"{package}.late" not in sys.modules


def test_a_name_without_a_file_is_not_imported(package: str) -> None:
    """Neither a helper nor a module of another package can be had by a name."""
    for name in ("none", "_helper", "", "early.x"):
        with pytest.raises(KeyError):
            ModuleRegistry[object](package)[name]
    assert ModuleRegistry[object](package).get("none") is None


def test_a_module_that_lacks_a_name_is_named(package: str) -> None:
    """The error says which module lacks which name, each time it is asked for."""
    registry = ModuleRegistry[object](package, "PLACE", "__doc__", "run")
    for _ in range(2):
        with pytest.raises(
            ImportError, match=rf"^{package}\.late does not define run: every other file in its folder does$"
        ):
            registry["late"]


def test_modules_are_ordered_by_a_number_then_by_name(package: str, tmp_path: Path) -> None:
    """2 comes before 10; modules of one number are in the order of their names."""
    folder = tmp_path / package
    (folder / "bad.py").write_text("PLACE = 10")
    assert list(ModuleRegistry[object](package, "PLACE").ordered_by("PLACE")) == ["late", "bad", "early"]
