"""The rules in use follow their files."""

import os
from pathlib import Path

from gpuwaste.act.rules.rule_file import RulesInUse

TEXT = 'where = "job.gpus > 0"\n[[do]]\naction = "hold"\n'


def test_a_file_is_read_again_although_size_and_time_are_as_before(tmp_path: Path) -> None:
    """So is one that the hub may read only now: the change of its mode leaves both as they were."""
    file = tmp_path / "r.toml"
    file.write_text(TEXT.replace("hold", "hole"))
    os.utime(file, ns=(1, 1))
    rules = RulesInUse(tmp_path)
    rules.refresh()
    assert (list(rules.rules), len(rules.errors)) == ([], 1)
    before = file.stat().st_ctime_ns
    while file.stat().st_ctime_ns == before:  # the file system's clock ticks every few milliseconds
        file.write_text(TEXT)
        os.utime(file, ns=(1, 1))
    rules.refresh()
    assert [rule.name for rule in rules.rules] == ["r"]


def test_a_link_to_nothing_keeps_no_other_file_from_being_followed(tmp_path: Path) -> None:
    """It is an error of its own; a rule that is added or changed beside it is used."""
    (tmp_path / "gone.toml").symlink_to(tmp_path / "nothing")
    rules = RulesInUse(tmp_path)
    rules.refresh()
    assert (list(rules.rules), len(rules.errors)) == ([], 1)
    (tmp_path / "r.toml").write_text(TEXT)
    rules.refresh()
    assert ([rule.name for rule in rules.rules], len(rules.errors)) == (["r"], 1)
