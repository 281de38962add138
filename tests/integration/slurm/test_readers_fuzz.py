"""The spool of slurmd with files and sockets of any name."""

import os
import socket
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.agent.step_daemons import scan_steps


@given(
    st.lists(st.binary(min_size=1, max_size=20).filter(lambda name: b"/" not in name and b"\0" not in name), max_size=5)
)
def test_any_name_in_the_spool_is_a_step_or_nothing(names: list[bytes]) -> None:
    """Files and sockets of any name, those of another node among them."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a socket's path has 107 bytes
        for name in {*names, b"n1_7.0", b"n1_x.0", b"n2_7.0", b"n1_8.4294967291"} - {b".", b".."}:
            path = os.path.join(folder.encode(), name)  # noqa: PTH118 names that are no text
            if len(path) < 100:
                with socket.socket(socket.AF_UNIX) as server:
                    server.bind(path)
        found = scan_steps(Path(folder), "n1")
    assert {(7, 0), (8, 4294967291)} <= {(step.job_id, step.step_id) for step in found}
