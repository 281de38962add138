"""What the user reads: three short harmless lines with his own numbers and the exact option."""

import unicodedata
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.advice.policy.builders import BAD, FAILS, FEWER, GPUS, REJECTING, WASTES, Day, asking, decide

from gpuwaste.advice.policy.user_message import line
from gpuwaste.core.text import masked
from gpuwaste.jobs.verdict import MAX_LINE


def test_a_warning_says_what_why_and_which_option() -> None:
    """What the user's own jobs did, the option without #SBATCH, and where to read more."""
    assert decide(WASTES, REJECTING, last_job=4698).lines == (
        "gpuwaste: your last 14 jobs named train used 1 of 4 GPUs",
        "gpuwaste: use --gres=gpu:1",
        "gpuwaste: details: gpuwaste job 4698",
    )


def test_one_earlier_job_is_a_fact_and_no_estimate() -> None:
    """A single earlier job is "your last job"; no line calls anything likely or probable."""
    once = replace(GPUS, basis=1, why=("your last job named train used 1 of 4 GPUs",))
    policy = '[policy]\nmode = "warn"\n[targets.gpus]\nwarn = 0.75\nbasis = 1\n'
    lines = decide(WASTES, policy, expected=(once,), last_job=7).lines
    assert lines[0] == "gpuwaste: your last job named train used 1 of 4 GPUs"
    assert not any(word in line for line in lines for word in ("likely", "probably", "estimated"))


def test_details_are_left_out_where_three_lines_are_taken_or_no_job_is_known() -> None:
    """A long reason takes a line of its own; without an earlier job of this name there is nothing to read."""
    long = replace(FAILS, why=("x" * 120,))
    lines = decide(BAD, REJECTING, expected=(long,), last_job=7).lines
    assert len(lines) == 3
    assert not any("details:" in found for found in (*lines, *decide(BAD, REJECTING).lines))


def test_a_reject_names_the_policy_and_the_override() -> None:
    """The override is in the last line wherever it is allowed."""
    what = "gpuwaste: rejected by policy strict: this job will probably fail (estimated 97 %)"
    how = "gpuwaste: see how your last jobs ended: gpuwaste report"
    assert decide(BAD, REJECTING).lines == (
        what,
        "gpuwaste: 6 of your last 8 jobs failed",
        f"{how}, or resubmit with --comment=gpuwaste:override=REASON",
    )
    assert decide(BAD, REJECTING, last_job=7).lines == (
        f"{what}; 6 of your last 8 jobs failed",
        f"{how}, or resubmit with --comment=gpuwaste:override=REASON",
        "gpuwaste: details: gpuwaste job 7",
    )
    assert decide(BAD, f"{REJECTING}[override]\nallowed = false\n").lines[2] == how


def test_less_than_half_is_not_called_probable() -> None:
    """An estimate of 40 % above a threshold of 30 % says that the job may fail."""
    policy = '[policy]\nmode = "warn"\n[targets.failure]\nwarn = 0.3\n'
    lines = decide(BAD, policy, expected=(replace(FAILS, p=0.4, why=()),)).lines
    assert lines[0] == "gpuwaste: this job may fail (estimated 40 %)"


def test_overrides_that_are_used_up_are_said() -> None:
    """The last line says so in place of the override."""
    day = Day({("override", "alice"): 5})
    lines = decide(BAD, REJECTING, comment="gpuwaste:override=x", day=day).lines
    assert lines[2].endswith("(your 5 overrides of today are used up)")


def test_an_option_is_whole_or_not_there() -> None:
    """An option is copied: one that has no room beside the override is left out, never cut."""
    policy = '[policy]\nmode = "reject"\n[targets.gpus]\nreject = 0.9\n[sample]\npass_ratio = 0\n'
    override = ", or resubmit with --comment=gpuwaste:override=REASON"
    for size, whole in ((40, True), (500, False)):
        option = f"--gres=gpu:{'a' * size}"
        told = decide(WASTES, policy, suggestions=(replace(FEWER, option=option),)).lines[1]
        assert told.endswith(override)
        assert len(told) <= MAX_LINE
        assert ("--gres" in told) is (option in told) is whole


def test_the_strongest_comes_first() -> None:
    """A reject for failures goes before a warning on GPUs, and its advice stands alone."""
    lines = decide(WASTES, REJECTING, script="same", expected=(GPUS, FAILS)).lines
    assert "will probably fail" in lines[0]
    assert "--gres" not in lines[2]


def test_shadow_keeps_the_lines_that_would_have_been() -> None:
    """They are in the decision for operators; its action shows none."""
    shadow = decide(WASTES, REJECTING.replace('mode = "reject"', 'mode = "shadow"'))
    assert shadow.lines == decide(WASTES, REJECTING).lines
    assert shadow.action == "pass"


def test_the_history_s_numbers_are_not_called_an_estimate() -> None:
    """A share of three jobs is no probability of 100 %."""
    lines = decide(BAD, REJECTING, expected=(replace(FAILS, source="history", basis=3, p=1.0),)).lines
    assert lines[0] == "gpuwaste: rejected by policy strict: 6 of your last 8 jobs failed"


def test_a_limit_is_advised_never_changed() -> None:
    """A warning of a timeout asks the user for another limit; no time_min is set."""
    expected = (replace(FAILS, target="timeout"),)
    decision = decide(BAD, '[policy]\nmode = "warn"\n[targets.timeout]\nwarn = 0.5\n', expected=expected)
    assert "--time" in decision.lines[2]
    assert decision.time_min_s is None


@given(st.text(max_size=3000))
def test_any_text_becomes_one_harmless_line(text: str) -> None:
    """No control, format, surrogate or combining character is left, and the length is bound."""
    made = line(text)
    assert len(made) <= MAX_LINE
    assert made.startswith("gpuwaste: ")
    assert all(unicodedata.category(c)[0] in "LNPS" or c == " " for c in made)


def test_names_of_jobs_stay_readable() -> None:
    """Letters of any script stay; escapes and reversals of direction do not."""
    assert masked("naïve 训练 \x1b[31m \u202e x\n") == "naïve 训练 ?[31m ? x?"


@given(st.text(max_size=400), st.text(max_size=400), st.text(max_size=400))
def test_hostile_names_reasons_and_options_are_masked(name: str, why: str, option: str) -> None:
    """Whatever comes from users: three lines at most, each bounded and printable."""
    expected = (replace(GPUS, why=(why,)),)
    decision = decide(
        WASTES,
        REJECTING,
        request=asking(name=name),
        expected=expected,
        suggestions=(replace(FEWER, option=option),),
    )
    assert len(decision.lines) <= 3
    assert all(len(found) <= MAX_LINE and masked(found) == found for found in decision.lines)
