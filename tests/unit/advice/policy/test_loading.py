"""Policies from files: order, names, the built-in one, what they need, and every kind of bad file as one clear line."""

import os
from pathlib import Path

import pytest
from tests.unit.advice.policy.builders import BAD, WASTES, Day, no_chance

from gpuwaste.advice.policy.policy_loading import MAX_FILE_B, load_policies, policy_from_toml
from gpuwaste.core.errors import ConfigError


def _write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.mark.parametrize("there", [True, False])
def test_without_policies_all_is_shadow(tmp_path: Path, there: bool) -> None:
    """An empty directory and one that is not there give the built-in policy: recorded, nothing said."""
    found = load_policies(tmp_path if there else tmp_path / "absent")
    assert [policy.name for policy in found.policies] == ["default"]
    decision = found.decide(BAD, Day(), no_chance)
    assert (decision.mode, decision.action, decision.would_be, decision.held) == ("shadow", "pass", "reject", "shadow")


def test_files_count_in_the_order_of_their_names(tmp_path: Path) -> None:
    """The first whose [when] matches decides, though it was written last."""
    _write(tmp_path, b='[policy]\nmode = "warn"\n', a='[policy]\nmode = "annotate"\n[when]\nusers = ["a*"]\n')
    found = load_policies(tmp_path)
    assert [policy.name for policy in found.policies] == ["a", "b", "default"]
    assert found.select(BAD).name == "a"
    assert [policy.name for policy in found.in_force] == ["a", "b"]


def test_other_files_of_the_directory_are_left_alone(tmp_path: Path) -> None:
    """Editors' leftovers and hidden files are no policies."""
    for name in (".hidden.toml", "a.toml~", "a.toml.rpmnew", "README"):
        (tmp_path / name).write_text("no TOML [")
    assert len(load_policies(tmp_path).policies) == 1


def test_the_hash_tells_every_change(tmp_path: Path) -> None:
    """Another text, another name of a file: another hash; the same files: the same."""
    hashes = {load_policies(tmp_path).hash}
    _write(tmp_path, a='[policy]\nname = "x"\n')
    first = load_policies(tmp_path).hash
    assert load_policies(tmp_path).hash == first
    _write(tmp_path, a='[policy]\nname = "x"\n\n')
    hashes |= {first, load_policies(tmp_path).hash}
    (tmp_path / "a.toml").rename(tmp_path / "b.toml")
    hashes.add(load_policies(tmp_path).hash)
    assert len(hashes) == 4


def test_needs_are_the_targets_of_the_policies_in_force(tmp_path: Path) -> None:
    """An off policy needs nothing; what stands behind one that judges everything is never asked."""
    _write(
        tmp_path,
        a='[policy]\nmode = "off"\n[when]\nusers = ["x"]\n[targets.memory]\nwarn = 0.9\n',
        b="[targets.timeout]\nwarn = 0.9\n[time_min]\n",
        c="[targets.failure_or_cancel]\nwarn = 0.9\n",
    )
    assert load_policies(tmp_path).needs == {"timeout", "walltime"}
    (tmp_path / "b.toml").unlink()
    (tmp_path / "c.toml").unlink()
    assert load_policies(tmp_path).needs == {"failure", "timeout", "gpu_underused", "gpus_needed"}  # the built-in one's


def test_groups_are_asked_only_where_a_policy_names_some(tmp_path: Path) -> None:
    """A set without groups says that it needs none."""
    assert not load_policies(_write(tmp_path, a='[exempt]\nusers = ["x"]\n')).uses_groups
    assert load_policies(_write(tmp_path, a='[exempt]\ngroups = ["x"]\n')).uses_groups


def test_gpus_need_less_history_than_other_targets() -> None:
    """Two jobs where the file does not say; what it says counts."""
    text = "[targets.gpus]\nwarn = 0.8\n[targets.failure]\nwarn = 0.8\n"
    assert {name: rule.basis for name, rule in policy_from_toml(text.encode(), "a").targets.items()} == {
        "failure": 3,
        "gpus": 2,
    }
    assert policy_from_toml(b"[targets.gpus]\nwarn = 0.8\nbasis = 3\n", "a").targets["gpus"].basis == 3


