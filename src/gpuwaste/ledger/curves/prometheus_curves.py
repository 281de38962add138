"""Queries the Prometheus that scrapes the agents: it may have older samples than a node, at its own interval."""

import json
import math
from collections.abc import Collection
from typing import Any, Final
from urllib.parse import urlencode

from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError, WireError
from gpuwaste.ledger.curves.curve_types import MOST_GPUS, QUANTITIES, CurveSeries, GpuCurves, NodeCurves
from gpuwaste.net.addresses import Endpoint, parse_endpoint
from gpuwaste.net.http import HttpExchange, HttpRequest, tls_context
from gpuwaste.net.sample_query import SampleQuestion

_FAILED: Final = log_event.warning(
    "curves-prometheus-failed: cannot fetch a job's samples from Prometheus: {error}",
    "Check [hub] prometheus_url. Curves show what the agents and the ledger have.",
)
_METRICS: Final = {
    "util_pct": ("gpuwaste_gpu_utilization_ratio", 100.0, 2),
    "sm_pct": ("gpuwaste_gpu_sm_ratio", 100.0, 2),
    "mem_used_b": ("gpuwaste_gpu_memory_used_bytes", 1.0, 0),
    "power_w": ("gpuwaste_gpu_power_watts", 1.0, 1),
}
_FINEST_S: Final = 15  # Prometheus' usual interval
_SLOTS: Final = 1000
_PATIENCE_S: Final = 5.0
_MOST_B: Final = 8 << 20
_OK: Final = 200
_Column = list[float | None]


class PrometheusSamples:
    """Queries one Prometheus. Thread-safe. Raises ConfigError where the URL or the CA cannot be used."""

    def __init__(self, url: str, ca: str) -> None:
        self._endpoint = endpoint_of(url)
        self._tls = tls_context(ca) if self._endpoint.scheme == "https" else None

    def ask(self, question: SampleQuestion, own: Collection[str]) -> NodeCurves | None:
        """Return its samples of a run on a node, for the GPUs that the ledger has of the run; None without any.

        Only times at which the agent reported that the job holds the GPU are used. Raises nothing.
        """
        window = question.window
        start, end = window.since_us // 1_000_000 + 1, window.until_us // 1_000_000
        step_s = max(_FINEST_S, -(-(end - start) // min(_SLOTS, window.points)))
        times = range(start + step_s, max(end, start + step_s) + 1, step_s)
        found: dict[str, dict[str, dict[str, _Column]]] = {}
        try:
            for name in QUANTITIES:
                for how in ("avg", "min", "max") if step_s > _FINEST_S else ("avg",):
                    for uuid, column in self._series(name, how, question, times).items():
                        found.setdefault(uuid, {}).setdefault(name, {})[how] = column
        except (WireError, ValueError, KeyError, TypeError, AttributeError) as error:
            _FAILED.log(error=str(error)[:500])
            return None
        gpus = [_gpu(uuid, found[uuid]) for uuid in sorted(found) if not own or uuid in own][:MOST_GPUS]
        if not gpus:
            return None
        half_ms = step_s * 500
        return NodeCurves(
            node=question.node,
            state="answered",
            source="prometheus",
            interval_ms=step_s * 1000,
            t_ms=[t * 1000 - half_ms for t in times],
            gpus=gpus,
        )

    def _series(self, name: str, how: str, question: SampleQuestion, times: range) -> dict[str, _Column]:
        """Return a quantity by GPU, a value for each time. Raises WireError, or any error of a malformed answer."""
        metric, factor, digits = _METRICS[name]
        of_node = f'node="{question.node}"'
        held = f'gpuwaste_gpu_job_info{{{of_node},jobid="{question.window.job_id}",confidence!="conflict"}}'
        inner = f"({metric}{{{of_node}}} and on (uuid, node) {held})"
        query = {
            "query": f"{how}_over_time({inner}[{times.step}s:{_FINEST_S}s]) * {factor:g}",
            "start": times[0],
            "end": times[-1],
            "step": times.step,
        }
        target = f"/api/v1/query_range?{urlencode(query)}"
        exchange = HttpExchange(self._endpoint, self._tls, _PATIENCE_S, _MOST_B)
        answer = exchange.send(HttpRequest("GET", target, b"", {"Accept": "application/json"}))
        if answer.status != _OK:
            raise WireError(f"{self._endpoint.url}: HTTP {answer.status}: {answer.body[:200]!r}")
        columns: dict[str, _Column] = {}
        for series in json.loads(answer.body)["data"]["result"]:
            columns[str(series["metric"]["uuid"])[:128]] = _column(series["values"], times, digits)
        return columns


def endpoint_of(url: str) -> Endpoint:
    """Return the endpoint of Prometheus. Raises ConfigError."""
    try:
        return parse_endpoint(url, "is Prometheus running?", "prometheus_url")
    except ConfigError as error:
        raise ConfigError(f"[hub] prometheus_url {url!r}: expected http://HOST:PORT or https://") from error


def _column(values: list[list[Any]], times: range, digits: int) -> _Column:
    """Return the values at the requested times; None where there is no valid number."""
    column: _Column = [None] * len(times)
    for instant, text in values:
        place, value = round((float(instant) - times[0]) / times.step), float(text)
        if 0 <= place < len(column) and math.isfinite(value) and value >= 0:
            column[place] = round(value, digits or None)
    return column


def _gpu(uuid: str, found: dict[str, dict[str, _Column]]) -> GpuCurves:
    series: dict[str, Any] = {name: _series_of(columns) for name, columns in found.items()}
    return GpuCurves(gpu_uuid=uuid, **series)


def _series_of(columns: dict[str, _Column]) -> CurveSeries:
    length = max(map(len, columns.values()))
    return CurveSeries(mean=columns.get("avg", [None] * length), min=columns.get("min"), max=columns.get("max"))
