"""`listen` is read in one place: what every service, check and page makes of it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

import gpuwaste.net
from gpuwaste.cli.config_check import listening
from gpuwaste.core.agent_config import AgentConfig
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.hub_config import HubConfig
from gpuwaste.hub.server import open_tcp
from gpuwaste.hub.sign_in.origins import Origins
from gpuwaste.net.addresses import ListenAddress, parse_listen
from gpuwaste.net.metrics_server import MetricsServer


@pytest.mark.parametrize(
    ("text", "host", "port", "every"),
    [
        ("127.0.0.1:9460", "127.0.0.1", 9460, False),
        ("node1:0", "node1", 0, False),
        ("[::1]:9460", "::1", 9460, False),
        ("0.0.0.0:9460", "0.0.0.0", 9460, True),  # noqa: S104 read, not bound to
        ("[::]:65535", "::", 65535, True),
    ],
)
def test_host_and_port(text: str, host: str, port: int, every: bool) -> None:
    """IPv6 is in brackets; 0.0.0.0 and [::] are every address."""
    found = parse_listen(text, "hub")
    assert (found, found.every) == (ListenAddress(host, port), every)


@pytest.mark.parametrize("text", ["", "9460", ":9460", "[]:9460", "h:", "h:x", "h:65536", "h:²", "h:" + "9" * 5000])
def test_a_port_alone_and_other_texts_are_no_address(text: str) -> None:
    """They are one short line that names the section and what is expected."""
    with pytest.raises(ConfigError, match=r"^\[hub\] listen .*: expected ADDRESS:PORT") as raised:
        parse_listen(text, "hub")
    assert len(str(raised.value)) < 500


def _checked(listen: str) -> None:
    for line in listening(Path("/nonexistent"), Config(agent=AgentConfig(listen=listen), hub=HubConfig())):
        raise ConfigError(line)


READERS: tuple[Callable[[str], object], ...] = (
    lambda listen: MetricsServer(listen, CollectorRegistry(), section="agent"),
    open_tcp,
    _checked,
    lambda listen: Origins("", listen, tls=True),
)


@pytest.mark.parametrize("reader", READERS)
def test_a_port_alone_is_refused_by_every_reader(reader: Callable[[str], object]) -> None:
    """`:9460` is not every interface for one and an error for another: it is refused, with the text for every one."""
    with pytest.raises(ConfigError, match=r"listen ':9460': expected ADDRESS:PORT; 0\.0\.0\.0:9460 listens on every"):
        reader(":9460")


def test_no_other_module_cuts_an_address() -> None:
    """What reads `listen` asks parse_listen: nothing else cuts it at its colon."""
    root = Path(next(iter(gpuwaste.net.__path__))).parent
    cut = re.compile(r"listen\w*\.(?:r?partition|r?split)\(")
    assert [path.name for path in root.rglob("*.py") if cut.search(path.read_text())] == []
