"""A real language model behind an OpenAI-compatible server, where one is named: it changes no number."""

import os
import re

import pytest
from tests.unit.views.sites import document
from tests.unit.views.test_views import MONTH_LONG, busy

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.site_config import AnalyticsConfig
from gpuwaste.views.language_model import LanguageModel
from gpuwaste.views.rewriter import RESULTS, Rewriter

URL, MODEL = "GPUWASTE_MODEL_URL", "GPUWASTE_MODEL"


def test_a_real_model_changes_no_number() -> None:
    """Each sentence of a view has the numbers of the rules' one, whoever worded it, and each was counted."""
    if URL not in os.environ:
        pytest.skip(f"no {URL} (http://127.0.0.1:8000/v1) and {MODEL}: see docs/how-to/analyze.md for a small model")
    config = AnalyticsConfig(os.environ[URL], os.environ.get(MODEL, "any"))
    counted: list[str] = []
    found = document(busy(), "waits", MONTH_LONG)
    after = Rewriter(LanguageModel(config, 120.0), SystemClock(), counted.append).asked(found)
    assert len(counted) == len(found.narrative)
    assert set(counted) <= set(RESULTS) - {"no_answer", "bad_answer"}
    assert counted.count("worded") == len(after.model_sentences)
    for rule, own in zip(found.narrative, after.narrative, strict=True):
        assert sorted(re.findall(r"\d+", own)) == sorted(re.findall(r"\d+", rule))
