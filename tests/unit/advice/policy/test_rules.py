"""Every rule, alone and with others: what is said, what would have been, what held it back, and the steps."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.advice.policy.builders import (
    BAD,
    FAILS,
    FEWER,
    GPUS,
    REJECTING,
    REQUEST,
    WASTES,
    Day,
    asking,
    decide,
    no_chance,
    policies,
)

from gpuwaste.advice.policy.expected_waits import WaitRow, WaitTable
from gpuwaste.advice.policy.policy_case import Expectation, PolicyCase, PolicyOutcome, Suggestion
from gpuwaste.advice.policy.rules import JUDGED, right_size, rules
from gpuwaste.advice.policy.size_table import SizeTable
from gpuwaste.jobs.history.job_names import normal_name
from gpuwaste.ledger.right_size.size_types import SizeRow


def _said(decision: PolicyOutcome) -> tuple[str, str, str]:
    return decision.action, decision.would_be, decision.held


def _rules(decision: PolicyOutcome) -> list[str]:
    return [step.rule for step in decision.steps]


def test_each_rule_has_a_place_of_its_own() -> None:
    """No two rules share an ORDER; judging comes before holding back."""
    orders = {name: module.ORDER for name, module in rules().items()}
    assert len(set(orders.values())) == len(orders)
    judging = {name for name, order in orders.items() if order < JUDGED}
    assert judging == {"unread", "off", "exempt", "thresholds", "whole_node", "script_changed", "modify"}


_MODES = [
    ("off", ("pass", "pass", "off")),
    ("shadow", ("pass", "reject", "shadow")),
    ("annotate", ("annotate", "reject", "annotate")),
    ("warn", ("warn", "reject", "warn")),
    ("reject", ("reject", "reject", "")),
]


@pytest.mark.parametrize(("mode", "said"), _MODES)
def test_the_mode_bounds_the_action(mode: str, said: tuple[str, str, str]) -> None:
    """The same submission under each mode."""
    assert _said(decide(BAD, REJECTING.replace('mode = "reject"', f'mode = "{mode}"'))) == said


_THRESHOLDS = [
    ("failure", "warn = 0.6\nreject = 0.9", replace(FAILS, p=0.59), "pass"),
    ("failure", "warn = 0.6\nreject = 0.9", replace(FAILS, p=0.6), "warn"),
    ("failure", "warn = 0.6\nreject = 0.9", replace(FAILS, p=0.9), "reject"),
    ("failure", "reject = 0.9", replace(FAILS, p=0.89), "pass"),
    ("failure", 'warn = "model"', replace(FAILS, p=0.2, level="warn"), "warn"),
    ("failure", 'warn = "model"', replace(FAILS, p=0.99, level=""), "pass"),
    ("failure", 'warn = "model"\nreject = "model"', replace(FAILS, level="reject"), "reject"),
    ("failure", 'reject = "model"', replace(FAILS, level="warn"), "pass"),
    ("failure", 'warn = "model"', replace(FAILS, p=0.75, level="", source="history", basis=8), "warn"),
    ("failure", 'reject = "model"', replace(FAILS, p=1.0, level="", source="history", basis=3), "reject"),
    ("failure", 'reject = "model"', replace(FAILS, p=1.0, level="", source="history", basis=2), "pass"),
    ("timeout", "warn = 0.5", FAILS, "pass"),
    ("timeout", "warn = 0.5", replace(FAILS, target="timeout"), "warn"),
    ("failure_or_cancel", "warn = 0.5", replace(FAILS, target="failure_or_cancel"), "warn"),
    ("gpus", "warn = 0.5", Expectation("gpu_underused", "site model", 900, p=0.6), "warn"),
    ("gpus", "warn = 0.5", Expectation("gpu_underused", "history", 1, p=1.0), "pass"),
    ("gpus", "warn = 0.9", replace(GPUS, source="site model", quantiles={"0.5": 1.0, "0.95": 3.2}), "warn"),
    ("gpus", "warn = 0.9", replace(GPUS, source="site model", quantiles={"0.5": 1.0, "0.95": 4.0}), "pass"),
    ("gpus", 'warn = "model"', GPUS, "warn"),
    ("gpus", 'warn = "model"', replace(GPUS, basis=1), "pass"),
    ("walltime", "warn = 0.9", Expectation("walltime", "site model", 900, quantiles={"0.5": 60, "0.99": 300}), "warn"),
    ("walltime", "warn = 0.9", Expectation("walltime", "site model", 900, quantiles={"0.5": 60, "0.99": 36e3}), "pass"),
    ("memory", "warn = 0.9", Expectation("memory", "site model", 900, quantiles={"0.95": 1e9}), "warn"),
]  # fmt: skip
_SUGGESTIONS = (FEWER, Suggestion("time_limit", "--time=00:10:00", "", 1.0), Suggestion("memory", "--mem=2G", "", 1.0))


@pytest.mark.parametrize(("target", "rule", "expected", "would_be"), _THRESHOLDS)
def test_thresholds(target: str, rule: str, expected: Expectation, would_be: str) -> None:
    """A number at the threshold reaches it; "model" is the bundle's point, and stands for numbers where it has none."""
    policy = f"[targets.{target}]\n{rule}\n"
    request = asking(mem_b=64 << 30)
    facts = replace(BAD, request=request, expected=(expected,), suggestions=_SUGGESTIONS)
    assert decide(facts, policy).would_be == would_be


