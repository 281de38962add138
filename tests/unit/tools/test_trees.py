"""Trees by recipe and stamp: which of them can be used, and who may make one anew."""

import fcntl
from pathlib import Path

import pytest
from tools.trees import debian, store
from tools.trees.recipes import RECIPES, Base, Layer, named

from gpuwaste.core.errors import ConfigError, GpuwasteError

_LAYER = "24.11.field"


def _base(folder: Path, packages: str = "Package: slurmctld\n") -> Path:
    """Write what a finished base tree of 24.11 has that the store reads."""
    recipe = named("24.11")
    assert isinstance(recipe, Base)
    tree = folder / "24.11"
    (tree / "var/lib/dpkg").mkdir(parents=True, exist_ok=True)
    (tree / "var/lib/dpkg/status").write_text(packages)
    (tree / debian.BASE_STAMP).write_text(debian.base_recipe(recipe))
    return tree


def _layer(folder: Path) -> None:
    recipe = named(_LAYER)
    assert isinstance(recipe, Layer)
    (folder / _LAYER).mkdir(exist_ok=True)
    (folder / _LAYER / debian.LAYER_STAMP).write_text(debian.layer_recipe(recipe, folder / recipe.base))


def test_layer_needs_its_base(tmp_path: Path) -> None:
    """A layer can be used only where its base can; what is missing is named."""
    assert store.lacks(_LAYER, tmp_path) == f"no tree {tmp_path / '24.11'}"
    _base(tmp_path)
    assert store.lacks(_LAYER, tmp_path) == f"no tree {tmp_path / _LAYER}"
    _layer(tmp_path)
    assert store.lacks(_LAYER, tmp_path) == ""


def test_layer_over_a_base_of_other_packages_is_made_anew(tmp_path: Path) -> None:
    """A base with other versions of its packages makes a layer useless: files of both would be mixed."""
    _base(tmp_path)
    _layer(tmp_path)
    _base(tmp_path, "Package: slurmctld\nVersion: 2\n")
    assert store.lacks(_LAYER, tmp_path) == f"{tmp_path / _LAYER} was made by another recipe"


def test_directories_of_a_layer_are_topmost_first(tmp_path: Path) -> None:
    """An overlay of a layer has the layer's own files over those of its base."""
    assert store.lowers(_LAYER, tmp_path) == [tmp_path / _LAYER / "upper", tmp_path / "24.11"]


def test_tree_in_use_is_not_made_anew(tmp_path: Path) -> None:
    """While one process uses a tree, another can use it too, and none gets the lock to make it."""
    _base(tmp_path)
    _layer(tmp_path)
    with store.using(_LAYER, tmp_path), store.using(_LAYER, tmp_path):
        for name in ("24.11", _LAYER):
            with (tmp_path / f"{name}.lock").open("w") as lock, pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (tmp_path / f"{_LAYER}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_lock_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits too long for a tree is told which lock another process holds."""
    _base(tmp_path)
    monkeypatch.setattr(store, "_LOCK_S", 0.3)
    with (tmp_path / "24.11.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(GpuwasteError, match=r"24\.11\.lock is held"), store.using("24.11", tmp_path):
            pass


def test_unknown_recipe_is_told() -> None:
    """A name without a recipe is refused, with those that have one; every layer's base is a base tree."""
    with pytest.raises(ConfigError, match=r"24\.11, 26\.05"):
        named("23.02")
    for recipe in RECIPES.values():
        assert isinstance(recipe, Base) or isinstance(named(recipe.base), Base)
