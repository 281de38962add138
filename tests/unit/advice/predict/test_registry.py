"""The registry: one rename puts a bundle in use, every failure leaves the champion, a kill leaves one of the two."""

from pathlib import Path

import pytest
from tests.unit.advice.predict.bundles import FEATURES, write

from gpuwaste.advice.predict.bundle import Registry
from gpuwaste.core.bundle_files import CHAMPION
from gpuwaste.core.bundle_registry import HISTORY
from gpuwaste.core.errors import ModelError


def three_bundles(tmp_path: Path) -> Registry:
    """Return a registry that holds three bundles and no champion."""
    models = tmp_path / "models"
    models.mkdir()
    for number, name in enumerate(("one", "two", "three")):
        write(models, name, 1000 + number)
    return Registry(models, FEATURES)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return three_bundles(tmp_path)


def champion(registry: Registry) -> str | None:
    path = registry.champion()
    return None if path is None else path.name


def test_promote_and_rollback_walk_the_history(registry: Registry) -> None:
    """Going back twice leads through the champions in the order of their promotion, and no further."""
    assert champion(registry) is None
    assert registry.load_champion() is None
    for name in ("one", "two", "three"):
        assert registry.promote(name).manifest.name == name
        assert champion(registry) == name
    assert [e.name for e in registry.list() if e.champion] == ["three"]
    assert registry.rollback().manifest.name == "two"
    assert registry.rollback().manifest.name == "one"
    with pytest.raises(ModelError, match="no previous model"):
        registry.rollback()
    assert champion(registry) == "one"


def test_the_champion_stays_where_a_promotion_fails(registry: Registry) -> None:
    """A truncated bundle, one that is not there, a bad name: the link is where it was, and so is the way back."""
    registry.promote("one")
    registry.promote("two")
    broken = registry.models_dir / "three" / "failure.onnx"
    broken.write_bytes(broken.read_bytes()[:-1])
    for name in ("three", "absent", "../two", CHAMPION, "", "a" * 65):
        with pytest.raises(ModelError):
            registry.promote(name)
        assert champion(registry) == "two"
    assert registry.rollback().manifest.name == "one"


def test_rollback_refuses_a_broken_bundle(registry: Registry) -> None:
    """The champion stays where the one before it cannot be loaded any more."""
    registry.promote("one")
    registry.promote("two")
    (registry.models_dir / "one" / "manifest.json").unlink()
    with pytest.raises(ModelError, match=r"manifest\.json"):
        registry.rollback()
    assert champion(registry) == "two"


def test_promoting_the_champion_again_changes_nothing(registry: Registry) -> None:
    """One promotion, said twice, is one step of the history."""
    registry.promote("one")
    registry.promote("two")
    registry.promote("two")
    assert registry.rollback().manifest.name == "one"


def test_an_announced_promotion_that_never_happened_does_not_count(registry: Registry) -> None:
    """Killed between history and link, the history names a bundle after the champion; the way back is right."""
    registry.promote("one")
    registry.promote("two")
    registry._write_history(["one", "two", "three"])
    assert champion(registry) == "two"
    assert registry.rollback().manifest.name == "one"


def test_a_history_that_is_lost_or_garbage_loses_only_the_way_back(registry: Registry) -> None:
    """The champion is what the link says; without a readable history there is no earlier one."""
    registry.promote("one")
    registry.promote("two")
    for text in (b"", b"\xff", b"[]", b'{"champions": 5}', b'{"champions": [7, "../x"]}'):
        (registry.models_dir / HISTORY).write_bytes(text)
        assert champion(registry) == "two"
        with pytest.raises(ModelError, match="no previous model"):
            registry.rollback()


def test_a_link_that_leads_out_is_refused(registry: Registry, tmp_path: Path) -> None:
    """A champion link to another place is not followed; a directory in its place is said."""
    link = registry.models_dir / CHAMPION
    write(tmp_path, "outside")
    for target in ("../outside", str(tmp_path / "outside"), ".."):
        link.symlink_to(target)
        with pytest.raises(ModelError, match="points outside"):
            registry.champion()
        link.unlink()
    link.mkdir()
    with pytest.raises(ModelError, match="cannot read the link"):
        registry.champion()


def test_add_copies_checks_and_does_not_promote(registry: Registry, tmp_path: Path) -> None:
    """A new bundle comes in under its own name; another of the same name is refused, the same one is nothing new."""
    source = write(tmp_path, "four")
    assert registry.add(source) == "four"
    assert registry.add(source) == "four"
    assert champion(registry) is None
    assert registry.promote("four").manifest.name == "four"
    other = write(tmp_path / "elsewhere", "four", 5)
    with pytest.raises(ModelError, match="another bundle has this name"):
        registry.add(other)
    (source / "timeout.onnx").write_bytes(b"")
    with pytest.raises(ModelError, match=r"timeout\.onnx"):
        registry.add(source)