@pytest.mark.parametrize("target", ["gpus", "walltime", "memory"])
def test_without_a_suggestion_amounts_say_nothing(target: str) -> None:
    """A smaller amount that would raise the risk is not suggested, so it is not asked for either."""
    name = "gpus_needed" if target == "gpus" else target
    expected = Expectation(name, "site model", 900, quantiles={"0.99": 1.0})
    facts = replace(BAD, request=asking(mem_b=64 << 30), expected=(expected,))
    assert decide(facts, f"[targets.{target}]\nwarn = 0.1\n").would_be == "pass"


def test_unused_gpus_count_without_a_suggestion() -> None:
    """GPUs that will most likely stay idle are told though no smaller request is known."""
    expected = (Expectation("gpu_underused", "site model", 900, p=0.9),)
    decision = decide(WASTES, REJECTING, expected=expected, suggestions=())
    assert (decision.action, decision.triggers) == ("warn", {"gpus": 0.9})


def test_whole_nodes_get_no_advice_on_gpus() -> None:
    """Failures are still told there."""
    assert _said(decide(WASTES, REJECTING)) == ("warn", "warn", "")
    decision = decide(WASTES, REJECTING, whole_node=True)
    assert _said(decision) == ("pass", "pass", "")
    assert "whole_node" in _rules(decision)
    assert decision.triggers == {}
    both = decide(WASTES, REJECTING, whole_node=True, script="same", expected=(FAILS, GPUS))
    assert (both.action, list(both.triggers)) == ("reject", ["failure"])


_REJECT_GPUS = '[policy]\nmode = "reject"\n[targets.gpus]\nreject = 0.9\n[sample]\npass_ratio = 0\n'


@pytest.mark.parametrize(("script", "action"), [("same", "reject"), ("unknown", "warn"), ("changed", "warn")])
def test_failures_reject_only_the_same_script(script: str, action: str) -> None:
    """A changed script may be the repair; one that is not known may be too."""
    decision = decide(BAD, REJECTING, script=script)
    assert (decision.action, decision.would_be) == (action, action)
    assert ("script_changed" in _rules(decision)) is (script != "same")


@pytest.mark.parametrize(("script", "action"), [("same", "reject"), ("unknown", "reject"), ("changed", "warn")])
def test_gpus_reject_an_unknown_script_too(script: str, action: str) -> None:
    """What was measured on GPUs does not rest on failures; a script that is known to have changed is never rejected."""
    assert decide(WASTES, _REJECT_GPUS, script=script).action == action


