"""`gpuwaste config check`: errors that the typed reading of the file cannot see, one line each, with what to do.

This file checks values that are wrong on every host; config_site_files.py checks the files that the site writes, and
config_host.py what depends on the host and its services.
"""

import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from gpuwaste.advice.plugin_reader import read_as_plugin
from gpuwaste.cli.check import Role
from gpuwaste.cli.config_host import Attempt, refusals, tried
from gpuwaste.cli.config_site_files import campaigns, files_of_values, outlets, policies
from gpuwaste.core.config import Config, describe_config
from gpuwaste.core.config_files import CREDENTIALS, ConfigLayer, config_files, place_of
from gpuwaste.core.errors import ConfigError

_PATHS: Final = (
    "_dir", "_file", "_ca", "_cert", "tls_key", "socket", "slurm_conf", "kill_switch", "mig_minors",
)  # fmt: skip
_SERVED: Final = ("agent", "hub", "advisor", "actor")  # sections with listen, tls_cert, tls_key
_KEY: Final = re.compile(r"\[(\w+)\] (\w+)")


def problems(path: Path, config: Config, roles: Collection[Role] = (), faults: Iterable[ConfigError] = ()) -> list[str]:
    """Return what is wrong with a configuration that can be read; `path` is the file, which may be absent.

    `roles` are those of this host: its services' files, users and addresses are tried as well. A key of `faults`, those
    of the typed reading, has its default here and is not reported again. Nor is an error of a file that another line
    names with the file's key in front.
    """
    said = {key[0] for fault in faults if (key := _KEY.search(str(fault)))}
    found = [problem for check in CHECKS for problem in check(path, config)]
    found += [*tried(_VALUES, config), *refusals(config, roles)]
    fresh = [words for words in dict.fromkeys(found) if not ((key := _KEY.match(words)) and key[0] in said)]
    named = [words for words in fresh if not any(other.endswith(f" {words}") for other in fresh)]
    return [words for words in named if CREDENTIALS not in words]  # only the service itself has those files


def placed(path: Path, layers: Sequence[ConfigLayer], problem: str) -> str:
    """Return a problem's line with the file and the line that set its value; `path` where no file sets it."""
    if found := _KEY.match(problem):
        return f"{place_of(layers, *found.groups()) or path}: {problem}"
    return problem if problem.startswith(f"{path.parent}/") else f"{path}: {problem}"


def plugin_lines(path: Path, config: Config) -> Iterator[str]:
    """Compare what the submit plugins' line reader reads with the values of the file."""
    try:
        reading = read_as_plugin(path)
    except (OSError, ConfigError):
        return  # absent: the defaults; unreadable files were reported when the configuration was loaded
    for file, number, key, why in reading.odd:
        where = f"line {number}" if file == path else f"{file} line {number}"
        yield f"{where}: {f'[plugin] {key}: ' if key else ''}{why}: the submit plugins use the default"
    odd = {key for _, _, key, _ in reading.odd}
    for key, taken in reading.values.items():
        section = "advisor" if key == "socket" else "plugin"
        meant = getattr(getattr(config, section), key)
        if taken != meant and key not in odd:
            yield (
                f"[{section}] {key}: the submit plugins take {taken!r}, not {meant!r}: "
                f"write a line `{key} = {'INTEGER' if isinstance(meant, int) else chr(34) + 'TEXT' + chr(34)}` "
                f"below a line `[{section}]`"
            )


def listening(_: Path, config: Config) -> Iterator[str]:
    """Check the addresses, and look for two services at one port."""
    from gpuwaste.net.addresses import ListenAddress, parse_listen

    taken: dict[int, tuple[str, ListenAddress]] = {}
    for section in _SERVED:
        listen = getattr(config, section).listen
        if not listen:
            continue
        try:
            address = parse_listen(listen, section)
        except ConfigError as error:
            yield str(error)
            continue
        if not address.port:
            yield f"[{section}] listen {listen!r}: port 0 is a different port at each start: set a port"
        other = taken.get(address.port)
        if other and (address.host == other[1].host or address.every or other[1].every):
            yield f"[{section}] listen {listen}: port {address.port} is [{other[0]}]'s as well: give each its own"
        taken.setdefault(address.port, (section, address))
    if not config.hub.listen and not config.hub.socket:
        yield "[hub] listen and socket are both empty: set one of them"


def certificates(_: Path, config: Config) -> Iterator[str]:
    """Look for half a pair, and for a certificate without the port that uses it."""
    for section in _SERVED:
        own = getattr(config, section)
        for have, lack in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
            if getattr(own, have) and not getattr(own, lack):
                yield f"[{section}] {have} is set and {lack} is not: set both or none"
    from gpuwaste.net.addresses import parse_endpoints

    try:
        clear = any(endpoint.clear for endpoint in parse_endpoints(config.common.hub_url))
    except ConfigError:
        return  # reported where the daemons' starts are checked
    if config.common.token_file and clear:
        yield "[common] token_file with http://: the token would be sent in clear text: set https:// in hub_url"


def paths(_: Path, config: Config) -> Iterator[str]:
    """Look for paths that depend on the directory in which a daemon was started."""
    for section, key, kind, _default, _text in describe_config():
        value = getattr(getattr(config, section), key)
        if kind == "str" and value and key.endswith(_PATHS) and not value.startswith(("/", CREDENTIALS)):
            yield f"[{section}] {key} {value!r}: not an absolute path: begin it with /"


