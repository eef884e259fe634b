"""How busy one MIG instance is, by the counters that Hopper and newer GPUs keep (GPM).

``nvmlDeviceGetUtilizationRates`` answers for no MIG instance and for no GPU that is divided. Reference: nvml.h, "GPM".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pynvml


@dataclass
class Gpm:
    """One metric of a GPU instance, as a share of that instance, between two readings."""

    card: Any
    gpu_instance: int
    metric: int
    _before: Any = None

    def read(self) -> float:
        """NaN at the first reading. NVMLError: the GPU keeps no such counters, or not this one."""
        if self._before is None and not pynvml.nvmlGpmQueryDeviceSupport(self.card).isSupportedDevice:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        now = pynvml.nvmlGpmSampleAlloc()
        try:
            pynvml.nvmlGpmMigSampleGet(self.card, self.gpu_instance, now)
            return float("nan") if self._before is None else self._between(self._before, now) / 100
        finally:
            if self._before is not None:
                pynvml.nvmlGpmSampleFree(self._before)
            self._before = now

    def _between(self, before: Any, now: Any) -> float:
        asked = pynvml.c_nvmlGpmMetricsGet_t()
        asked.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = 1
        asked.sample1, asked.sample2 = before, now
        asked.metrics[0].metricId = self.metric
        pynvml.nvmlGpmMetricsGet(asked)
        if asked.metrics[0].nvmlReturn != pynvml.NVML_SUCCESS:
            raise pynvml.NVMLError(asked.metrics[0].nvmlReturn)
        return float(asked.metrics[0].value)
