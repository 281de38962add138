"""Predictions at submission: features by one path online and offline, bundles, ONNX sessions.

May import slurm, store and core; onnxruntime is imported in this room alone.
"""
