"""Hostile configuration: whatever stands in gpuwaste.toml or a policy is used or refused in one line."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.advice.policy.policy_loading import policy_from_toml
from gpuwaste.core.config import config_from_dict, describe_config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.typed_toml import parse_toml

KEYS = [(section, key) for section, key, *_ in describe_config()]
VALUES = st.sampled_from(
    [
        *("nan", "inf", "-inf", "1" + "0" * 400, "-1", "true", "0x7f", "1.5", "9223372036854775808", "1979-05-27"),
        *('"\\u0000"', '"x\\ny"', "''", '"' + "a" * 5000 + '"', "2020-01-01T00:00:00Z"),
        *("[]", "[1]", '["a"]', "{}", "[[[[[]]]]]"),
    ]
)


def used_or_refused(text: bytes) -> None:
    """Read as the programs do; the only error is ours."""
    for read in (
        lambda: config_from_dict(parse_toml(text, "file"), "file"),
        lambda: policy_from_toml(text, "file.toml"),
    ):
        with suppress(ConfigError):
            read()


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """No bytes raise anything else."""
    used_or_refused(data)


@given(st.sampled_from(KEYS), VALUES)
def test_any_value_of_any_key(where: tuple[str, str], value: str) -> None:
    """Each key with values of every TOML type, also ones that no machine holds."""
    used_or_refused(f"[{where[0]}]\n{where[1]} = {value}\n".encode())


@pytest.mark.parametrize("value", ["nan", "inf", "1" + "0" * 400])
@pytest.mark.parametrize("key", ["agent.interval_s", "hub.sacct_every_s", "advisor.stale_s", "agent.retention_days"])
def test_a_number_that_is_none_is_refused(key: str, value: str) -> None:
    """A wait of NaN seconds would be none, one of infinitely many for ever."""
    section, name = key.split(".")
    with pytest.raises(ConfigError, match=rf"\[{section}\] {name}: "):
        config_from_dict(parse_toml(f"[{section}]\n{name} = {value}\n".encode(), "file"), "file")


@pytest.mark.parametrize("depth", [1, 100, 5000, 200_000])
def test_any_depth(depth: int) -> None:
    """Nesting ends in a ConfigError, never in a crash."""
    for text in ("[" * depth, "[" * depth + "]" * depth, "{a=" * depth):
        with pytest.raises(ConfigError):
            config_from_dict(parse_toml(f"x = {text}".encode(), "file"), "file")
