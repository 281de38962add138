"""Features in the words of the user: every one has a sentence, with his numbers and names."""

import re

import pytest
from tests.unit.advice.predict.site_of_predict import GIB, NAMES, TRAIN, Run, history

from gpuwaste.advice.predict.explain import bundled
from gpuwaste.advice.predict.features import FEATURES
from gpuwaste.advice.predict.vector_words import OWN, VectorView, amount, feature_text, others_text
from gpuwaste.advice.predict.vectors import vector_of
from gpuwaste.core.units import say_duration
from gpuwaste.jobs.history.history_keys import KEYS
from gpuwaste.jobs.history.outcome import Outcome

BY_NAME = {feature.name: feature for feature in FEATURES}


@pytest.fixture(scope="module")
def view() -> VectorView:
    """Return alice's view after eight runs, every other one failed."""
    runs = [Run(Outcome.FAILED if n % 2 else Outcome.COMPLETED, 1200.0 + 60 * n, 3.0 * GIB, 1) for n in range(8)]
    return VectorView.of(TRAIN, NAMES, vector_of(history(runs), TRAIN))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("name_failed_8", "4 of your last 8 jobs named train failed"),
        ("user_failed_8", "4 of your last 8 jobs failed"),
        ("shape_failed_8", "4 of your last 8 jobs of this size and limit failed"),
        ("name_fail_1", "your last job named train failed"),
        ("name_fail_2", "the second last of your jobs named train did not fail"),
        ("name_run_1", "your last job named train ran 27 min"),
        ("name_gpu_active", "your last job named train used 1 GPU"),
        ("name_queued", "0 of your jobs named train are waiting"),
        ("limit", "a time limit of 12 h"),
        ("nodes", "1 node"),
        ("is_array", "no: an array job"),
    ],
)
def test_a_feature_is_told_to_its_user(view: VectorView, name: str, text: str) -> None:
    """Counts, flags, durations: "this user" is you."""
    key = next((key for key in OWN if name.startswith(f"{key}_")), "")
    assert feature_text(BY_NAME[name], view[name], key, view) == text


def test_no_sentence_has_a_placeholder_left(view: VectorView) -> None:
    """Every feature of the request and of the user's own keys, at any value."""
    for feature in FEATURES:
        key = next((key for key in OWN if feature.name.startswith(f"{key}_") and "name_t" not in feature.name), "")
        if feature.name in {"name_length", "name_digits"} or feature.name.startswith(
            ("account_", "partition_", "cluster_")
        ):
            continue
        for value in (0.0, 1.0, 2.5):
            text = feature_text(feature, value, key, view)
            assert not re.search(r"[{}]|this user|: 1 yes", text), text


def test_other_people_s_jobs_are_told_without_numbers() -> None:
    """Every group of a key that is not the user's own has a sentence, and no digit is in it."""
    others = [
        group.name.split(" ") for group in bundled() if group.name.split(" ")[0] in {k.name for k in KEYS} - set(OWN)
    ]
    assert others
    for key, subject in others:
        assert not re.search(r"\d", others_text(key, subject))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (119, "1 min 59 s"),
        (120, "2 min"),
        (629, "10 min"),
        (3590, "1 h"),
        (5400, "1 h 30 min"),
        (12600, "3 h 30 min"),
        (345600, "4 d"),
        (360000, "4 d 4 h"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds: float, text: str) -> None:
    """The two largest units; seconds only below ten minutes."""
    assert say_duration(seconds) == text


def test_amounts_have_their_unit() -> None:
    """Seconds, hours and days as durations, bytes as sizes, ratios with two digits, counts whole."""
    assert [amount(90, "s"), amount(15, "h"), amount(2.5, "d"), amount(3 * GIB, "B")] == [
        "1 min 30 s",
        "15 h",
        "2 d 12 h",
        "3.0 GiB",
    ]
    assert [amount(3.0, ""), amount(0.25, ""), amount(2.55, "")] == ["3", "0.25", "2.5"]
