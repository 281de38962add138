"""Which states of nodes keep jobs away: the tables, and states as scontrol, sinfo and slurm.conf write them."""

import pytest

from gpuwaste.slurm.site.node_states import RETURNS, SILENT, UNUSABLE, USABLE, is_usable


def test_a_state_is_in_one_table() -> None:
    """Each state has one meaning, and the reason for it."""
    tables = (UNUSABLE, SILENT, RETURNS, USABLE)
    names = [name for table in tables for name in table]
    assert len(names) == len(set(names))
    assert all(reason for table in tables for reason in table.values())


@pytest.mark.parametrize("state", [*UNUSABLE, *SILENT])
def test_a_state_that_keeps_jobs_away_does_so_beside_others(state: str) -> None:
    """DRAIN is DRAIN on an idle and on a busy node, in either case, and while the node is powered off."""
    assert not is_usable(state)
    for base in ("IDLE", "MIXED", "ALLOCATED"):
        assert not is_usable(f"{base}+{state}".lower() if state != "*" else f"{base}*")
    assert is_usable(f"IDLE+CLOUD+POWERED_DOWN+{state}") == (state in SILENT)


@pytest.mark.parametrize("state", [*USABLE, *RETURNS])
def test_other_states_keep_no_job_away(state: str) -> None:
    """A reservation, a plan of backfill and a pending reboot are no reason; silence is, unless it is expected."""
    assert is_usable(state)
    assert is_usable(f"MIXED+{state}")
    assert is_usable(f"IDLE+NOT_RESPONDING+{state}") == (state in RETURNS)


@pytest.mark.parametrize(
    ("state", "usable"),
    [
        ("IDLE+CLOUD+POWERED_DOWN", True),
        ("idle~", True),
        ("idle~*", True),
        ("DOWN+CLOUD+POWERED_DOWN", False),
        ("IDLE+PLANNED", True),
        ("MIXED+DRAIN", False),
        ("DOWN*", False),
        ("IDLE*", False),
        ("IDLE+NOT_RESPONDING+REBOOT_ISSUED", True),
        ("IDLE+DYNAMIC_NORM", True),
        ("", True),
        ("odd", True),
        ("IDLE+" * 100_000 + "DOWN", True),
    ],
)
def test_states_as_they_are_printed(state: str, usable: bool) -> None:
    """Of states with several words each counts; a state that nobody knows keeps no job away; a huge one is cut."""
    assert is_usable(state) == usable