_BAD = [
    ("[polcy]", "unknown table [polcy]: did you mean 'policy'?"),
    ('[policy]\nmod = "warn"', "[policy] unknown key 'mod': did you mean 'mode'?"),
    ('[policy]\nmode = "rejct"', "[policy] mode: 'rejct' is not a mode: did you mean 'reject'?"),
    ("[policy]\nmode = 3", "[policy] mode: 3 is not a mode: known are off, shadow, annotate, warn, reject"),
    ('[policy]\nname = "a b"', "name 'a b': letters, digits"),
    ('[policy]\nname = "\\u001b[2J"', "letters, digits"),
    ('[policy]\nname = "default"', "name 'default': is used by the built-in policy: rename one"),
    ("policy = 1", "[policy] is not a table"),
    ("[when]\npartition = []", "[when] unknown key 'partition': did you mean 'partitions'?"),
    ('[when]\npartitions = "gpu"', "[when] partitions: expected a list of patterns"),
    ("[when]\npartitions = [1]", "[when] partitions: expected a list of patterns"),
    ("[when]\npartitions = []", "an empty list matches nothing"),
    ('[when]\nhours = "8-18"', "[when] hours: expected hours as"),
    ('[when]\nhours = "08:60-18:00"', "is not a time range"),
    ('[when]\nhours = "08:00-08:00"', "is not a time range"),
    ('[when]\nhours = "24:00-25:00"', "is not a time range"),
    ('[when]\nweekdays = ["monday"]', "'monday' is not a day: did you mean 'mon'?"),
    ('[when]\nweekdays = "mon"', "expected a list of days"),
    ('[when]\nfrom = "2026-01-01"', "expected a date without quotes"),
    ("[when]\nfrom = 2026-01-01T00:00:00", "expected a date without quotes"),
    ("[when]\nfrom = 2026-02-01\nuntil = 2026-01-01", "from is after until"),
    ("[when]\nmin_gpus = -1", "[when] min_gpus: -1 is negative"),
    ("[when]\nmin_gpus = true", "[when] min_gpus: expected int, found True"),
    ("[targets.failures]\nwarn = 0.5", "unknown table [targets.failures]: did you mean 'failure'?"),
    ("[targets]\nfailure = 0.5", "[targets.failure] is not a table"),
    ("targets = 1", "[targets] is not a table"),
    ("[targets.failure]", "neither warn nor reject"),
    ("[targets.failure]\nwarn = 80", "expected a probability over 0 and up to 1"),
    ("[targets.failure]\nwarn = 0", "expected a probability over 0 and up to 1"),
    ("[targets.failure]\nwarn = nan", "expected a probability over 0 and up to 1"),
    ("[targets.failure]\nwarn = true", "expected a probability over 0 and up to 1"),
    ('[targets.failure]\nwarn = "modell"', "expected a probability over 0 and up to 1"),
    ("[targets.failure]\nwarn = 0.9\nreject = 0.8", "reject 0.8 is below warn 0.9"),
    ("[targets.failure]\nwarn = 0.9\nbasis = 0", "basis: expected 1 or more"),
    ("[sample]\npass_ratio = 1.5", "[sample] pass_ratio: expected a share from 0 to 1"),
    ("[floor]\nprecision = inf", "[floor] precision: expected a share from 0 to 1"),
    ("[budget]\nrejects_per_user_per_day = 2.5", "expected int, found 2.5"),
    ('[override]\nallowed = "yes"', "expected bool, found 'yes'"),
    ("[policy", "invalid TOML"),
    ("[policy]\n[policy]", "invalid TOML"),
]


@pytest.mark.parametrize(("text", "words"), _BAD)
def test_a_bad_file_is_one_line_that_names_it(tmp_path: Path, text: str, words: str) -> None:
    """File, key and what to do, on one line; nothing of the set is used."""
    _write(tmp_path, good="[policy]\n", x=text)
    with pytest.raises(ConfigError) as caught:
        load_policies(tmp_path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/x.toml: ")


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\0", b"a" * (MAX_FILE_B + 1), b"a = " + b"[" * 100_000])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    """Binary, huge and deeply nested files are ConfigErrors."""
    (tmp_path / "x.toml").write_bytes(data)
    with pytest.raises(ConfigError, match=r"invalid TOML|too large for a policy"):
        load_policies(tmp_path)


def test_two_policies_of_one_name_are_refused(tmp_path: Path) -> None:
    """The error names both files: verdicts are told apart by name."""
    _write(tmp_path, a='[policy]\nname = "x"\n', b='[policy]\nname = "x"\n')
    with pytest.raises(ConfigError, match=r"b\.toml: \[policy\] name 'x': is used by .*a\.toml"):
        load_policies(tmp_path)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A directory in a file's place, a file in the directory's."""
    (tmp_path / "x.toml").mkdir()
    with pytest.raises(ConfigError, match=r"x\.toml: cannot be read"):
        load_policies(tmp_path)
    file = tmp_path / "file"
    file.write_bytes(os.urandom(8))
    with pytest.raises(ConfigError, match="see policies_dir"):
        load_policies(file)


def test_what_is_wasted_is_seen_without_policies(tmp_path: Path) -> None:
    """The built-in policy records the GPUs that are too many."""
    decision = load_policies(tmp_path).decide(WASTES, Day(), no_chance)
    assert (decision.action, decision.would_be, dict(decision.triggers)) == ("pass", "warn", {"gpus": 1.0})
