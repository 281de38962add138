"""The client that a configuration names."""

from pathlib import Path

import pytest

from gpuwaste.core.config import CommonConfig
from gpuwaste.core.errors import ConfigError
from gpuwaste.slurm.choice import slurm_client
from gpuwaste.slurm.commands import CommandClient
from gpuwaste.slurm.rest_client import RestClient


def test_the_commands_unless_slurmrestd_is_named(tmp_path: Path) -> None:
    """Its address, token file, time-out and cluster reach the client; the commands stay behind it."""
    assert isinstance(slurm_client(CommonConfig()), CommandClient)
    token = str(tmp_path / "token")
    common = CommonConfig(
        cluster="gw", slurmrestd_url="unix:/run/s", slurmrestd_token_file=token, slurm_timeout_s=3.0, slurm_conf="/c"
    )
    client = slurm_client(common)
    assert isinstance(client, RestClient)
    assert (client.server.url, client.server.token_file, client.server.timeout_s) == ("unix:/run/s", token, 3.0)
    assert client.cluster_name() == "gw"
    assert isinstance(client.commands, CommandClient)
    assert client.commands.slurm_conf == "/c"


def test_an_address_that_is_none_is_refused() -> None:
    """At once, before anything is asked."""
    with pytest.raises(ConfigError, match="slurmrestd_url"):
        slurm_client(CommonConfig(slurmrestd_url="slurmrestd:6820"))
