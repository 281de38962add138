"""Which client a site's configuration names."""

from gpuwaste.core.config import CommonConfig
from gpuwaste.slurm.client import HistoryClient
from gpuwaste.slurm.commands import CommandClient
from gpuwaste.slurm.rest_client import RestClient
from gpuwaste.slurm.rest_http import RestServer


def slurm_client(common: CommonConfig) -> HistoryClient:
    """Return Slurm's commands, or slurmrestd before them where `slurmrestd_url` is set. Raises ConfigError.

    For reading history and single requests; agents and hub, which need the whole site, keep the commands.
    """
    commands = CommandClient(common.slurm_conf, common.slurm_timeout_s)
    if not common.slurmrestd_url:
        return commands
    server = RestServer(common.slurmrestd_url, common.slurmrestd_token_file, common.slurm_timeout_s)
    return RestClient(commands, server, common.cluster)
