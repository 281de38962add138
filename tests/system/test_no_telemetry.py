"""What "there is no telemetry" on docs/explanation/privacy.md rests on: a site on a network that records everything."""

import ipaddress
import json
import os
import subprocess
import sys
from typing import Any, Final

import pytest
from tests.system import quiet_scene

from gpuwaste.testing import cluster_host, own_host
from gpuwaste.testing.patience import patient

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]  # a whole site, and every command once
NOTHING_FOUND: Final = {"rules actions": 3, "policy replay": 3}
"""Commands that have nothing to print here; all others end with 0."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the scene on a host of its own."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    if not own_host.available():
        pytest.skip("this host gives no namespaces")
    file = tmp_path_factory.mktemp("quiet") / "seen.json"
    argv = [*own_host.command().split(), "-m", quiet_scene.__name__, str(file)]
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        timeout=patient(800),
        check=False,
        cwd=quiet_scene.ROOT,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def test_the_recorders_see_what_onnx_runtime_does_by_itself(seen: dict[str, Any]) -> None:
    """A program that imports it as it comes asks for a collector and connects there: silence below means silence."""
    assert any(sys.executable in program for _, program in seen["control_questions"])
    assert _outside(seen["control_packets"])


def test_daemons_and_commands_work_while_they_are_watched(seen: dict[str, Any]) -> None:
    """All four daemons run to the end, longer than the control took; a job has advice, and each command its answer."""
    codes = {name: code for name, (code, _) in seen["commands"].items()}
    expected = {name: NOTHING_FOUND.get(name, 0) for name in codes}
    assert codes == expected, {name: text for name, (code, text) in seen["commands"].items() if code != expected[name]}
    assert len(codes) > 30
    assert ";gw=" in seen["advice"]
    assert seen["watched_s"] >= 2 * seen["control_s"]


def test_nobody_asks_for_a_name(seen: dict[str, Any]) -> None:
    """No daemon and no command asks the name server anything: all addresses of this site are numbers."""
    assert seen["questions"] == []


def test_nothing_is_sent_but_to_where_it_is_configured(seen: dict[str, Any]) -> None:
    """Connections are opened to the site's own ports alone, and not a packet of any kind goes elsewhere."""
    assert seen["lost"] == 0
    configured = {("tcp", address, port) for address, port in seen["configured"]}
    found = {(protocol, address, port) for protocol, address, port, _ in seen["packets"]}
    assert found <= configured, found - configured
    assert len(found) >= 8, "hub, agents, advisor, slurmctld, slurmdbd, slurmd"


def _outside(packets: list[tuple[str, str, int, int]]) -> list[str]:
    return [address for _, address, _, _ in packets if not ipaddress.ip_address(address).is_loopback]
