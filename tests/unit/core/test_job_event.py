"""Events of the history stream: what one side writes the other reads."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gpuwaste.core.errors import ParseError
from gpuwaste.jobs.job_event import HistoryEvent, RunUse, event_from_json
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey

JOB = JobRecord("gw", 7, 900, name="a\nb", start=1000, end=2000, total_cpu_s=0.5)
EVENT = HistoryEvent(3, "ended", JOB.run_key, 2000, JOB, RunUse(0.25, 1, 0.9))


@pytest.mark.parametrize("event", [EVENT, HistoryEvent(4, "submitted", RunKey("gw", 8, 900), 900, None)])
def test_an_event_comes_back_from_json(event: HistoryEvent) -> None:
    """With and without a run and its use; what a newer hub adds is passed over."""
    data = json.loads(json.dumps(event.to_json()))
    assert event_from_json(data) == event
    if data["job"]:
        data["job"]["newer"] = 1
    assert event_from_json({**data, "newer": 1}) == event


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "exploded"},
        {"seq": None},
        {"job": 7},
        {"job": {"cluster": "x"}},
        {"use": {}},
        {"use": 7},
        {"jobid": "x"},
    ],
)
def test_an_event_that_is_none_is_one_error(change: dict[str, Any]) -> None:
    """A part that is missing or of another type is named in one line."""
    broken: list[object] = [{**EVENT.to_json(), **change}, [], None, {"kind": "ended"}]
    for data in broken:
        with pytest.raises(ParseError, match="history") as caught:
            event_from_json(data)
        assert "\n" not in str(caught.value)


def test_an_unknown_number_of_gpus_is_absent() -> None:
    """A reader of the version before takes no null there; a known number, 0 too, is sent."""
    assert "gpus" not in EVENT.to_json()["job"]
    known = HistoryEvent(3, "ended", JOB.run_key, 2000, replace(JOB, gpus=0))
    assert known.to_json()["job"]["gpus"] == 0
    assert event_from_json(known.to_json()) == known