def test_a_modification_is_at_most_warned() -> None:
    """Rejected as a submission, warned as a modification."""
    decision = decide(BAD, REJECTING, op="modify")
    assert _said(decision) == ("warn", "warn", "")
    assert "modify" in _rules(decision)


_EXEMPT: list[tuple[str, dict[str, Any]]] = [
    ('users = ["al*"]', {}),
    ('accounts = ["physics"]', {}),
    ('partitions = ["gpu"]', {"request": asking(partition="x,gpu")}),
    ('qos = ["normal"]', {}),
    ('names = ["train*"]', {}),
    ('groups = ["staff"]', {"groups": frozenset({"staff"})}),
]


@pytest.mark.parametrize(("exempt", "changed"), _EXEMPT)
def test_who_is_exempt_hears_nothing(exempt: str, changed: dict[str, Any]) -> None:
    """One match is enough; nothing would have been done either, and the step says why."""
    decision = decide(BAD, f"{REJECTING}[exempt]\n{exempt}\n", **changed)
    assert _said(decision) == ("pass", "pass", "exempt")
    assert (decision.lines, _rules(decision)) == ((), ["exempt"])
    assert decide(BAD, f'{REJECTING}[exempt]\nusers = ["bob"]\nnames = ["x"]\n').action == "reject"


def test_below_the_floor_it_falls_back_to_shadow() -> None:
    """Enough verdicts and too few of them right; not with too few verdicts, nor with good ones, nor without a floor."""
    policy = f"{REJECTING}[floor]\nprecision = 0.7\nmin_verdicts = 20\n"

    def said(precision: float, verdicts: int, text: str = policy) -> tuple[str, str, str]:
        return _said(decide(BAD, text, day=Day(known={"strict": (precision, verdicts)})))

    assert said(0.69, 20) == ("pass", "reject", "floor")
    assert said(0.69, 19) == said(0.7, 20) == ("reject", "reject", "")
    assert said(0.0, 1000, f"{REJECTING}[floor]\nprecision = 0\n") == ("reject", "reject", "")
    assert _said(decide(BAD, policy, day=Day(known={"other": (0.0, 1000)}))) == ("reject", "reject", "")
    steps = decide(BAD, policy, day=Day(known={"strict": (0.25, 40)})).steps
    assert "25 % of its last 40 warnings and rejects were right" in steps[-1].text


def test_a_stale_advisor_says_nothing() -> None:
    """Neither a reject nor a warning."""
    assert _said(decide(BAD, REJECTING, stale=True)) == ("pass", "reject", "stale")
    assert _said(decide(WASTES, REJECTING, stale=True)) == ("pass", "warn", "stale")


_OVERRIDE = "gpuwaste:override=the data was fixed"


def test_an_override_lets_a_rejected_job_pass_and_is_recorded() -> None:
    """Beside other text of the comment too; nothing is shown at the terminal."""
    for comment in (_OVERRIDE, f"project 7; {_OVERRIDE};x=1", _OVERRIDE.replace("gpuwaste", "GPUwaste")):
        decision = decide(BAD, REJECTING, comment=comment)
        assert _said(decision) == ("annotate", "reject", "override")
        assert decision.override == "the data was fixed"


_NO_OVERRIDE = [
    (REJECTING, "gpuwaste:override=", {}),
    (REJECTING, "gpuwaste:override=  ;x", {}),
    (REJECTING, "xgpuwaste:override=y", {}),
    (f"{REJECTING}[override]\nallowed = false\n", _OVERRIDE, {}),
    (f"{REJECTING}[override]\nper_user_per_day = 2\n", _OVERRIDE, {("override", "alice"): 2}),
]


@pytest.mark.parametrize(("policy", "comment", "had"), _NO_OVERRIDE)
def test_an_override_that_does_not_count(policy: str, comment: str, had: dict[tuple[str, str], int]) -> None:
    """Without a reason, not allowed, or used up: the reject stands and no reason is recorded."""
    decision = decide(BAD, policy, comment=comment, day=Day(had))
    assert (_said(decision), decision.override) == (("reject", "reject", ""), "")


