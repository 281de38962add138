"""Which client a site's configuration names: Slurm's commands, slurmrestd or pyslurm."""

from typing import Final

from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.slurm.clients.client import HistoryClient
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.clients.pyslurm_client import Pyslurm, PyslurmClient

COMMANDS: Final = "commands"
SLURMRESTD: Final = "slurmrestd"
PYSLURM: Final = "pyslurm"
CLIENTS: Final = (COMMANDS, SLURMRESTD, PYSLURM)


def client_name(config: Config) -> str:
    """Return the name of the client that reads single jobs. Raises ConfigError for an unknown one."""
    name = config.slurm.client
    if name and name not in CLIENTS:
        raise ConfigError(f"[slurm] client {name!r}: expected {', '.join(CLIENTS)}")
    if name == SLURMRESTD and not config.common.slurmrestd_url:
        raise ConfigError("[slurm] client is slurmrestd: set slurmrestd_url in [common] to its address")
    return name or (SLURMRESTD if config.common.slurmrestd_url else COMMANDS)


def accounting_client(config: Config) -> HistoryClient:
    """Return the client with which the hub reads accounting: the commands unless [slurm] client names another.

    Raises ConfigError, and SlurmError where pyslurm cannot be used.
    """
    return slurm_client(config) if config.slurm.client else _commands(config, None)


def slurm_client(config: Config, timeout_s: float | None = None) -> HistoryClient:
    """Return the client for single jobs; each query ends after `timeout_s`, None for the configured timeout.

    Raises ConfigError, and SlurmError where pyslurm cannot be used.
    """
    common, name = config.common, client_name(config)
    commands = _commands(config, timeout_s)
    if name == COMMANDS:
        return commands
    if name == PYSLURM:
        return PyslurmClient(commands, Pyslurm(common.slurm_conf), cluster=common.cluster)
    from gpuwaste.slurm.clients.rest_client import RestClient  # noqa: PLC0415 only for slurmrestd
    from gpuwaste.slurm.clients.rest_http import RestServer  # noqa: PLC0415

    server = RestServer(common.slurmrestd_url, common.slurmrestd_token_file, commands.timeout_s)
    return RestClient(commands, server, cluster=common.cluster)


def _commands(config: Config, timeout_s: float | None) -> CommandClient:
    common = config.common
    return CommandClient(common.slurm_conf, common.slurm_timeout_s if timeout_s is None else timeout_s)
