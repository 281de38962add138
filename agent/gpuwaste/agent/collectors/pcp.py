"""PCP: pmdanvidia's values through pmproxy's REST interface, for GPUs without utilization in NVML.

PCP's `nvidia.gpuactive` is the driver's utilization at one instant; PCP reports no compute processes of a GPU and no
minors, so its readings have none.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors import CollectorSettings
from gpuwaste.agent.page_reader import ANSWER_S, ExporterReader
from gpuwaste.agent.readings import GpuIdentity, GpuReading, GpuScan
from gpuwaste.ledger.gpu_sample import UnknownReason

KIND: Final = "gpu"
# Metric of PCP -> its name here. Units as pmdanvidia declares them: percent, bytes, milliwatts, millijoules.
_METRICS: Final = {
    "nvidia.carduuid": "uuid",
    "nvidia.cardname": "name",
    "nvidia.busid": "pci_bus_id",
    "nvidia.gpuactive": "util_pct",
    "nvidia.memused": "mem_used_b",
    "nvidia.memtotal": "mem_total_b",
    "nvidia.power": "power_mw",
    "nvidia.energy": "energy_mj",
}
_PATH: Final = "/pmapi/fetch?names=" + ",".join(_METRICS)


def create(settings: CollectorSettings) -> "PcpCollector":
    """Create the collector without any request yet. Raises ConfigError for an invalid URL."""
    return PcpCollector(settings.pcp_url)


class PcpCollector:
    """Reads every GPU of pmdanvidia with one request."""

    name = "pcp"

    def __init__(self, url: str, answer_s: float = ANSWER_S) -> None:
        """`answer_s` limits the time for the full answer, in seconds."""
        self._url = url.rstrip("/")
        hints = (": is pmproxy running?", ": is pmdanvidia installed?", ": is this pmproxy?")
        self._page = ExporterReader("PCP", self._url, _PATH, hints, answer_s)

    def scan(self) -> GpuScan:
        """Read every GPU once. Raises CollectorError("driver") where pmproxy or pmdanvidia does not answer."""
        cards = parse_fetch(self._page.read(), self._url)
        return GpuScan(
            self.name,
            tuple(_identity(index, card) for index, card in sorted(cards.items())),
            {card["uuid"]: _reading(card) for card in cards.values()},
        )

    def close(self) -> None:
        """Do nothing: each scan closes its connection."""


def parse_fetch(body: bytes, where: str) -> dict[int, dict[str, Any]]:
    """Return fields by card index from an answer of /pmapi/fetch. Raises CollectorError for any other answer."""
    try:
        values = json.loads(body)["values"]
        cards: dict[int, dict[str, Any]] = {}
        for metric in values:
            field = _METRICS.get(metric["name"])
            for instance in metric["instances"] if field else ():
                number = instance["instance"]
                if isinstance(number, int) and number >= 0:
                    cards.setdefault(number, {})[str(field)] = instance["value"]
    except (ValueError, KeyError, TypeError) as error:
        raise CollectorError(f"PCP: {where}: unexpected answer of /pmapi/fetch") from error
    known = {index: card for index, card in cards.items() if isinstance(card.get("uuid"), str) and card["uuid"]}
    if not known:
        raise CollectorError(f"PCP: {where}: no GPU: is pmdanvidia installed and the driver loaded?")
    return known


def _identity(index: int, card: Mapping[str, Any]) -> GpuIdentity:
    return GpuIdentity(
        uuid=card["uuid"],
        index=index,
        minor=None,
        name=str(card.get("name", "")),
        pci_bus_id=str(card.get("pci_bus_id", "")),
        mem_total_b=_whole(card, "mem_total_b"),
    )


def _reading(card: Mapping[str, Any]) -> GpuReading:
    util = _whole(card, "util_pct")
    return GpuReading(
        uuid=card["uuid"],
        util_pct=None if util is None else float(util),
        mem_used_b=_whole(card, "mem_used_b"),
        mem_total_b=_whole(card, "mem_total_b"),
        power_mw=_whole(card, "power_mw"),
        energy_mj=_whole(card, "energy_mj"),
        reason=UnknownReason.NOT_SUPPORTED if util is None else UnknownReason.NONE,
    )


def _whole(card: Mapping[str, Any], key: str) -> int | None:
    """Return a counter or gauge; None for PCP's error codes (negative) and values that are not numbers."""
    value = card.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        return None
    return int(value)