def test_an_override_counts_only_against_a_reject() -> None:
    """A warning stays a warning, and in shadow nothing is overridden."""
    assert decide(WASTES, REJECTING, comment=_OVERRIDE).override == ""
    shadow = decide(BAD, REJECTING.replace('mode = "reject"', 'mode = "shadow"'), comment=_OVERRIDE)
    assert (shadow.override, shadow.held) == ("", "shadow")


def test_a_hostile_reason_is_made_harmless() -> None:
    """Control characters become question marks, and the text is cut."""
    decision = decide(BAD, REJECTING, comment=f"gpuwaste:override=\x1b[2J{'x' * 5000}")
    assert decision.override.startswith("?[2Jxxx")
    assert len(decision.override) == 200


def test_the_budget_turns_rejects_into_warnings() -> None:
    """The user's own rejects count; another user's do not; a budget of 0 never rejects."""
    policy = f"{REJECTING}[budget]\nrejects_per_user_per_day = 2\n"
    assert _said(decide(BAD, policy, day=Day({("reject", "alice"): 1}))) == ("reject", "reject", "")
    spent = decide(BAD, policy, day=Day({("reject", "alice"): 2}))
    assert _said(spent) == ("warn", "reject", "budget")
    assert "rejected" not in spent.lines[0]
    assert decide(BAD, policy, day=Day({("reject", "bob"): 2})).action == "reject"
    assert decide(BAD, policy.replace("= 2", "= 0")).action == "warn"


@pytest.mark.long
def test_about_one_reject_in_twenty_passes_at_random() -> None:
    """Drawn from a seed: 5 % by default, marked, and without a word at the terminal."""
    policy = REJECTING.replace("[sample]\npass_ratio = 0\n", "")
    draw = random.Random(7)
    found = [decide(BAD, policy, chance=draw.random) for _ in range(4000)]
    passed = [decision for decision in found if decision.sampled]
    assert 0.04 < len(passed) / len(found) < 0.06
    assert {_said(decision) for decision in passed} == {("pass", "reject", "random")}
    assert {_said(decision) for decision in found if not decision.sampled} == {("reject", "reject", "")}


def test_warnings_are_not_drawn() -> None:
    """Chance is asked for real rejects alone: not for a warning, a budget that is spent, or an override."""

    def never() -> float:
        raise AssertionError

    policy = REJECTING.replace("pass_ratio = 0", "pass_ratio = 1")
    assert decide(WASTES, policy, chance=never).action == "warn"
    assert decide(BAD, policy, chance=never, comment=_OVERRIDE).held == "override"
    assert decide(BAD, policy, chance=never, day=Day({("reject", "alice"): 5})).held == "budget"


def test_a_try_hears_what_the_job_would_hear() -> None:
    """--test-only leaves nothing to chance."""
    policy = REJECTING.replace("pass_ratio = 0", "pass_ratio = 1")
    assert decide(BAD, policy, chance=lambda: 0.0).sampled
    decision = decide(BAD, policy, test_only=True, chance=lambda: 0.0)
    assert (_said(decision), decision.sampled) == (("reject", "reject", ""), False)


_RUNS = Expectation("walltime", "site model", 900, quantiles={"0.5": 600.0, "0.99": 30_010.0})
_TIME_MIN = '[policy]\nmode = "{}"\n[time_min]\nratio = 0.5\n'


@pytest.mark.parametrize(
    ("mode", "expected", "changed", "time_min_s"),
    [
        ("warn", _RUNS, {}, 30_060),  # the quantile, in whole minutes
        ("annotate", replace(_RUNS, quantiles={"0.99": 60.0}), {}, 18_000),  # half the limit
        ("warn", replace(_RUNS, quantiles={"0.99": 35_990.0}), {}, None),  # nothing is saved
        ("warn", replace(_RUNS, quantiles={"0.5": 60.0}), {}, None),  # half of the jobs run longer
        ("warn", replace(_RUNS, source="history", basis=2, quantiles={"0.67": 60.0}), {}, None),
        ("warn", replace(_RUNS, source="history", basis=3, quantiles={"0.75": 60.0}), {}, 18_000),
        ("shadow", _RUNS, {}, None),
        ("warn", _RUNS, {"op": "modify"}, None),
        ("warn", _RUNS, {"test_only": True}, None),
        ("warn", _RUNS, {"stale": True}, None),
        ("warn", _RUNS, {"request": asking(time_limit_s=None)}, None),
    ],
)
def test_time_min(mode: str, expected: Expectation, changed: dict[str, Any], time_min_s: int | None) -> None:
    """Set where the policy says so and something is saved, never in shadow, never for a modification or a try."""
    decision = decide(BAD, _TIME_MIN.format(mode), expected=(expected,), **changed)
    assert decision.time_min_s == time_min_s


