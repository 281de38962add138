"""Inlets from files: what each takes; what is wrong is one line that names file, table and key."""

from pathlib import Path

import pytest
from tests.unit.act.events.site import LICENCES, WEBHOOK, written

from gpuwaste.act.events.inlet import WAYS, is_inlet, load_inlet, load_inlets
from gpuwaste.act.events.outlet import load_outlet
from gpuwaste.core.errors import ConfigError
from gpuwaste.jobs.events.kind_catalogue import kinds_of


def test_a_file_is_an_inlet(tmp_path: Path) -> None:
    """It takes the kinds that it declares, or that it names, else all of the site's; a bad file costs no other."""
    written(tmp_path, WEBHOOK, "a.toml")
    written(tmp_path, WEBHOOK + LICENCES, "b.toml")
    written(tmp_path, WEBHOOK.replace("[inlet]", '[inlet]\nkinds = ["site.fs_full"]\nper_minute = 5'), "c.toml")
    written(tmp_path, "nonsense", "d.toml")
    found, errors = load_inlets(tmp_path)
    assert [str(error).partition(": ")[0] for error in errors] == [str(tmp_path / "d.toml")]
    assert [one.name for one in found] == ["a", "b", "c"]
    assert {"site.fs_full", "site.maintenance_begin"} <= set(found[0].kinds)
    assert list(found[1].kinds) == ["site.licence_low"]
    assert (list(found[2].kinds), found[2].per_minute) == (["site.fs_full"], 5)
    assert load_inlets(tmp_path / "none") == ([], [])
    assert is_inlet(tmp_path / "a.toml")
    assert not is_inlet(tmp_path / "d.toml")


def test_a_kind_is_declared_once(tmp_path: Path) -> None:
    """The second file is left out, and the error names both."""
    written(tmp_path, WEBHOOK + LICENCES, "a.toml")
    written(tmp_path, WEBHOOK + LICENCES, "b.toml")
    found, errors = load_inlets(tmp_path)
    assert [one.name for one in found] == ["a"]
    assert [str(error) for error in errors] == [
        f"{tmp_path}/b.toml: site.licence_low is declared by a.toml too: use another name"
    ]


def test_outlets_and_readers_may_name_kinds_of_the_site(tmp_path: Path) -> None:
    """site.* has those that inlets declare; without them a name is unknown."""
    site = {"site.licence_low"}
    assert kinds_of(["site.licence_low"], "x", site) == site
    assert kinds_of(["site.*"], "x", site) > site
    path = written(tmp_path, '[outlet]\nevents = ["site.licence_low"]\n[journal]\n')
    assert load_outlet(path, site).kinds == site
    with pytest.raises(ConfigError, match=r"no kind of event is called 'site.licence_low'"):
        load_outlet(path)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", r"expected one of \[kafka\], \[webhook\]"),
        ('[webhook]\nsecret_file = "{key}"\n', r"expected a table \[inlet\]"),
        ("[inlet]\n[webhook]\n", "secret_file is empty: without a secret anybody could send events"),
        ("[inlet]\n[webhok]\n", r"unknown table \[webhok\]: did you mean 'webhook'"),
        (WEBHOOK.replace("[inlet]", "[inlet]\nper_minute = 0"), "per_minute 0: expected 1 to 60000"),
        (WEBHOOK.replace("[inlet]", '[inlet]\nkinds = ["site.fs_ful"]'), "'site.fs_ful': did you mean 'site.fs_full'"),
        (WEBHOOK.replace("[inlet]", '[inlet]\nkinds = ["job.ended"]'), "no kind of the site is called 'job.ended'"),
        (WEBHOOK + "[kind]\nx = 1\n", r"\[kind.x\] is not a table"),
        (WEBHOOK + "[kind.fs_full]\n", "site.fs_full has a type already"),
        (WEBHOOK + "[kind.Low]\n", "the name of a kind: small letters"),
        (WEBHOOK + "[kind.low]\n", "0 fields: expected 1 to 32"),
        (WEBHOOK + '[kind.low]\nfield = "x"\n', "unknown key 'field': did you mean 'fields'"),
        (WEBHOOK + '[kind.low.fields]\nleft = "integer"\n', "left: no type 'integer': known are flag, number"),
        (WEBHOOK + "[kind.low.fields]\nleft = 3\n", 'expected NAME = "TYPE" lines'),
        (WEBHOOK + '[kind.low.fields]\ninlet = "text"\n', "'inlet': a field's name"),
        (WEBHOOK + '[kind.low.fields]\n"__class__" = "text"\n', "'__class__': a field's name"),
        ("[inlet]\n[kafka]\n", r"\[kafka\] brokers is empty"),
        ('[inlet]\n[kafka]\nbrokers = ["h:1"]\n', "topic '': expected the name of a topic"),
        ('[inlet]\n[kafka]\nbrokers = ["h:1"]\ntopic = "x"\nbegin = "then"\n', "begin 'then': expected now or oldest"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, error: str) -> None:
    """The file, the table and the key, and what to write."""
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=error) as raised:
        load_inlet(path).make()
    assert "\n" not in str(raised.value)


def test_each_way_has_settings_with_texts() -> None:
    """The reference is made of them."""
    assert set(WAYS) == {"kafka", "webhook"}
    for module in WAYS.values():
        for field in module.SETTINGS.__dataclass_fields__.values():
            assert field.metadata["text"].endswith(".")
