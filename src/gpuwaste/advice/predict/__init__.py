"""Predictions at submission: features by one path online and offline, bundles, ONNX sessions.

May import slurm, store and core; only onnx_runtime imports ONNX Runtime.
"""
