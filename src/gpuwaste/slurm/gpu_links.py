"""Links between GPUs: inside a node by GPU type, between nodes by the site's own table ([estimate] links).

The table has data sheets and the bandwidth that NCCL plans with; no all-reduce was measured for it. A site that has
measured one with nccl-tests gives the number in place of a name.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Annotated, Final

from msgspec import Meta, Struct

from gpuwaste.core.errors import ConfigError, UsageError
from gpuwaste.core.typed import convert
from gpuwaste.slurm.gpu_types import types_asked

_Positive = Annotated[float, Meta(gt=0)]
MOST_IN_NODE: Final = 16  # a DGX-2 and an HGX A100 of two boards
_NODE: Final = "node"
_ADAPTERS: Final = re.compile(r"([a-z0-9-]{1,20})(?:\*(\d{1,2}))?", re.ASCII)
_NUMBER: Final = re.compile(r"\d{1,6}(?:\.\d{1,6})?", re.ASCII)
_GB: Final = 1e9


class LinkKind(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One kind of link; its fields are explained in the table."""

    name: str
    title: str
    network: bool = False
    peak_gb_s: _Positive
    bus_gb_s: _Positive
    slow_gb_s: _Positive
    latency_us: _Positive
    most: int = MOST_IN_NODE
    sources: dict[str, str]
    """For peak, bus and slow: a key of the table's sources."""


class _Table(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    sources: dict[str, str]
    link: list[LinkKind]
    types: dict[str, str]


@dataclass(frozen=True, slots=True)
class GpuLink:
    """A link as an all-reduce uses it: bytes a second of bus bandwidth, from poor to the link's peak."""

    title: str
    bus_b_s: float
    slow_b_s: float
    peak_b_s: float
    latency_s: float
    most: int = MOST_IN_NODE

    def seconds(self, size_b: float, ranks: int, rate_b_s: float) -> float:
        """Return the time of a ring all-reduce of so many bytes over `ranks` GPUs or nodes.

        2 (n - 1) steps, each with 1/n of the bytes (Thakur, Rabenseifner and Gropp 2005; Patarasuk and Yuan 2009).
        """
        steps = 2 * (ranks - 1)
        return steps / ranks * size_b / rate_b_s + steps * self.latency_s


@dataclass(frozen=True, slots=True)
class SiteLinks:
    """The links of a site: those that it names, else inside a node the data sheet's."""

    inside: Mapping[str, GpuLink] = field(default_factory=dict)
    between: GpuLink | None = None
    """Of a node to the others; None: not given."""

    def of(self, gpu: str, gpus: int) -> GpuLink | None:
        """Return the link between so many GPUs of a type in one node; a bridge joins two only."""
        found = self.inside.get(gpu)
        if found is not None and gpus <= found.most:
            return found
        kind = _table().types.get(gpu)
        return None if kind is None else _link(_kinds()[kind])


@cache
def _table() -> _Table:
    text = resources.files(__package__).joinpath("gpu_links.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(text), _Table)


def link_kinds() -> list[LinkKind]:
    """Return all kinds of links of the table."""
    return list(_table().link)


def link_sources() -> dict[str, str]:
    """Return the sources of the table's numbers."""
    return dict(_table().sources)


def data_sheet_links() -> dict[str, str]:
    """Return the name of the link in a node, by GPU type."""
    return dict(_table().types)


def _kinds() -> dict[str, LinkKind]:
    return {each.name: each for each in _table().link}


def _link(kind: LinkKind, adapters: int = 1) -> GpuLink:
    bus, slow, peak = (each * adapters for each in (kind.bus_gb_s, kind.slow_gb_s, kind.peak_gb_s))
    title = f"{adapters} x {kind.title}" if adapters > 1 else kind.title
    by = f"{title} ({bus:g} of {peak:g} GB/s by NCCL's plan and data sheet)"
    return GpuLink(by, bus * _GB, slow * _GB, peak * _GB, kind.latency_us * 1e-6, kind.most)


def site_links(words: Iterable[str]) -> SiteLinks:
    """Return the links of section [estimate]: TYPE=LINK, node=LINK or node=LINK*ADAPTERS. Raises ConfigError."""
    inside: dict[str, GpuLink] = {}
    between: GpuLink | None = None
    for word in words:
        name, _, value = (part.strip() for part in word.partition("="))
        if name == _NODE:
            if between is not None:
                raise ConfigError("[estimate] links: two links of node: give one")
            between = _given(word, value, network=True)
            continue
        for each in _types(name):
            if each in inside:
                raise ConfigError(f"[estimate] links: two links of {each}: give one")
            inside[each] = _given(word, value, network=False)
    return SiteLinks(inside, between)


def _types(name: str) -> list[str]:
    try:
        return [each.name for each in types_asked(name, "links")]
    except UsageError as error:
        raise ConfigError(f"[estimate] {error}") from error


def _given(word: str, value: str, *, network: bool) -> GpuLink:
    """Return a link by its name in the table, or by a bus bandwidth in GB/s that the site has measured."""
    if _NUMBER.fullmatch(value) and float(value) > 0:
        rate = float(value) * _GB
        latency_s = max(each.latency_us for each in link_kinds() if each.network == network) * 1e-6
        return GpuLink(f"a link of {float(value):g} GB/s (the site's figure)", rate, rate, rate, latency_s)
    found = _ADAPTERS.fullmatch(value)
    kind = _kinds().get(found[1]) if found is not None else None
    adapters = int(found[2] or 1) if found is not None else 0
    if kind is None or kind.network != network or not adapters or (adapters > 1 and not network):
        known = ", ".join(each.name for each in link_kinds() if each.network == network)
        count = ", a name with *ADAPTERS" if network else ""
        raise ConfigError(
            f"[estimate] links: {word[:40]!r}: expected one of {known}{count}, or the GB/s that nccl-tests measured"
        )
    return _link(kind, adapters)
