"""The client that a configuration names."""

from pathlib import Path

import pytest

from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.site_config import CommonConfig, SlurmClientConfig
from gpuwaste.slurm.clients.client_choice import accounting_client, client_name, slurm_client
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.clients.rest_client import RestClient

REST = CommonConfig(slurmrestd_url="unix:/run/s")


def configured(client: str = "", common: CommonConfig | None = None) -> Config:
    return Config(common=common or CommonConfig(), slurm=SlurmClientConfig(client))


def test_the_commands_unless_slurmrestd_is_named(tmp_path: Path) -> None:
    """Its address, token file, time-out and cluster reach the client; the commands stay behind it."""
    assert isinstance(slurm_client(Config()), CommandClient)
    token = str(tmp_path / "token")
    common = CommonConfig(
        cluster="gw", slurmrestd_url="unix:/run/s", slurmrestd_token_file=token, slurm_timeout_s=3.0, slurm_conf="/c"
    )
    client = slurm_client(configured(common=common))
    assert isinstance(client, RestClient)
    assert (client.server.url, client.server.token_file, client.server.timeout_s) == ("unix:/run/s", token, 3.0)
    assert client.cluster_name() == "gw"
    assert isinstance(client.commands, CommandClient)
    assert (client.commands.slurm_conf, client.commands.timeout_s) == ("/c", 3.0)


def test_a_time_out_of_the_caller_s_own_bounds_each_question() -> None:
    """Of the commands and of slurmrestd."""
    client = slurm_client(configured(common=REST), 1.5)
    assert isinstance(client, RestClient)
    assert isinstance(client.commands, CommandClient)
    assert (client.server.timeout_s, client.commands.timeout_s) == (1.5, 1.5)


@pytest.mark.parametrize(
    ("client", "common", "single", "accounting"),
    [
        ("", CommonConfig(), CommandClient, CommandClient),
        ("", REST, RestClient, CommandClient),
        ("commands", REST, CommandClient, CommandClient),
        ("slurmrestd", REST, RestClient, RestClient),
    ],
)
def test_the_hub_reads_accounting_with_what_is_named(
    client: str, common: CommonConfig, single: type, accounting: type
) -> None:
    """An address alone, as before there was a choice, is for single jobs."""
    config = configured(client, common)
    assert (type(slurm_client(config)), type(accounting_client(config))) == (single, accounting)


@pytest.mark.parametrize(
    ("client", "words"),
    [("slurmdbd", r"\[slurm\] client 'slurmdbd': expected commands"), ("slurmrestd", "slurmrestd_url")],
)
def test_a_client_that_is_none_is_refused(client: str, words: str) -> None:
    """With the words that are possible, or the key that is missing."""
    with pytest.raises(ConfigError, match=words):
        client_name(configured(client))


def test_an_address_that_is_none_is_refused() -> None:
    """At once, before anything is asked."""
    with pytest.raises(ConfigError, match="slurmrestd_url"):
        slurm_client(configured(common=CommonConfig(slurmrestd_url="slurmrestd:6820")))
