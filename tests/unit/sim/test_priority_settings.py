"""The settings of priorities, as scontrol show config prints them: defaults, each kind, bad values by name."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.errors import ConfigError
from gpuwaste.sim.multifactor import PrioritySettings, priority_settings

SHOWN = {
    "AccountingStorageEnforce": "associations,limits,qos,safe",
    "FairShareDampeningFactor": "1",
    "PriorityCalcPeriod": "00:05:00",
    "PriorityDecayHalfLife": "14-00:00:00",
    "PriorityFavorSmall": "Yes",
    "PriorityFlags": "ACCRUE_ALWAYS,NO_NORMAL_ALL",
    "PriorityMaxAge": "7-00:00:00",
    "PriorityType": "priority/multifactor",
    "PriorityUsageResetPeriod": "MONTHLY",
    "PriorityWeightAge": "1000",
    "PriorityWeightFairShare": "4294967295",
    "PriorityWeightTRES": "CPU=10.00,Mem=2.00G,GRES/gpu=300.00",
}


def test_what_scontrol_prints_is_read() -> None:
    """Each setting is read in its unit; NO_NORMAL_ALL stands for its four flags."""
    found = priority_settings(SHOWN)
    assert (found.multifactor, found.fair_tree, found.limits, found.safe, found.favor_small) == (True,) * 5
    assert (found.weight_age, found.weight_fair_share, found.weight_size) == (1000, 2**32 - 1, 0)
    assert (found.half_life_s, found.max_age_s, found.calc_period_s) == (14 * 86400, 7 * 86400, 300)
    assert found.weight_tres == {"cpu": 10.0, "mem": 2.0 / 2**30, "gres/gpu": 300.0}
    assert {"NO_NORMAL_QOS", "NO_NORMAL_TRES", "ACCRUE_ALWAYS"} < found.flags
    assert found.reset == "MONTHLY"


def test_without_settings_the_defaults_hold() -> None:
    """Nothing set is priority/basic with the defaults of slurm.conf(5); limits hold unless a Slurm says otherwise."""
    assert priority_settings({}) == PrioritySettings()
    assert not priority_settings({"AccountingStorageEnforce": "none"}).limits
    assert not priority_settings({"AccountingStorageEnforce": "associations"}).limits
    assert priority_settings({"PriorityDecayHalfLife": "00:00:00"}).half_life_s is None
    assert priority_settings({"PriorityWeightTRES": "(null)"}).weight_tres == {}
    assert not priority_settings({"PriorityFlags": "NO_FAIR_TREE"}).fair_tree


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PriorityType", "priority/magic"),
        ("PriorityWeightAge", "-1"),
        ("PriorityWeightAge", "4294967296"),
        ("PriorityWeightQOS", "1e3"),
        ("PriorityWeightQOS", "٣"),
        ("PriorityMaxAge", "a week"),
        ("PriorityDecayHalfLife", "1:2:3:4"),
        ("PriorityCalcPeriod", "0"),
        ("PriorityFavorSmall", "perhaps"),
        ("PriorityFlags", "MAX_TRES,SURPRISE"),
        ("PriorityUsageResetPeriod", "HOURLY"),
        ("PriorityWeightTRES", "CPU"),
        ("PriorityWeightTRES", "CPU=nan"),
        ("PriorityWeightTRES", "CPU=-1"),
    ],
)
def test_a_bad_value_is_named(name: str, text: str) -> None:
    """A value that slurm.conf(5) does not know is one line with the setting's name and the value."""
    with pytest.raises(ConfigError, match=name) as raised:
        priority_settings({name: text})
    assert "\n" not in str(raised.value)
    assert text.rsplit(",", maxsplit=1)[-1] in str(raised.value)


@given(st.sampled_from(sorted(SHOWN)), st.text(max_size=300))
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    """Whatever text a setting has, it is read or refused: no other error comes out."""
    with suppress(ConfigError):
        priority_settings({name: text})
