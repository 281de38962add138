"""Campaign files: what is accepted, and one clear line for what is not."""

import os
from pathlib import Path

import pytest
from tests.unit.act.campaigns.builders import GOOD, campaign_of

from gpuwaste.act.campaigns.campaign_file import MAX_FILE_B, campaign_from_toml, load_campaign_files, load_campaigns
from gpuwaste.core.errors import ConfigError


def test_a_good_file_has_whole_weeks() -> None:
    """Weeks begin at local midnight of the first day; the weeks before end where the campaign starts."""
    found = campaign_of()
    assert found.weeks == 12
    assert len(found.edges) == 13
    assert found.edges[1] - found.edges[0] in {7 * 86400 - 3600, 7 * 86400, 7 * 86400 + 3600}
    assert found.before[-1] == found.start == found.edges[0]
    assert len(found.before) == 9


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"what": "[]"}, "nothing would be held back"),
        ({"what": '["policy"]'}, 'expected "policy:NAME"'),
        ({"what": '["mail:x"]'}, 'expected "policy:NAME"'),
        ({"what": '["rule:a/../b"]'}, 'expected "policy:NAME"'),
        ({"what": '["digest", "digest"]'}, "each once"),
        ({"end": "2027-07-24"}, "83 days: expected 2 to 52 whole weeks"),
        ({"end": "2027-05-09"}, "expected 2 to 52 whole weeks"),
        ({"end": "2026-05-02"}, "expected 2 to 52 whole weeks"),
        ({"start": '"2027-05-03"'}, "expected a date without quotes"),
        ({"start": "0001-01-01", "end": "0001-03-25"}, "years 2000 to 2200"),
        ({"held_back": "1.0"}, "nobody would be notified"),
        ({"held_back": "0.01"}, "too few on one side"),
        ({"held_back": "nan"}, "held_back"),
        ({"held_back": '"half"'}, "expected float"),
        ({"rollout_weeks": "4"}, "set one of held_back"),
        ({"held_back": "0.0"}, "set one of held_back"),
        ({"held_back": "0.0", "rollout_weeks": "12"}, "less than the 12 weeks"),
        ({"unit": '"job"'}, "expected user or account"),
        ({"users": "[]"}, "an empty list matches nothing"),
        ({"weeks_before": "1"}, "weeks_before"),
        ({"reason": '"two\\nlines"'}, "one line of at most"),
        ({"share": "0.5"}, "unknown key 'share'"),
    ],
)
def test_a_bad_file_has_one_line(changes: dict[str, str], says: str) -> None:
    """Each error names the file and what is expected."""
    with pytest.raises(ConfigError) as caught:
        campaign_of(**changes)
    assert says in str(caught.value)
    assert str(caught.value).startswith("test.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"what = [", b"[" * 5000, b"\x00" * 10, b"what = '\x1b[2J'"])
def test_binary_data_is_refused(data: bytes) -> None:
    """What is no TOML is an error with the file's name."""
    with pytest.raises(ConfigError, match=r"^x\.toml"):
        campaign_from_toml(data, "x.toml", "x")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    """A file beyond the bound is not read, and the other campaigns stay in use."""
    (tmp_path / "huge.toml").write_bytes(b"#" * (MAX_FILE_B + 1))
    (tmp_path / "good.toml").write_text(GOOD)
    found = load_campaigns(tmp_path)
    assert [one.name for one in found.campaigns] == ["good"]
    assert "too large" in str(found.errors[0])


def test_a_pipe_or_link_to_nowhere_does_not_block(tmp_path: Path) -> None:
    """A named pipe and a dangling link are errors."""
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "link.toml").symlink_to(tmp_path / "nothing")
    assert len(load_campaigns(tmp_path).errors) == 2


def test_of_two_that_overlap_the_later_one_is_not_used(tmp_path: Path) -> None:
    """One campaign at a time touches a user; lists of different users, or other dates, are no overlap."""
    files = {
        "a": GOOD,
        "b": GOOD.replace("2027-05-03", "2027-05-10").replace("2027-07-25", "2027-08-01"),
        "c": GOOD.replace("2027-", "2029-").replace("2029-05-03", "2029-05-07").replace("2029-07-25", "2029-07-29"),
    }
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text)
    found = load_campaigns(tmp_path)
    assert [one.name for one in found.campaigns] == ["a", "c"]
    assert "overlaps a (2027-05-03 to 2027-07-25)" in str(found.errors[0])
    for name, users in (("a", '["alice", "bob"]'), ("b", '["carol"]')):
        (tmp_path / f"{name}.toml").write_text(files[name] + f"users = {users}\n")
    assert [one.name for one in load_campaigns(tmp_path).campaigns] == ["a", "b", "c"]
    (tmp_path / "b.toml").write_text(files["b"] + 'users = ["car*"]\n')
    assert [one.name for one in load_campaigns(tmp_path).campaigns] == ["a", "c"], "a pattern could match alice"


def test_a_missing_directory_has_no_campaigns(tmp_path: Path) -> None:
    """Most sites have none."""
    found = load_campaigns(tmp_path / "nowhere")
    assert not found.campaigns
    assert not found.errors
    assert not load_campaign_files(()).campaigns
