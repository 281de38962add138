"""Three hosts of the field: what happens to frames on their way, and the files of the hosts."""

from pathlib import Path

import pytest
from tools.field import page, site
from tools.field.net import cluster, roles
from tools.field.net.checks import ORDER, checks_named
from tools.field.net.frames import MOST, Rules, Way
from tools.field.net.hosts import BACKUP, CONTROLLER, HOSTS, NODES

_MACS = {bytes([2, 0, 0, 0, 0, number]): name for number, name in enumerate(HOSTS, 1)}
_TO_SECOND = bytes([2, 0, 0, 0, 0, 2]) + bytes([2, 0, 0, 0, 0, 1]) + b"data"
_TO_ALL = b"\xff" * 6 + bytes([2, 0, 0, 0, 0, 1]) + b"data"
_TO_NOBODY = bytes([2, 0, 0, 0, 0, 0xFE]) + bytes([2, 0, 0, 0, 0, 1]) + b"data"


def test_frames_go_to_their_port_at_once() -> None:
    """Without rules a frame arrives at the port of its address, one for all at all others, one for nobody nowhere."""
    way = Way(dict(_MACS))
    way.enter(_TO_SECOND, CONTROLLER, 10.0)
    way.enter(_TO_ALL, CONTROLLER, 10.0)
    way.enter(_TO_NOBODY, CONTROLLER, 10.0)
    way.enter(b"", CONTROLLER, 10.0)
    assert way.due(10.0) == [(NODES[0], _TO_SECOND), (NODES[0], _TO_ALL), (NODES[1], _TO_ALL)]
    assert way.counts == {"sent": 3, "lost": 0, "cut": 0, "elsewhere": 2}
    assert way.rest_s(10.0) is None


def test_delayed_frames_arrive_in_their_order() -> None:
    """A delay holds every frame for its time, and none overtakes another; what is on its way keeps its time."""
    way = Way(dict(_MACS), rules=Rules(delay_s=0.2))
    way.enter(_TO_SECOND + b"1", CONTROLLER, 1.0)
    way.enter(_TO_SECOND + b"2", CONTROLLER, 1.0)
    assert way.rest_s(1.05) == pytest.approx(0.15)
    assert way.due(1.19) == []
    assert [frame[-1:] for _, frame in way.due(1.2)] == [b"1", b"2"]


def test_losses_are_the_share_and_the_same_for_a_seed() -> None:
    """Of many frames the share is lost, and the same ones for the same seed."""

    def passed(seed: int) -> list[int]:
        way = Way(dict(_MACS), seed, Rules(loss=0.05))
        for number in range(4000):
            way.enter(_TO_SECOND + number.to_bytes(2, "big"), CONTROLLER, 0.0)
        return [int.from_bytes(frame[-2:], "big") for _, frame in way.due(0.0)]

    assert 0.04 < 1 - len(passed(7)) / 4000 < 0.06
    assert passed(7) == passed(7)
    assert passed(7) != passed(8)


def test_cut_pair_is_cut_in_both_directions_and_no_other() -> None:
    """Between the two ends of a cut nothing passes; both still reach the third."""
    way = Way(dict(_MACS), rules=Rules(cut=[frozenset((CONTROLLER, NODES[0]))]))
    way.enter(_TO_ALL, CONTROLLER, 0.0)
    way.enter(_TO_ALL, NODES[0], 0.0)
    assert [port for port, _ in way.due(0.0)] == [NODES[1], NODES[1]]
    assert way.counts["cut"] == 2


def test_frames_on_their_way_are_bounded() -> None:
    """A flood on a slow network loses frames instead of taking memory without end."""
    way = Way(dict(_MACS), rules=Rules(delay_s=1.0))
    for _ in range(MOST + 5):
        way.enter(_TO_SECOND, CONTROLLER, 0.0)
    assert way.counts["lost"] == 5
    assert len(way.due(1.0)) == MOST


def test_slurm_conf_of_three_hosts() -> None:
    """The controller comes before its backup, each key that must be once is once, and partitions follow the nodes."""
    lines = cluster.slurm_conf(
        site.SLURM_CONF % {"cpus": 2, "gather": "linux", "lost_s": 60, "message_s": 10}
    ).splitlines()
    assert [line for line in lines if line.startswith("SlurmctldHost=")] == [
        f"SlurmctldHost={CONTROLLER}",
        f"SlurmctldHost={BACKUP}",
    ]
    keys = [line.partition("=")[0] for line in lines]
    assert all(keys.count(key) == 1 for key in set(keys) - {"SlurmctldHost"})
    (node,) = (line for line in lines if line.startswith("NodeName="))
    assert node.startswith("NodeName=gpu1,gpu2 CPUs=2 ")
    assert lines[-1].startswith("PartitionName=")


def test_roles_name_parts_of_the_page() -> None:
    """The page has the file that is copied to the nodes, and installs before it writes into slurm.conf."""
    text = page.PAGE.read_text(encoding="utf-8")
    assert roles.COPIED in {step.file for step in page.steps(text, "Administration host")}
    for part in ("GPU nodes", "Hosts of slurmctld"):
        steps = page.steps(text, part)
        assert [step.file for step in steps if step.file] == [cluster.CONFIGURATION]
        assert "apt-get install" in steps[0].script


def test_checks_in_their_order() -> None:
    """Every file of a check is in the order; logs and silence, which look at all that was done, come last."""
    files = {path.stem for path in (Path(cluster.__file__).parent / "checks").glob("[a-z]*.py")}
    assert files == set(ORDER)
    assert len({check.name for check in checks_named()}) == len(ORDER)
    assert ORDER[-2:] == ("logs", "silence")


def test_page_describes_every_check() -> None:
    """The page's section on three hosts has a row for each check."""
    text = (page.PAGE.parent / "field.md").read_text(encoding="utf-8")
    rows = page.section(text, "Three hosts and their network")
    assert [name for name in ORDER if f"`{name}`" not in rows] == []
