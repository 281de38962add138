"""ONNX Runtime without its telemetry; nothing else of gpuwaste imports `onnxruntime`.

Its builds for Linux resolve and contact a collector of its vendor from the import on. They read the variable below
once, while they are imported; `onnxruntime.disable_telemetry_events()` comes too late. Processes that this one starts
inherit the variable.
"""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime  # noqa: TID251 the variable comes first

__all__ = ["onnxruntime"]
