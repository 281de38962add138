"""Documents of the effect of campaigns for tests of pages and commands: one that saves, one that is not known yet."""

from typing import Any

AT = 1_809_302_400
_NONE = {"value": None, "low": None, "high": None}


def campaign(name: str = "gpus", **more: Any) -> dict[str, Any]:
    """Return a campaign that has shown a saving."""
    values: dict[str, Any] = {
        "name": name, "state": "ended", "what": ["policy:gpus", "digest"], "unit": "user", "start": AT,
        "end": AT + 84 * 86400, "weeks": 12, "complete": 12, "without_data": 1, "notified": 61, "held_back": 59,
        "sentence": "Since 3 May 2027: 1,240 GPU-hours saved (95 %: 310 to 2,100) of 18,400 held.",
        "saved_gpu_h": {"value": 1240.0, "low": 310.0, "high": 2100.0},
        "saved_ratio": {"value": 0.2, "low": 0.06, "high": 0.3}, "held_ratio": _NONE, "jobs_ratio": _NONE,
        "failed_more": {"value": 0.0, "low": -0.003, "high": 0.004}, "timed_out_more": _NONE, "notices": 30,
        "withheld": 20, "problems": ["1 of 12 weeks are left out"],
        "record": [{"at": AT, "what": "found", "words": "12 weeks; file of root; reason: none given"}],
    }  # fmt: skip
    return {**values, **more}


def effects() -> dict[str, Any]:
    """Return the document of two campaigns and a file that is not in use."""
    new = campaign("new", state="planned", complete=0, saved_gpu_h=_NONE, saved_ratio=_NONE, problems=[], record=[])
    frame = {"document": "effects", "schema": 1, "recorded": False, "generated": AT}
    return {**frame, "campaigns": [campaign(), new], "errors": ["bad.toml: what: empty"]}
