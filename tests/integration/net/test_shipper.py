"""The shipper against a real server."""

import threading
from pathlib import Path

from tests.unit.net.test_shipper import ENVELOPE, EVERY_S, row, until

from gpuwaste.agent.outbox import Outbox
from gpuwaste.core.clock import SystemClock
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.shipper import Shipper
from gpuwaste.net.tokens import TokenChecker, TokenIssuer
from gpuwaste.testing.fake_hub import FakeHub


def test_the_thread_ships_on_wake_to_a_real_server(tmp_path: Path) -> None:
    """Over HTTP, with credentials and signed acknowledgements: wake ships at once, and so does the stop."""
    outbox = Outbox(tmp_path / "outbox.sqlite")
    mine, all_of_them = tmp_path / "mine", tmp_path / "all"
    for path, text in ((mine, "t" * 32), (all_of_them, f"gpu1 {'t' * 32}\n")):
        path.touch(mode=0o600)
        path.write_text(text)
    with FakeHub({"token": TokenChecker(all_of_them)}) as hub:
        client = HubClient(hub.url, TokenIssuer(mine))
        shipper = Shipper(outbox, client.post_hours, ENVELOPE, SystemClock(), every_s=EVERY_S)
        shipper.start()
        outbox.put([row(1)])
        shipper.wake()
        until(lambda: outbox.depth() == 0)
        hub.refuse = lambda _: (503, "starting")
        outbox.put([row(2)])
        shipper.wake()
        until(lambda: shipper.status.failures >= 1)
        hub.refuse = lambda _: None
        shipper.wake()
        until(lambda: outbox.depth() == 0)
        outbox.put([row(3)])
        shipper.stop()
    assert sorted(key[1] for key in hub.rows) == [1, 2, 3]
    assert not [thread for thread in threading.enumerate() if thread.name == "shipper"]
