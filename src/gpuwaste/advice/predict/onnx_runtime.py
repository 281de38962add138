"""ONNX Runtime without its telemetry; nothing else in gpuwaste imports `onnxruntime`.

From the import on its Linux builds resolve and contact a collector of the vendor. They read the variable below once,
during the import; `onnxruntime.disable_telemetry_events()` is too late. Child processes inherit the variable.
"""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime  # noqa: TID251 the variable comes first

__all__ = ["onnxruntime"]
