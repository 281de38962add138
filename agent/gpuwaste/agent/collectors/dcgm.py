"""DCGM: profiling counters from dcgm-exporter's own /metrics, in addition to NVML.

The exporter already holds the profiling counters; reading its page does not disturb it and needs no library. Its values
are kept in addition to NVML's and replace none of them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors import CollectorSettings
from gpuwaste.agent.page_reader import ANSWER_S, ExporterReader
from gpuwaste.agent.readings import GpuProfile
from gpuwaste.agent.valid_ranges import RANGES
from gpuwaste.core.errors import ConfigError
from gpuwaste.net.addresses import has_loopback

KIND: Final = "profile"
_MAX_SERIES: Final = 4096  # of the metrics below: 8 GPUs with 7 instances each have 392
_MAX_LINE: Final = 4096  # characters
_BLANK: Final = 2.0**47  # from here on DCGM means "no value" (dcgm_structs.h, DCGM_FP64_IS_BLANK)
# Metric of dcgm-exporter -> field of GpuProfile. Ratios 0..1, rates in bytes per second; rates of one field are added
# up. Source: NVIDIA, DCGM API reference, "Field Identifiers".
_METRICS: Final[Mapping[str, str]] = {
    "DCGM_FI_PROF_SM_ACTIVE": "sm_active",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "tensor_active",
    "DCGM_FI_PROF_DRAM_ACTIVE": "dram_active",
    "DCGM_FI_PROF_NVLINK_TX_BYTES": "nvlink_b_s",
    "DCGM_FI_PROF_NVLINK_RX_BYTES": "nvlink_b_s",
    "DCGM_FI_PROF_PCIE_TX_BYTES": "pcie_b_s",
    "DCGM_FI_PROF_PCIE_RX_BYTES": "pcie_b_s",
}
_RATES: Final = frozenset({"nvlink_b_s", "pcie_b_s"})


def create(settings: CollectorSettings) -> "DcgmCollector":
    """Create the collector without any request yet. Raises ConfigError for a URL on another host."""
    check_url(settings.dcgm_url)
    return DcgmCollector(settings.dcgm_url)


def check_url(url: str) -> None:
    """Raise ConfigError for an invalid URL or one on another host: its answers are not authenticated."""
    if not has_loopback(url):
        raise ConfigError(
            f"[agent] dcgm_url: {url!r} is not on the loopback interface: use http://127.0.0.1:9400/metrics"
        )


class DcgmCollector:
    """Reads the profiles of all GPUs and MIG instances of dcgm-exporter with one request."""

    name = "dcgm"

    def __init__(self, url: str, answer_s: float = ANSWER_S) -> None:
        """`answer_s` limits the time for the full answer, in seconds."""
        self._url = url
        wrong = ": is this dcgm-exporter?"
        self._page = ExporterReader("DCGM", url, "", (": does dcgm-exporter run?", wrong, wrong), answer_s)

    def profiles(self) -> dict[tuple[str, str], GpuProfile]:
        """Return the exporter's profiles by (GPU uuid, GPU instance or ""). Raises CollectorError where it has none."""
        return parse_metrics(self._page.read(), self._url)

    def close(self) -> None:
        """Do nothing: each reading closes its connection."""


def parse_metrics(body: bytes, where: str) -> dict[tuple[str, str], GpuProfile]:
    """Return profiles by (GPU uuid, GPU instance or "") from a page in Prometheus' text format.

    A blank value is skipped. Raises CollectorError where the page has no profile.
    """
    found: dict[tuple[str, str], dict[str, float | None]] = {}
    try:
        for name, labels, value in _samples(body, where):
            field = _METRICS[name]
            uuid = labels.get("UUID") or labels.get("uuid") or ""
            if not uuid:
                continue
            fields = found.setdefault((uuid, labels.get("GPU_I_ID", "")), {})
            read = value if value < _BLANK else None  # excludes NaN, too
            fields[field] = _both_ways(field, fields[field], read) if field in _RATES and field in fields else read
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise CollectorError(f"DCGM: {where}: not in Prometheus' text format") from error
    if not any(value is not None for fields in found.values() for value in fields.values()):
        raise CollectorError(
            f"DCGM: {where}: no profiling metrics: start dcgm-exporter with DCGM_FI_PROF_SM_ACTIVE in its counters"
        )
    return {key: GpuProfile(**fields) for key, fields in found.items()}


def _both_ways(field: str, one: float | None, other: float | None) -> float | None:
    """Return the sum of the rates of a link's two directions; the other one must not hide an impossible one."""
    if one is None or other is None:
        return None
    return next((rate for rate in (one, other) if RANGES[field].fault(rate)), one + other)


def _samples(body: bytes, where: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Yield the samples of the known metrics; other lines are not parsed."""
    lines = [
        line
        for line in body.decode("utf-8", "replace").splitlines()
        if line.partition("{")[0] in _METRICS and len(line) < _MAX_LINE
    ]
    if len(lines) > _MAX_SERIES:
        raise CollectorError(
            f"DCGM: {where}: more than {_MAX_SERIES} series of profiling: is this one node's exporter?"
        )
    sample: Any
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            yield sample.name, sample.labels, float(sample.value)