def test_time_min_is_never_set_unasked() -> None:
    """Without the table, and for a job that is rejected."""
    assert decide(BAD, REJECTING, expected=(_RUNS,)).time_min_s is None
    assert decide(BAD, f"{REJECTING}[time_min]\n", expected=(FAILS, _RUNS)).time_min_s is None


_STARTS = '[policy]\nmode = "{}"\n[expected_start]\nmin_wait_minutes = 10\n'
_NOW = REQUEST.submit


def _waits(gpu4: Mapping[str, tuple[int, int, int]], at: int = _NOW - 60) -> WaitTable:
    """Return waits of four GPUs by limit (h2: two hours), and of two GPUs of another partition."""
    other = WaitRow(partition="big", gpu_type="", gpus=2, limit_s=36000, p10=0, p50=0, p90=0)
    rows = [
        WaitRow(partition="gpu", gpu_type="", gpus=4, limit_s=int(name[1:]) * 3600, p10=w[0], p50=w[1], p90=w[2])
        for name, w in gpu4.items()
    ]
    return WaitTable(at, (other, *rows))


def _start_of(mode: str = "warn", waits: WaitTable | None = None, **changed: Any) -> PolicyOutcome:
    return decide(replace(BAD, expected=()), _STARTS.format(mode), waits=waits, **changed)


LATE = {"h1": (0, 0, 0), "h2": (0, 60, 600), "h12": (6660, 9060, 15060)}


def test_the_expected_start_is_one_line_at_sbatch() -> None:
    """The next longer limit's waits count from the table's instant; the longest limit that starts at once is named."""
    decision = _start_of(waits=_waits(LATE))
    assert decision.printed == ("gpuwaste: expected start 14:30 (80 %: 13:50 to 16:10); with --time=02:00:00 at once",)
    assert decision.expected_start == (_NOW + 6600, _NOW + 9000, _NOW + 15000)
    assert (decision.action, decision.would_be, decision.reply_action) == ("pass", "pass", "warn")


@pytest.mark.parametrize(
    ("mode", "waits", "changed", "known"),
    [
        ("warn", None, {}, False),
        ("warn", _waits(LATE, _NOW - 301), {}, False),  # too old
        ("warn", _waits(LATE, _NOW + 5), {}, False),  # of the future
        ("warn", _waits({"h12": (0, 600, 700)}), {}, True),  # nine minutes: sooner than the policy speaks of
        ("warn", _waits({"h2": (0, 0, 0)}), {}, False),  # no row of so long a limit
        ("warn", _waits({}), {}, False),  # nor of so many GPUs
        ("shadow", _waits(LATE), {}, True),
        ("annotate", _waits(LATE), {}, True),
        ("off", _waits(LATE), {}, False),
        ("warn", _waits(LATE), {"op": "modify"}, False),
    ],
)
def test_where_no_expected_start_is_printed(
    mode: str, waits: WaitTable | None, changed: dict[str, Any], known: bool
) -> None:
    """Without fresh waits there is none; shadow and annotate know it for the score and print nothing."""
    decision = _start_of(mode, waits, **changed)
    assert decision.printed == ()
    assert (decision.expected_start is not None) == known


