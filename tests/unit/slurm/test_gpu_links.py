"""Links between GPUs: the table, and what a site writes over it."""

import pytest

from gpuwaste.core.errors import ConfigError
from gpuwaste.slurm.gpu_links import SiteLinks, data_sheet_links, link_kinds, link_sources, site_links
from gpuwaste.slurm.gpu_types import find


def test_every_number_has_a_source() -> None:
    """Peak, bus and slow bandwidth of each link name a source of the table, and are in this order."""
    known = link_sources()
    for each in link_kinds():
        assert set(each.sources) == {"peak", "bus", "slow"}, each.name
        assert set(each.sources.values()) <= set(known), each.name
        assert each.slow_gb_s < each.bus_gb_s <= each.peak_gb_s, each.name


def test_types_and_links_of_the_table_exist() -> None:
    """A type of the table of links is one of GPU types, and its link is one of a node for any number of GPUs."""
    kinds = {each.name: each for each in link_kinds()}
    for name, link in data_sheet_links().items():
        assert find(name) is not None, name
        assert not kinds[link].network, name
        assert kinds[link].most > 2, name


def test_a_ring_moves_nearly_twice_the_bytes() -> None:
    """4 GPUs send 2 x 3/4 of 2.35 GB over 235 GB/s: 15 ms, and 6 steps of latency."""
    link = SiteLinks().of("a100-40gb", 4)
    assert link is not None
    assert link.seconds(2.35e9, 4, link.bus_b_s) == pytest.approx(0.015 + 6 * 3.4e-6)
    assert link.seconds(2.35e9, 1, link.bus_b_s) == 0


def test_the_site_s_words_go_first() -> None:
    """A name of two types is both; between nodes adapters add up; a number is the site's own bus bandwidth."""
    found = site_links(["a100=pcie4", "l4=5.5", "node=hdr*2"])
    assert found.between is not None
    assert found.between.bus_b_s == 48e9
    for name, rate in (("a100-40gb", 24e9), ("a100-80gb", 24e9), ("l4", 5.5e9), ("h100", 370e9)):
        link = found.of(name, 8)
        assert link is not None
        assert link.bus_b_s == rate, name
    assert SiteLinks().between is None
    assert SiteLinks().of("not-a-type", 2) is None


def test_a_bridge_joins_two() -> None:
    """Two A40 with a bridge use it, four of them use PCIe."""
    found = site_links(["a40=bridge-112"])
    assert [link and link.bus_b_s for link in (found.of("a40", 2), found.of("a40", 4))] == [48e9, 24e9]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["l4=pci4"], "'l4=pci4': expected one of nvlink1"),
        (["l4=hdr"], "expected one of nvlink1"),
        (["l4"], "expected one of nvlink1"),
        (["l4=pcie4*2"], "expected one of nvlink1"),
        (["l4=0"], "expected one of nvlink1"),
        (["l4=nan"], "expected one of nvlink1"),
        (["node=nvlink4"], r"expected one of edr, hdr, ndr, a name with \*ADAPTERS"),
        (["node=hdr*0"], "expected one of edr"),
        (["node=hdr*100"], "expected one of edr"),
        (["h900=pcie4"], "links: 'h900': unknown GPU type"),
        (["=pcie4"], "links: '': unknown GPU type"),
        (["a100=pcie4", "a100-80gb=pcie4"], "two links of a100-80gb: give one"),
        (["node=hdr", "node=ndr"], "two links of node: give one"),
    ],
)
def test_a_wrong_word_is_one_line(words: list[str], error: str) -> None:
    """The error names section and key, the word, and what is expected."""
    with pytest.raises(ConfigError, match=rf"^\[estimate\] links: .*{error.removeprefix('links: ')}"):
        site_links(words)