def thresholds(_: Path, config: Config) -> Iterator[str]:
    """Look for values that are valid on their own and not together."""
    hub, advisor, plugin, agent = config.hub, config.advisor, config.plugin, config.agent
    pairs = (
        (hub.low_below_pct > hub.high_above_pct, "[hub] low_below_pct is above high_above_pct: swap them"),
        (hub.min_coverage > 1, "[hub] min_coverage is a share: set it to 0 to 1"),
        (hub.memory_resident_ratio > 1, "[hub] memory_resident_ratio is a share: set it to 0 to 1"),
        (not agent.interval_s, "[agent] interval_s is 0: set the seconds between two samples"),
        (not agent.collectors, "[agent] collectors is empty: nothing would be measured: name nvml and host"),
        (
            agent.ship_every_s < agent.interval_s,
            "[agent] ship_every_s is less than interval_s: there would be no new data to send",
        ),
        (
            plugin.breaker_max_ms < plugin.breaker_first_ms,
            "[plugin] breaker_max_ms is less than breaker_first_ms: the submit plugins use the greater value for both",
        ),
        (
            plugin.stale_s < advisor.stale_s,
            "[plugin] stale_s is less than [advisor] stale_s: the plugins would drop advice that is still valid",
        ),
    )
    yield from (words for wrong, words in pairs if wrong)


def readable(path: Path, _: Config) -> Iterator[str]:
    """Look for files that only some may read: daemons, submit plugins and each user's commands read all of them."""
    try:
        files = config_files(path)
    except ConfigError:
        return  # reported when the configuration was loaded
    for file in files:
        try:
            mode = file.stat().st_mode
        except OSError:
            continue  # absent, or reported when it was read
        if not mode & stat.S_IROTH:
            yield f"{file}: mode {stat.S_IMODE(mode):o}: other users and daemons cannot read it: chmod 644 {file}"


def _hub_url(config: Config) -> None:
    from gpuwaste.net.addresses import parse_endpoints

    parse_endpoints(config.common.hub_url)


def _language_model(config: Config) -> None:
    from gpuwaste.views.language_model import LanguageModel

    if config.analytics.model_url:
        LanguageModel(config.analytics)


def _munge_socket(config: Config) -> None:
    from gpuwaste.core.unix_socket import require_room

    require_room("[common] munge_socket", config.common.munge_socket)


def _slurm_client(config: Config) -> None:
    from gpuwaste.slurm.clients.client_choice import PYSLURM, client_name, slurm_client

    if client_name(config) != PYSLURM:  # the doctor checks whether pyslurm can be used here
        slurm_client(config)


def _store(config: Config) -> None:
    from gpuwaste.hub.store_choice import lake_location

    lake_location(config.hub)


def _notices(config: Config) -> None:
    from gpuwaste.act.notify.account_sponsors import AccountCoordinators, SponsorBook
    from gpuwaste.act.notify.mail_addresses import AddressBook
    from gpuwaste.act.notify.notify_settings import NotifySettings

    NotifySettings.from_config(config.notify)
    AddressBook(config.notify.address)
    file = Path(config.notify.sponsor_file)  # whether it exists here is for the host's own check
    sponsors = file if config.notify.sponsor_file and file.exists() else None
    SponsorBook(AccountCoordinators().coordinators, sponsors, config.notify.sponsor_command)


def _rescoring(config: Config) -> None:
    from gpuwaste.advice.rescore_store import RescoreSettings

    RescoreSettings.from_config(config)


def _renewal(config: Config) -> None:
    from gpuwaste.advice.renewal.trial_types import checked_models

    checked_models(config.models)


def _collectors(config: Config) -> None:
    from gpuwaste.agent.collectors import check_names

    check_names(config.agent.collectors)


def _dcgm(config: Config) -> None:
    from gpuwaste.agent.collectors.dcgm import DcgmCollector, check_url

    if "dcgm" in config.agent.collectors:
        check_url(config.agent.dcgm_url)
        DcgmCollector(config.agent.dcgm_url)


def _xids(config: Config) -> None:
    from gpuwaste.agent.agent_health import health_xids

    health_xids(config.agent.health_xids)


def _curves(config: Config) -> None:
    from gpuwaste.ledger.curves.agent_curves import scheme_of
    from gpuwaste.ledger.curves.prometheus_curves import endpoint_of

    if config.hub.agent_url:
        scheme_of(config.hub.agent_url)
    if config.hub.prometheus_url:
        endpoint_of(config.hub.prometheus_url)


def _actor(config: Config) -> None:
    from gpuwaste.actor.actor_settings import ActorSettings

    ActorSettings.from_config(config)


CHECKS: Final[tuple[Callable[[Path, Config], Iterator[str]], ...]] = (
    plugin_lines, listening, certificates, paths, policies, outlets, campaigns, files_of_values, thresholds, readable,
)  # fmt: skip
_VALUES: Final[tuple[Attempt, ...]] = (
    _hub_url, _language_model, _munge_socket, _slurm_client, _store, _notices, _rescoring, _renewal, _collectors, _dcgm,
    _xids, _curves, _actor,
)  # fmt: skip
