"""PCP: pmdanvidia's values through pmproxy's REST interface, for GPUs of which NVML gives no utilization.

PCP's `nvidia.gpuactive` is the driver's utilization at one instant; PCP reports no compute processes of a GPU and no
minors, so its readings carry none.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

import urllib3

from gpuwaste.agent.bounded import BoundedThread
from gpuwaste.agent.collectors import CollectorSettings
from gpuwaste.agent.errors import CollectorError
from gpuwaste.agent.model import GpuIdentity, GpuReading, GpuScan
from gpuwaste.ledger.sample import UnknownReason

KIND: Final = "gpu"
_TIMEOUT: Final = urllib3.Timeout(connect=0.5, read=1.5)
_ANSWER_S: Final = 2.0  # for the whole answer
_MAX_BYTES: Final = 4 * 1024 * 1024
# Metric of PCP -> what it is here. Units as pmdanvidia declares them: percent, bytes, milliwatts, millijoules.
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
    """Make the collector; nothing is asked before the first scan."""
    return PcpCollector(settings.pcp_url)


class PcpCollector:
    """Reads every GPU that pmdanvidia knows, by one request."""

    name = "pcp"

    def __init__(self, url: str, answer_s: float = _ANSWER_S) -> None:
        """`answer_s` bounds the whole answer, in seconds."""
        self._url = url.rstrip("/")
        self._thread = BoundedThread(
            "pcp",
            answer_s,
            late=f"PCP: {self._url}: no complete answer within {answer_s:g} s",
            hangs=f"PCP: {self._url}: the answer before is still under way",
        )
        self._http = urllib3.PoolManager(num_pools=1, maxsize=1, retries=False, timeout=_TIMEOUT)

    def scan(self) -> GpuScan:
        """Read every GPU once. Raises CollectorError("driver") where pmproxy or pmdanvidia does not answer.

        A server that drips holds one thread and no sample: it is not asked again until that answer has ended.
        """
        cards = parse_fetch(self._thread.call(self._get), self._url)
        return GpuScan(
            self.name,
            tuple(_identity(index, card) for index, card in sorted(cards.items())),
            {card["uuid"]: _reading(card) for card in cards.values()},
        )

    def close(self) -> None:
        """Close the connection."""
        self._http.clear()

    def _get(self) -> bytes:
        try:
            response = self._http.request("GET", self._url + _PATH, preload_content=False, redirect=False)
            try:
                body: bytes = response.read(_MAX_BYTES + 1, decode_content=True)
            finally:
                response.close()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise CollectorError(f"PCP: {self._url}: no answer: {type(error).__name__}") from error
        if response.status != 200:  # noqa: PLR2004 the HTTP status
            raise CollectorError(f"PCP: {self._url}: status {response.status}: is pmdanvidia installed?")
        if len(body) > _MAX_BYTES:
            raise CollectorError(f"PCP: {self._url}: more than {_MAX_BYTES} bytes: is this pmproxy?")
        return body


def parse_fetch(body: bytes, where: str) -> dict[int, dict[str, Any]]:
    """Return fields by card index from an answer of /pmapi/fetch. Raises CollectorError where it is none."""
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
    """Return a counter or gauge; None for PCP's error codes (negative) and for what is no number."""
    value = card.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        return None
    return int(value)
