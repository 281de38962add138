"""GPM (Hopper and later): the share of busy SMs between two readings, and the duty cycle of MIG instances."""

from typing import Any, Final

import pynvml

from gpuwaste.agent.collectors._nvml_call import call, optional

_GRAPHICS_UTIL: Final = pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL
_SM_UTIL: Final = pynvml.NVML_GPM_METRIC_SM_UTIL


class GpmMeter:
    """Two GPM samples of one GPU or MIG instance, read in turn; used from the sampling thread alone."""

    def __init__(self, gpu_handle: Any, gi: int | None) -> None:
        self._handle = gpu_handle
        self._gi = gi
        self._before: Any = None
        self._after: Any = None
        self._filled = False
        support = optional(pynvml.nvmlGpmQueryDeviceSupport, gpu_handle)
        self.supported = bool(support and support.isSupportedDevice)

    def read(self) -> dict[int, float]:
        """Return percent by GPM metric id since the last call; empty at the first one and where GPM is missing."""
        if not self.supported:
            return {}
        if self._after is None:
            self._before, self._after = call(pynvml.nvmlGpmSampleAlloc), call(pynvml.nvmlGpmSampleAlloc)
        if self._gi is None:
            call(pynvml.nvmlGpmSampleGet, self._handle, self._after)
        else:
            call(pynvml.nvmlGpmMigSampleGet, self._handle, self._gi, self._after)
        values = self._values() if self._filled else {}
        self._before, self._after, self._filled = self._after, self._before, True
        return values

    def close(self) -> None:
        """Free both samples."""
        for sample in (self._before, self._after):
            if sample is not None:
                optional(pynvml.nvmlGpmSampleFree, sample)
        self._before = self._after = None
        self._filled = False

    def _values(self) -> dict[int, float]:
        wanted = (_GRAPHICS_UTIL, _SM_UTIL)
        query = pynvml.c_nvmlGpmMetricsGet_t()
        query.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        query.numMetrics = len(wanted)
        query.sample1, query.sample2 = self._before, self._after
        for slot, metric in enumerate(wanted):
            query.metrics[slot].metricId = metric
        call(pynvml.nvmlGpmMetricsGet, query)
        answered = (query.metrics[slot] for slot in range(len(wanted)))
        return {int(m.metricId): float(m.value) for m in answered if m.nvmlReturn == pynvml.NVML_SUCCESS}


def busy_pct(values: dict[int, float]) -> float | None:
    """Return the percent of time in which any compute work ran."""
    return values.get(_GRAPHICS_UTIL)


def sm_ratio(values: dict[int, float]) -> float | None:
    """Return the share of busy SMs, 0..1."""
    percent = values.get(_SM_UTIL)
    return None if percent is None else percent / 100
