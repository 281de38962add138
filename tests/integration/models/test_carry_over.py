"""Carrying over: each model judged on each log, the baseline beside, and no training row among those judged."""

from dataclasses import replace

import numpy as np
from tests.unit.advice.predict.test_rolling import jobs
from tools.scorecard.carry_over import Log, carry_over, section

from gpuwaste.advice.predict.vectors import replay_vectors
from gpuwaste.models.training_rows import split_by_time


def test_each_log_is_judged_by_every_model_and_the_baseline() -> None:
    """Two logs give six rows; a third one without any status is in none of them; the page marks a log's own model."""
    logs = []
    for name, seed in (("A", 1), ("B", 2), ("C", 3)):
        table = jobs(600, seed)[0]
        if name == "C":
            table = replace(table, outcome=np.zeros_like(table.outcome))
        logs.append(Log(name, table, replay_vectors(table).vectors))
    results = carry_over(logs, ("failure",), threads=1)
    assert [(r.judged_on, r.learnt_on) for r in results] == [
        (judged, learnt) for judged in ("A", "B") for learnt in ("A", "B", "baseline")
    ]
    for result in results:
        assert 0 < result.rows <= len(split_by_time(logs[0].table).test)
        for figures in (result.as_is, result.rolled):
            assert set(figures) == {"AP", "ECE"}
            assert all(0 <= value <= 1 for value in figures.values())
    page = section(results)
    assert "| A | A * |" in page
    assert "| B | baseline |" in page