def test_no_policy_prints_a_start_unasked() -> None:
    """The table [expected_start] is what switches it on; beside a warning the lines are three at most."""
    assert decide(BAD, REJECTING, waits=_waits(LATE)).expected_start is None
    both = REJECTING.replace('mode = "reject"', 'mode = "warn"') + "[expected_start]\n"
    printed = decide(BAD, both, waits=_waits(LATE)).printed
    assert len(printed) == 3


def test_of_two_partitions_the_sooner_one() -> None:
    """A request of two partitions has the waits of that in which it starts first; of an unknown one it has none."""
    waits = _waits({"h12": (100, 200, 300)})
    asked = replace(BAD, expected=(), request=replace(REQUEST, partition="gpu,big", gpus=2), waits=waits)
    assert decide(asked, _STARTS.format("warn")).expected_start == (_NOW, _NOW, _NOW)
    nowhere = replace(asked, request=replace(REQUEST, partition="none"))
    assert decide(nowhere, _STARTS.format("warn")).expected_start is None


_SIZE = {
    "user": REQUEST.user,
    "partition": REQUEST.partition,
    "name": normal_name(REQUEST.name),
    "gpus": REQUEST.gpus,
    "gpu_type": "a100",
    "runs": 20,
}
_SIZES = SizeTable(
    tuple(SizeRow(option=option, **_SIZE) for option in ("--gres=gpu:1g.10gb:1", "--mem=6G"))  # type: ignore[arg-type]
)
_SIZED = '[policy]\nmode = "{}"\n[right_size]\nlines = {}\n'


def test_a_smaller_request_is_a_line_at_sbatch() -> None:
    """As many lines as the policy has, the first finding first; no action is raised by them."""
    asked = replace(BAD, expected=(), sizes=_SIZES)
    decision = decide(asked, _SIZED.format("warn", 1))
    assert decision.printed == ("gpuwaste: --gres=gpu:1g.10gb:1 would have been enough for the last 20 runs",)
    assert (decision.action, decision.would_be, decision.reply_action) == ("pass", "pass", "warn")
    assert len(decide(asked, _SIZED.format("warn", 2)).printed) == 2


@pytest.mark.parametrize(
    ("mode", "changed"),
    [
        ("shadow", {}),
        ("annotate", {}),
        ("warn", {"op": "modify"}),
        ("warn", {"request": replace(REQUEST, name="another")}),
        ("warn", {"request": replace(REQUEST, gpus=REQUEST.gpus + 1)}),
        ("warn", {"request": replace(REQUEST, gpu_type="h100")}),
        ("warn", {"request": replace(REQUEST, partition="other")}),
        ("warn", {"stale": True}),
        ("warn", {"sizes": None}),
    ],
)
def test_where_no_smaller_request_is_printed(mode: str, changed: dict[str, Any]) -> None:
    """Other jobs than those that were compared, and modes that print nothing, have no line."""
    asked = replace(BAD, expected=(), sizes=_SIZES)
    assert decide(replace(asked, **changed), _SIZED.format(mode, 3)).printed == ()


def test_no_smaller_request_is_printed_that_the_job_requests_already() -> None:
    """A limit below the one that past runs would have fitted has no line."""
    row = SizeRow(option="--time=01:00:00", time_limit_s=3600, **_SIZE)  # type: ignore[arg-type]
    asked = replace(BAD, expected=(), sizes=SizeTable((row,)))
    assert decide(asked, _SIZED.format("warn", 1)).printed
    shorter = replace(asked, request=replace(REQUEST, time_limit_s=3600))
    assert decide(shorter, _SIZED.format("warn", 1)).printed == ()


@pytest.mark.parametrize("held", ["floor", "random", "override"])
def test_smaller_requests_are_held_back_with_other_advice(held: str) -> None:
    """Nothing is printed where a rule has held the policy's warnings and rejects back."""
    policy = policies(_SIZED.format("reject", 3)).policies[0]
    case = PolicyCase(policy, replace(BAD, sizes=_SIZES), Day(), no_chance)
    case.action = "reject"
    case.hold("annotate" if held == "override" else "pass", held)
    right_size.apply(case)
    assert case.notes == ()
