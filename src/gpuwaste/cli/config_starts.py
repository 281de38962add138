"""`gpuwaste config check`, second part: what a daemon would end with at its start, tried without starting one.

Values are tried on every host, with the daemons' own code where their package is installed; what depends on the host,
on the hosts whose services need it.
"""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Role
from gpuwaste.cli.config_places import faults, hidden
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.unix_socket import require_room

Attempt = Callable[[Config], object]


def refusals(config: Config, roles: Collection[Role]) -> Iterator[str]:
    """Yield the line of each start that would fail on a host of these roles."""
    attempts = [*_VALUES, *(attempt for role, own in _STARTS.items() if role in roles for attempt in own)]
    for attempt in attempts:
        try:
            attempt(config)
        except ModuleNotFoundError:
            continue  # the daemon is not installed here
        except GpuwasteError as error:
            if not hidden(error.__cause__, config):
                yield _placed(str(error))
    yield from faults(config, roles)


def _hub_url(config: Config) -> None:
    from gpuwaste.net.http import parse_endpoints

    parse_endpoints(config.common.hub_url)


def _munge_socket(config: Config) -> None:
    require_room("[common] munge_socket", config.common.munge_socket)


def _control_socket(config: Config) -> None:
    from gpuwaste.agent.control import socket_of

    socket_of(Path(config.common.run_dir))


def _slurm_client(config: Config) -> None:
    from gpuwaste.slurm.clients.choice import PYSLURM, client_name, slurm_client

    if client_name(config) != PYSLURM:  # whether pyslurm can be used here is for the doctor
        slurm_client(config)


def _slurmrestd_token(config: Config) -> None:
    from gpuwaste.slurm.clients.rest_token import read_token

    if config.common.slurmrestd_token_file:
        read_token(Path(config.common.slurmrestd_token_file))


def _store(config: Config) -> None:
    from gpuwaste.hub.store_choice import lake_location

    lake_location(config.hub)


def _notices(config: Config) -> None:
    from gpuwaste.act.notify.addresses import AddressBook
    from gpuwaste.act.notify.notify_settings import NotifySettings

    NotifySettings.from_config(config.notify)
    AddressBook(config.notify.address)


def _rescoring(config: Config) -> None:
    from gpuwaste.advice.rescoring.rescore_settings import RescoreSettings

    RescoreSettings.from_config(config)


def _renewal(config: Config) -> None:
    from gpuwaste.advice.renewal.renewal_settings import RenewalSettings

    RenewalSettings.from_config(config.models)


def _collectors(config: Config) -> None:
    from gpuwaste.agent.collectors import check_names

    check_names(config.agent.collectors)


def _dcgm(config: Config) -> None:
    from gpuwaste.agent.collectors.dcgm import check_url

    if "dcgm" in config.agent.collectors:
        check_url(config.agent.dcgm_url, any_host=config.agent.dcgm_any_host)


def _xids(config: Config) -> None:
    from gpuwaste.agent.health import health_xids

    health_xids(config.agent.health_xids)


def _actor(config: Config) -> None:
    from gpuwaste.actor.actor_settings import ActorSettings

    ActorSettings.from_config(config)


def _daemon_client(config: Config) -> None:
    from gpuwaste.net.daemon_client import daemon_client

    daemon_client(config)


def _slurm_user(config: Config) -> None:
    from gpuwaste.advisor.slurm_facts import slurm_uid

    if config.advisor.slurm_user:
        slurm_uid(config.advisor.slurm_user)


def _callers(config: Config) -> None:
    from gpuwaste.hub.daemon import agent_issuer, make_checkers
    from gpuwaste.hub.ports import agent_uid

    checkers = make_checkers(config)
    agent_uid(config.hub.agent_user, checkers)
    agent_issuer(config, checkers)


def _curves(config: Config) -> None:
    from gpuwaste.ledger.curves.agents import scheme_of
    from gpuwaste.ledger.curves.prometheus import endpoint_of

    if config.hub.agent_url:
        scheme_of(config.hub.agent_url)
    if config.hub.prometheus_url:
        endpoint_of(config.hub.prometheus_url)


def _language_model(config: Config) -> None:
    from gpuwaste.views.language_model import LanguageModel

    if config.analytics.model_url:
        LanguageModel(config.analytics)


def _pages(config: Config) -> None:
    from prometheus_client import CollectorRegistry

    from gpuwaste.core.clock import SystemClock
    from gpuwaste.core.scope import Scope
    from gpuwaste.hub.sign_in.visitors import make_visitors

    make_visitors(config, Scope, SystemClock(), CollectorRegistry())


def _own_client(config: Config) -> None:
    """Try what the commands need of files; munge has a line of the doctor."""
    from gpuwaste.net.hub_client import HubClient
    from gpuwaste.net.tokens import TokenIssuer

    common = config.common
    HubClient(common.hub_url, TokenIssuer(Path(common.token_file)) if common.token_file else None, ca=common.hub_ca)


def _metrics_of(section: str) -> Attempt:
    def attempt(config: Config) -> None:
        from gpuwaste.net.exporter import server_tls, server_token

        own = getattr(config, section)
        if own.listen and own.tls_cert:
            server_tls(own.tls_cert, own.tls_key, section)
        if own.listen and section == "agent" and own.metrics_token_file:
            server_token(own.metrics_token_file, section)

    return attempt


_VALUES: Final[tuple[Attempt, ...]] = (
    _hub_url,
    _language_model,
    _munge_socket,
    _slurm_client,
    _store,
    _notices,
    _rescoring,
    _renewal,
    _collectors,
    _dcgm,
    _xids,
    _curves,
    _actor,
)
_STARTS: Final[dict[Role, tuple[Attempt, ...]]] = {
    Role.AGENT: (_control_socket, _daemon_client, _metrics_of("agent")),
    Role.HUB: (_callers, _pages, _metrics_of("hub"), _slurmrestd_token),
    Role.ADVISOR: (_daemon_client, _slurm_user, _metrics_of("advisor")),
    Role.LOGIN: (_own_client,),
}


def _placed(words: str) -> str:
    """Return an error with its section in front, where it names a key of [common] alone."""
    return f"[common] {words}" if words.startswith(("hub_url", "hub_ca", "slurmrestd_url")) else words
