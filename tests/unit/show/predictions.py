"""Documents of predictions, as the hub gives them."""

from typing import Any

REQUEST: dict[str, Any] = {
    "user": "alice", "submit": 1_750_000_000, "account": "physics", "partition": "gpu", "qos": "", "name": "train",
    "time_limit_s": 43200, "nodes": 1, "cpus": 8, "mem_b": 64 << 30, "gpus": 4, "gpu_type": "a100",
    "is_array": False, "interactive": False, "script": None, "comment": "", "whole_node": None,
}  # fmt: skip


def target(name: str, **values: Any) -> dict[str, Any]:
    """Return one target's part."""
    base = {"source": "site model", "basis": 9000, "p": None, "level": "", "quantiles": {}, "reasons": []}
    return {"target": name, **base, **values}


def reason(text: str, effect: float) -> dict[str, Any]:
    """Return one reason."""
    return {"feature": "f", "value": 1.0, "usual": 0.0, "effect": effect, "text": text}


def prediction(**values: Any) -> dict[str, Any]:
    """Return a prediction of a site model with reasons and changes."""
    return {
        "request": REQUEST,
        "model": "site-2025-06",
        "model_hash": "0123456789abcdef" * 4,
        "targets": [
            target(
                "failure", p=0.31, level="warn",
                reasons=[
                    reason("3 of your last 8 jobs named train failed", 0.21),
                    reason("a time limit of 12 h", -0.04),
                ],
            ),
            target("timeout", p=0.004),
            target(
                "walltime", quantiles={"0.5": 1500.0, "0.9": 1700.0, "0.95": 1800.0, "0.99": 2300.0},
                reasons=[reason("you requested 12 h; your last 8 jobs named train ran 20 min to 35 min", -8000.0)],
            ),
            target("gpu_underused", p=0.72, source="history", basis=1),
            target("gpus_needed", quantiles={"0.5": 1.0, "0.95": 1.0}),
        ],
        "changes": [
            {
                "option": "#SBATCH --time=00:40:00",
                "text": "99 of 100 such jobs end within 38 min; you requested 12 h (line 3)",
                "before": {"time_limit_s": 43200.0, "failure": 0.31, "timeout": 0.004},
                "after": {"time_limit_s": 2400.0, "failure": 0.29, "timeout": 0.01},
            },
            {
                "option": "#SBATCH --gres=gpu:a100:1",
                "text": "95 of 100 such jobs use at most 1 of 4 GPUs (line 2)",
                "before": {"gpus": 4.0, "failure": 0.31},
                "after": {"gpus": 1.0, "failure": 0.31},
            },
        ],
        "notes": ["no model of memory: no MaxRSS"],
        "own_history": True,
        **values,
    }  # fmt: skip


def document(*predictions: dict[str, Any], notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return what `gpuwaste predict` prints."""
    return {"document": "predict", "recorded": False, "predictions": list(predictions), "notes": list(notes)}
