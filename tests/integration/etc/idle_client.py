"""The example client of idleness, loaded as a culler's author would: from its file; and a hub with TLS to ask."""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

from tests.integration.hub.rig import Rig, running_hub
from tests.integration.hub.test_idleness import NOW, OPEN, hold, used
from tests.self_signed import self_signed

from gpuwaste.hub.ingest import Ingest
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.ledger.idleness.accounting_backlog import AccountingBacklog
from gpuwaste.net.tokens import TokenChecker
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.clocks import StoppedClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import batch, record

CLIENT: Final = Path(__file__).parents[3] / "etc/cullers/gpuwaste_idle.py"
TOKEN: Final = "culler-token-0123456789"  # noqa: S105 of this test


@cache
def example_client() -> ModuleType:
    """Return the module."""
    spec = importlib.util.spec_from_file_location("gpuwaste_idle", CLIENT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks there for its types
    spec.loader.exec_module(module)
    return module


@contextmanager
def running_culled_hub(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub with TLS on which job 7 idles on gpu1; user culler has a token and reads everything."""
    self_signed(tmp_path / "cert.pem", tmp_path / "key.pem")
    tokens = tmp_path / "tokens"
    tokens.write_text(f"culler {TOKEN}\nalice alice-token-0123456789\n")
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "alice").write_text("alice-token-0123456789")
    for name in ("tokens", "token", "alice"):
        (tmp_path / name).chmod(0o600)
    slurm = FakeSlurm(
        node_list=[Node(f"gpu{n}", address=f"10.0.0.{n}", gpus={"a100": 1}) for n in (1, 2)],
        levels={"culler": "Operator"},
        settings={"MinJobAge": "300 sec"},
    )
    tls = (str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    checkers = {"token": TokenChecker(tokens)}
    with running_hub(tmp_path, slurm, clock=StoppedClock(NOW), tls=tls, checkers=checkers) as rig:  # type: ignore[arg-type] # a dict of them
        rig.hub.get(ClusterFacts).refresh()
        rig.hub.get(AccountingBacklog).want()
        hold(rig, record(7, "alice", **OPEN), record(8, "bob", "proj2", **{**OPEN, "nodes": "gpu2"}))
        yield rig


def report(rig: Rig) -> None:
    """Let the agent of gpu1 send that job 7 idles; the rig's own requests know no TLS."""
    body = batch(used(7), sent_us=NOW * 1_000_000)
    rig.hub.get(Ingest).take(rig.credential(900, "POST", "/v1/hours", body), "/v1/hours", body)
