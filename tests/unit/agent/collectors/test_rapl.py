"""RAPL's counters from a powercap tree in files, as the kernel lays it out: wraps, vanished domains, bad content."""

import os
from pathlib import Path

import pytest

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors.rapl import RaplCollector
from gpuwaste.testing.clocks import FakeClock

RANGE_UJ = 262_143_328_850
"""Of an Intel Xeon: 262 kJ."""
_NOBODY = 65534


class Tree:
    """A node with two packages, their parts, the board and the second way to the first package."""

    def __init__(self, root: Path, clock: FakeClock) -> None:
        self.root = root
        self.clock = clock
        self.powercap = root / "class" / "powercap"
        self.online = root / "devices" / "system" / "cpu" / "online"
        self.online.parent.mkdir(parents=True)
        self.online.write_text("0-63\n")
        self.domain("intel-rapl:0", "package-0")
        self.domain("intel-rapl:1", "package-1")
        self.domain("intel-rapl:0:0", "core")
        self.domain("intel-rapl:2", "psys")
        self.domain("intel-rapl-mmio:0", "package-0")
        (self.powercap / "intel-rapl").mkdir()
        self.collector = RaplCollector(root, clock)

    def domain(self, folder: str, name: str, energy_uj: int = 0) -> None:
        path = self.powercap / folder
        path.mkdir(parents=True)
        (path / "name").write_text(f"{name}\n")
        (path / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
        self.set(folder, energy_uj)

    def set(self, folder: str, energy_uj: int | str) -> None:
        (self.powercap / folder / "energy_uj").write_text(f"{energy_uj}\n")

    def after(self, seconds: float, first: int, second: int) -> tuple[float, int]:
        """Return joules and generation after a while, with these counters."""
        self.clock.advance(seconds)
        self.set("intel-rapl:0", first)
        self.set("intel-rapl:1", second)
        found = self.collector.read()
        return found.energy_j, found.generation


@pytest.fixture
def tree(tmp_path: Path, clock: FakeClock) -> Tree:
    return Tree(tmp_path, clock)


def test_packages_are_added_up_and_nothing_else(tree: Tree) -> None:
    """Two packages drew 1000 J and 500 J; their cores, the board and the same package by MMIO do not count."""
    assert tree.after(0, 5, 7) == (0, 1)
    for other in ("intel-rapl:0:0", "intel-rapl:2", "intel-rapl-mmio:0"):
        tree.set(other, 900_000_000)
    assert tree.after(10, 1_000_000_005, 500_000_007) == (1500, 1)
    assert tree.collector.read().cpus == 64


def test_a_counter_that_begins_again_is_bridged(tree: Tree) -> None:
    """From 100 J below the range to 50 J above 0 are 150 J; the other package drew 1 J."""
    tree.after(0, RANGE_UJ - 100_000_000 + 1, 0)
    assert tree.after(10, 50_000_000, 1_000_000) == (151, 1)


@pytest.mark.parametrize("seconds", [270.0, 1e6])
def test_a_wait_that_may_hide_a_second_wrap_is_not_measured(tree: Tree, seconds: float) -> None:
    """After 262 s at 1000 W the counter may have begun again twice: a new generation, which counts on from there."""
    tree.after(0, 0, 0)
    assert tree.after(seconds, 1_000_000, 1) == (0, 2)
    assert tree.after(10, 3_000_000, 1_000_001) == (3, 2)


def test_a_leap_beyond_any_package_is_not_believed(tree: Tree) -> None:
    """A counter that was reset looks like 262 kJ in 10 s: no measurement of that interval."""
    tree.after(0, 50_000_000_000, 0)
    assert tree.after(10, 0, 1) == (0, 2)


def test_a_counter_that_does_not_count_is_refused_until_it_does(tree: Tree) -> None:
    """One package's counter stays the same while the other counts: no energy of 0; later intervals are measured."""
    tree.after(0, 0, 5)
    with pytest.raises(CollectorError, match=r"intel-rapl:1/energy_uj: does not count: remove rapl"):
        tree.after(10, 1_000_000, 5)
    assert tree.after(10, 2_000_000, 1_000_005) == (2, 2)


def test_a_domain_that_vanishes_or_appears_begins_anew(tree: Tree) -> None:
    """What a package drew that is not there any more is not known; the others go on from then."""
    tree.after(0, 0, 0)
    (tree.powercap / "intel-rapl:1" / "name").write_text("psys\n")
    assert tree.after(10, 10_000_000, 0) == (0, 2)
    assert tree.after(10, 30_000_000, 0) == (20, 2)
    tree.domain("intel-rapl:7", "package-1-die-1")
    assert tree.after(10, 40_000_000, 0) == (0, 3)


@pytest.mark.parametrize("text", ["", "-1", "12 34", "1e9", "\x00\xff", "9" * 5000, "<html>"])
@pytest.mark.parametrize("name", ["energy_uj", "max_energy_range_uj"])
def test_what_is_no_counter_is_refused_with_its_path(tree: Tree, name: str, text: str) -> None:
    """Whatever a file holds, there is one line that names it, and no number is made of it."""
    (tree.powercap / "intel-rapl:1" / name).write_text(text)
    with pytest.raises(CollectorError, match=rf"intel-rapl:1/{name}: .* is not a number of microjoules") as refused:
        tree.collector.read()
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("text", ["", "all", "3-1", "0-99999999", "-5", "0,,1"])
def test_a_bad_list_of_cpus_is_refused(tree: Tree, text: str) -> None:
    """Without the number of CPUs nobody knows which part a job used."""
    tree.online.write_text(text)
    with pytest.raises(CollectorError, match="is not a list of CPUs"):
        tree.collector.read()


def test_cpus_that_are_offline_do_not_count(tree: Tree) -> None:
    """A list with holes is counted."""
    tree.online.write_text("0,2-4,63\n")
    assert tree.collector.read().cpus == 5


def test_a_pipe_and_a_missing_file_are_not_waited_for(tree: Tree) -> None:
    """A file that never answers, or that went between two looks, is one line."""
    path = tree.powercap / "intel-rapl:0" / "energy_uj"
    path.unlink()
    with pytest.raises(CollectorError, match="energy_uj: No such file"):
        tree.collector.read()
    os.mkfifo(path)
    with pytest.raises(CollectorError, match="energy_uj"):
        tree.collector.read()


def test_root_s_counter_is_refused_with_what_to_do(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel leaves it, only root reads it: the line says what a site has to do."""
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)  # folders above it may be root's
    tree = Tree(Path(), clock)
    (tree.powercap / "intel-rapl:0" / "energy_uj").chmod(0)
    before = os.geteuid()
    if not before:
        os.seteuid(_NOBODY)
    try:
        with pytest.raises(CollectorError, match=r"Permission denied: let the agent's group read it \(docs/"):
            tree.collector.read()
    finally:
        os.seteuid(before)


def test_a_kernel_without_powercap_or_packages_is_said(tmp_path: Path, clock: FakeClock) -> None:
    """No tree: is the module loaded; a tree without a package, as in a virtual machine: remove the collector."""
    collector = RaplCollector(tmp_path, clock)
    with pytest.raises(CollectorError, match="has this kernel intel_rapl"):
        collector.read()
    (tmp_path / "class" / "powercap" / "dtpm").mkdir(parents=True)
    with pytest.raises(CollectorError, match="no CPU package: remove rapl"):
        collector.read()
