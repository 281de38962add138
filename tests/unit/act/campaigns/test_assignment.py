"""Assignment: a keyed hash and nothing else says who is notified when."""

from pathlib import Path

import pytest
from tests.unit.act.campaigns.builders import GOOD, campaign_of

from gpuwaste.act.campaigns.assignment import Assignment, CampaignsInUse, read_key
from gpuwaste.core.errors import ConfigError

KEY = b"0123456789abcdef0123456789abcdef"
UNITS = [f"user{number}" for number in range(4000)]


def test_a_restored_hub_assigns_the_same() -> None:
    """Two hubs with the same key agree on every user; another key, or another campaign, assigns anew."""
    one, same, other = Assignment(KEY), Assignment(KEY), Assignment(KEY[::-1])
    campaign, second = campaign_of(), campaign_of("second")
    notified = [one.notified_from(campaign, unit) for unit in UNITS]
    assert notified == [same.notified_from(campaign, unit) for unit in UNITS]
    for others in (
        [other.notified_from(campaign, unit) for unit in UNITS],
        [one.notified_from(second, unit) for unit in UNITS],
    ):
        agree = sum(a == b for a, b in zip(notified, others, strict=True)) / len(UNITS)
        assert 0.46 < agree < 0.54
    assert one.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_share_is_held_back(share: float) -> None:
    """About the share of the units is never notified, the others are notified from the first week."""
    campaign = campaign_of(held_back=str(share))
    notified = [Assignment(KEY).notified_from(campaign, unit) for unit in UNITS]
    assert set(notified) == {0, campaign.weeks}
    assert abs(notified.count(campaign.weeks) / len(UNITS) - share) < 0.03


def test_a_rollout_tells_one_group_more_each_week() -> None:
    """Groups of about the same size: the first is notified at once, the last after the roll-out's weeks."""
    campaign = campaign_of(held_back="0.0", rollout_weeks="4")
    notified = [Assignment(KEY).notified_from(campaign, unit) for unit in UNITS]
    assert set(notified) == {0, 1, 2, 3, 4}
    assert all(abs(notified.count(week) / len(UNITS) - 0.2) < 0.03 for week in range(5))


def test_nothing_is_held_back_outside_of_the_campaign() -> None:
    """Before the start, at its end, and for users whom it does not concern everybody is notified."""
    campaign = campaign_of(users='["user*"]', accounts='["physics"]')
    assignment = Assignment(KEY)
    unit = next(unit for unit in UNITS if assignment.notified_from(campaign, unit))
    assert assignment.holds_back(campaign, unit, "physics", campaign.start)
    assert assignment.holds_back(campaign, unit, "physics", campaign.end - 1)
    assert not assignment.holds_back(campaign, unit, "physics", campaign.start - 1)
    assert not assignment.holds_back(campaign, unit, "physics", campaign.end)
    assert not assignment.holds_back(campaign, unit, "chemistry", campaign.start)
    assert not assignment.holds_back(campaign, f"x{unit}", "physics", campaign.start)


def test_an_account_is_assigned_as_a_whole() -> None:
    """All users of an account are notified, or none; who changes the account is with the new one."""
    campaign, assignment = campaign_of(unit='"account"'), Assignment(KEY)
    for account in ("physics", "chemistry", "biology"):
        assert len({assignment.holds_back(campaign, user, account, campaign.start) for user in UNITS[:50]}) == 1


@pytest.mark.parametrize("name", ["", "\udcff", "a\0b", "x" * 100_000, "über", "💥"])
def test_any_name_can_be_assigned(name: str) -> None:
    """Names that no user should have are assigned like others."""
    assert Assignment(KEY).notified_from(campaign_of(), name) in {0, 12}


def in_use(folder: Path, key: str = KEY.decode(), mode: int = 0o640) -> CampaignsInUse:
    """Return the campaigns of a folder with one good file."""
    (folder / "campaigns.d").mkdir(exist_ok=True)
    (folder / "campaigns.d" / "test.toml").write_text(GOOD)
    (folder / "key").write_text(key)
    (folder / "key").chmod(mode)
    return CampaignsInUse(folder / "campaigns.d", folder / "key")


@pytest.mark.parametrize(("key", "mode", "says"), [("short", 0o640, "at least 16"), (KEY.decode(), 0o644, "chmod o=")])
def test_without_a_good_key_everybody_is_told(tmp_path: Path, key: str, mode: int, says: str) -> None:
    """A key that is missing, short or open to others puts no campaign in use, and the error says why."""
    found = in_use(tmp_path, key, mode)
    assert not found.campaigns
    assert any(says in error for error in found.errors)
    start = campaign_of().start
    assert not any(found.holding_back("digest", "", unit, "", start) for unit in UNITS[:50])
    assert CampaignsInUse(tmp_path / "campaigns.d", None).errors == [
        "[common] campaign_key_file is empty: campaigns need a key"
    ]


def test_a_key_that_is_lost_stays_in_use(tmp_path: Path) -> None:
    """A campaign does not end because its key cannot be read any more: those held back would be notified."""
    found = in_use(tmp_path)
    (tmp_path / "key").unlink()
    (tmp_path / "campaigns.d" / "test.toml").write_text(GOOD + "# changed\n")
    found.refresh()
    assert [one.name for one in found.campaigns] == ["test"]
    assert found.errors


def test_only_what_the_campaign_names_is_held_back(tmp_path: Path) -> None:
    """Other policies, rules and the digest of others go on."""
    found, start = in_use(tmp_path), campaign_of().start
    back = next(unit for unit in UNITS if found.holding_back("digest", "", unit, "", start))
    assert found.holding_back("policy", "gpus", back, "", start) == "test"
    assert not found.holding_back("policy", "other", back, "", start)
    assert not found.holding_back("rule", "gpus", back, "", start)


def test_a_key_file_of_binary_data_is_refused(tmp_path: Path) -> None:
    """The error names the file and nothing of its content."""
    (tmp_path / "key").write_bytes(b"\xff" * 64)
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(ConfigError, match="characters that are not allowed"):
        read_key(tmp_path / "key")
