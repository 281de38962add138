"""The sentence of a campaign: what is shown, what is not, and what weakens it."""

import re

import pytest
from msgspec.structs import replace

from gpuwaste.act.campaigns.effect_text import effects_text, split_text
from gpuwaste.act.campaigns.effect_types import CampaignEffect, EffectFigure, EffectsDocument, SplitDocument, SplitSide
from gpuwaste.act.campaigns.effect_words import SPLIT_WARNING, with_sentence
from gpuwaste.show.layout import Look

MAY = 1_809_302_400  # 3 May 2027, UTC
NONE = EffectFigure()
EFFECT = CampaignEffect(
    name="gpus", state="running", what=["policy:gpus"], unit="user", start=MAY, end=MAY + 84 * 86400, weeks=12,
    complete=12, without_data=0, notified=61, held_back=59, sentence="",
    saved_ratio=EffectFigure(value=0.2, low=0.06, high=0.3),
    saved_gpu_h=EffectFigure(value=1240.4, low=310.2, high=2099.7), held_ratio=NONE, jobs_ratio=NONE,
    failed_more=EffectFigure(value=0.0005, low=-0.003, high=0.004), timed_out_more=NONE, notified_held_gpu_h=18_400.0,
    withheld=20, notices=30,
)  # fmt: skip


def said(**changes: object) -> str:
    """Return the sentence of a changed effect, with a plain minus."""
    return with_sentence(replace(EFFECT, **changes)).sentence.replace("\N{MINUS SIGN}", "-")


def test_a_saving_has_its_interval_and_what_it_costs() -> None:
    """One sentence: since when, how much, how sure, of how much, who was notified, and failures beside it."""
    assert said() == (
        "Since 3 May 2027: 1,240 GPU-hours saved (95 %: 310 to 2,100) of 18,400 held, 61 users notified, 59 held back; "
        "no more failures shown (-0.3 to +0.4 points), time-outs not known yet."
    )


@pytest.mark.parametrize(
    ("changes", "has"),
    [
        ({"failed_more": EffectFigure(value=0.02, low=0.01, high=0.03)}, "; more failures (+1.0 to +3.0 points)"),
        ({"failed_more": EffectFigure(value=-0.02, low=-0.03, high=-0.01)}, "; fewer failures (-3.0 to -1.0 points)"),
        (
            {"saved_gpu_h": EffectFigure(value=10.0, low=-50.0, high=700.0)},
            "no saving shown (95 %: from 50 more to 700 fewer idle GPU-hours)",
        ),
        (
            {"saved_gpu_h": EffectFigure(value=-500.0, low=-900.0, high=-100.0)},
            "500 more GPU-hours idle (95 %: 100 to 900)",
        ),
        ({"saved_gpu_h": EffectFigure(value=10.0, low=5.0)}, "10 GPU-hours saved (95 %: 5 or more)"),
        ({"saved_gpu_h": EffectFigure(high=700.0)}, "from an unknown number more to 700 fewer"),
        (
            {"worth": EffectFigure(value=3100.0, low=775.0, high=5250.0), "currency": "EUR"},
            "of 18,400 held, worth 3,100 EUR (775 to 5,250), 61 users notified",
        ),
        (
            {"saved_gpu_h": NONE, "complete": 1, "smallest_ratio": 0.35},
            "held back. A saving of 35 % of the idle GPU-hours can be shown by 26 July 2027 (in 80 of 100 cases).",
        ),
        ({"saved_gpu_h": NONE, "smallest_ratio": 1.4}, "With so few users no effect can be shown"),
        ({"state": "planned"}, "Begins on 3 May 2027: 61 users notified, 59 held back."),
        ({"notified": 1}, "1 user notified"),
    ],
)
def test_every_outcome_has_its_words(changes: dict[str, object], has: str) -> None:
    """What is not shown is not claimed, and a loss is called one."""
    assert has in said(**changes)


@pytest.mark.parametrize(
    ("changes", "has"),
    [
        ({"leaked": 3}, "3 notices reached users that are held back"),
        ({"without_data": 4}, "4 of 12 weeks are left out"),
        ({"notified_unknown_ratio": 0.3, "other_unknown_ratio": 0.1}, "30 % of the GPU-hours of those notified"),
        ({"largest_unit_ratio": 0.5}, "one user holds 50 % of the GPU-hours"),
        ({"withheld": 0, "notices": 0}, "nothing was sent or held back"),
        ({"notified": 0, "held_back": 0}, "no user of it has a GPU job"),
    ],
)
def test_what_weakens_the_answer_is_said(changes: dict[str, object], has: str) -> None:
    """Each doubt is a line; without a doubt there is none."""
    assert any(has in problem for problem in with_sentence(replace(EFFECT, **changes)).problems)
    assert not with_sentence(EFFECT).problems


def test_the_text_fits_a_terminal_and_is_harmless() -> None:
    """No line is wider than 100 columns, and names from files cannot control the terminal."""
    evil = replace(with_sentence(EFFECT), what=["policy:\x1b[2Jx"])
    text = effects_text(EffectsDocument(generated=MAY, campaigns=[evil], errors=["bad\x07.toml"]), Look())
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)
    assert max(map(len, text.splitlines())) <= 100
    empty = effects_text(EffectsDocument(generated=MAY, campaigns=[], errors=[]), Look())
    assert "no saving is claimed" in empty


def test_before_and_after_has_the_warning_above() -> None:
    """Without a campaign the difference is shown below the words that it is no effect."""
    side = SplitSide(
        start=MAY, end=MAY + 86400, held_gpu_h=10, idle_gpu_h=5, unknown_gpu_h=0, jobs=3, failed=1, timed_out=0
    )
    text = split_text(SplitDocument(generated=MAY, warning=SPLIT_WARNING, before=side, after=side), Look())
    assert text.index("difference, not an effect") < text.index("before")