def test_prune_spares_champion_way_back_and_the_newest(registry: Registry) -> None:
    """Old bundles go, and what killed writers left; the champion and the one before it stay."""
    for number in range(4, 8):
        write(registry.models_dir, f"m{number}", 2000 + number)
    registry.promote("one")
    registry.promote("two")
    (registry.models_dir / ".gpuwaste-99-three").mkdir()
    assert sorted(registry.prune(2)) == ["m4", "m5", "three"]
    assert [e.name for e in registry.list()] == ["one", "two", "m6", "m7"]
    assert sorted(p.name for p in registry.models_dir.glob(".gpuwaste-*")) == []


def test_prune_leaves_what_is_no_bundle(registry: Registry) -> None:
    """A directory without a manifest is somebody else's: a wrong --models-dir costs nobody their files."""
    for name in ("src", "home", "data"):
        (registry.models_dir / name).mkdir()
        (registry.models_dir / name / "kept").write_text("of somebody", encoding="ascii")
    (registry.models_dir / "two" / "failure.onnx").unlink()
    assert sorted(registry.prune(0)) == ["one", "three", "two"]
    assert sorted(path.name for path in registry.models_dir.glob("*/kept")) == ["kept"] * 3


def test_a_registry_that_others_may_write_is_refused(registry: Registry) -> None:
    """Who may write the directory may move the link."""
    registry.promote("one")
    registry.models_dir.chmod(0o777)
    with pytest.raises(ModelError, match="writable by everybody"):
        registry.load_champion()
    with pytest.raises(ModelError, match="writable by everybody"):
        registry.promote("two")


def test_list_shows_the_broken_ones_too(registry: Registry) -> None:
    """A bundle that cannot be read is in the list, with the reason."""
    (registry.models_dir / "two" / "walltime.onnx").unlink()
    problems = {e.name: e.problem for e in registry.list()}
    assert "walltime.onnx" in problems["two"]
    assert not problems["one"]
    assert Registry(registry.models_dir / "absent", FEATURES).list() == []


def test_a_challenger_is_on_trial_until_it_is_promoted(registry: Registry) -> None:
    """Its link stands beside the champion's; promoting it, or the end of the trial, removes it."""
    registry.promote("one")
    assert registry.challenger() is None
    assert registry.challenge("two").manifest.name == "two"
    path = registry.challenger()
    assert path is not None
    assert (path.name, champion(registry)) == ("two", "one")
    assert [entry.name for entry in registry.list() if entry.challenger] == ["two"]
    assert registry.prune(0) == ["three"]
    registry.promote("two")
    assert (registry.challenger(), champion(registry), registry.previous()) == (None, "two", "one")
    registry.challenge("one")
    assert registry.withdraw() == "one"
    assert registry.withdraw() is None
    assert registry.challenger_since() is None


def test_what_cannot_be_on_trial_changes_nothing(registry: Registry) -> None:
    """The champion itself, a broken bundle, a name that leads elsewhere, and a link that somebody else made."""
    registry.promote("one")
    registry.challenge("two")
    (registry.models_dir / "three" / "walltime.onnx").write_bytes(b"")
    for name, words in (("one", "is in use already"), ("three", "walltime.onnx"), ("../etc", "expected letters")):
        with pytest.raises(ModelError, match=words):
            registry.challenge(name)
    assert registry.challenger() == registry.models_dir / "two"
    (registry.models_dir / "challenger").unlink()
    (registry.models_dir / "challenger").symlink_to("/etc")
    with pytest.raises(ModelError, match="points outside"):
        registry.challenger()


def test_a_promotion_killed_between_its_two_links_leaves_no_trial(registry: Registry) -> None:
    """With both links at one bundle it is the champion and not on trial, and the next trial begins as any other."""
    registry.promote("one")
    registry.challenge("two")
    (registry.models_dir / CHAMPION).unlink()
    (registry.models_dir / CHAMPION).symlink_to("two")
    assert (champion(registry), registry.challenger()) == ("two", None)
    assert [entry.name for entry in registry.list() if entry.challenger] == []
    registry.challenge("three")
    assert registry.challenger() == registry.models_dir / "three"


def test_a_rollback_to_the_challenger_ends_its_trial(registry: Registry) -> None:
    """A bundle is not compared with itself."""
    registry.promote("one")
    registry.promote("two")
    registry.challenge("one")
    registry.rollback()
    assert (champion(registry), registry.challenger()) == ("one", None)
