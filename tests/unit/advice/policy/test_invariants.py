"""What holds for every policy and every submission: drawn at random, thousands of them."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.advice.policy.builders import FEWER, Day, asking, policies

from gpuwaste.advice.policy.policy_case import RANK, Expectation, PolicyOutcome, SubmissionFacts
from gpuwaste.advice.policy.rules.mode import MOST
from gpuwaste.jobs.verdict import ACTIONS, MAX_LINE, MODES, Mode

_P = st.floats(0, 1)
_SOURCE = st.sampled_from(["site model", "baseline", "history"])
_LEVEL = st.sampled_from(["", "warn", "reject"])
_PROBABILITY = st.builds(
    Expectation,
    st.sampled_from(["failure", "timeout", "failure_or_cancel", "gpu_underused"]),
    _SOURCE,
    st.integers(0, 20),
    p=_P,
    level=_LEVEL,
    why=st.just(("your last 3 jobs failed",)),
)
_QUANTITY = st.builds(
    Expectation,
    st.sampled_from(["walltime", "memory", "gpus_needed"]),
    _SOURCE,
    st.integers(0, 20),
    quantiles=st.dictionaries(st.sampled_from(["0.5", "0.9", "0.99"]), st.floats(0, 1e6)),
)
_FACTS = st.builds(
    SubmissionFacts,
    st.builds(
        asking,
        user=st.sampled_from(["alice", "bob"]),
        gpus=st.integers(0, 8),
        whole_node=st.none() | st.booleans(),
        comment=st.sampled_from(["", "gpuwaste:override=I know", "x"]),
    ),
    local_time=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)),  # noqa: DTZ001 the site's own time
    op=st.sampled_from(["submit", "modify"]),
    script=st.sampled_from(["same", "changed", "unknown"]),
    stale=st.booleans(),
    test_only=st.booleans(),
    expected=st.lists(_PROBABILITY | _QUANTITY, max_size=6).map(tuple),
    suggestions=st.sampled_from([(), (FEWER,)]),
)
_POINT = st.sampled_from(['"model"', "0.2", "0.5", "0.9"])


@st.composite
def _policy(draw: st.DrawFn) -> str:
    text = f'[policy]\nname = "drawn"\nmode = "{draw(st.sampled_from(MODES))}"\n'
    for target in draw(st.sets(st.sampled_from(["failure", "timeout", "failure_or_cancel", "gpus", "walltime"]))):
        point = draw(_POINT)
        text += f"[targets.{target}]\nwarn = {point}\nreject = {point}\n"
    text += f"[budget]\nrejects_per_user_per_day = {draw(st.integers(0, 3))}\n"
    text += f"[sample]\npass_ratio = {draw(st.sampled_from(['0', '0.05', '1']))}\n"
    text += draw(st.sampled_from(["", '[exempt]\nusers = ["bob"]\n']))
    return text + draw(st.sampled_from(["", "[time_min]\n"]))


_DAY = st.builds(
    Day,
    st.dictionaries(
        st.tuples(st.sampled_from(["reject", "override"]), st.sampled_from(["alice", "bob"])), st.integers(0, 6)
    ),
    st.just({}) | st.just({"drawn": (0.1, 100)}) | st.just({"drawn": (0.9, 100)}),
)


def _decided(text: str, facts: SubmissionFacts, day: Day, chance: float) -> tuple[PolicyOutcome, Any]:
    found = policies(text)
    return found.decide(facts, day, lambda: chance), found.policies[0]


@settings(max_examples=examples(400))
@given(_policy(), _FACTS, _DAY, st.floats(0, 0.999))
def test_what_always_holds(text: str, facts: SubmissionFacts, day: Day, chance: float) -> None:
    """Action within mode and would_be, no reject past budget or of a changed script, nobody exempt hears anything."""
    decision, policy = _decided(text, facts, day, chance)
    mode: Mode = policy.mode
    assert decision.action in ACTIONS
    assert RANK[decision.action] <= min(RANK[MOST[mode]], RANK[decision.would_be])
    assert (decision.held != "") == (decision.action != decision.would_be or decision.held in {"off", "exempt"})
    assert len(decision.lines) <= 3
    assert all(len(line) <= MAX_LINE for line in decision.lines)
    if decision.action in {"warn", "reject"}:
        assert decision.lines
        assert ("rejected" in decision.lines[0]) == (decision.action == "reject")
    if decision.action == "reject":
        assert day.spent("reject", facts.request.user) < policy.budget.rejects_per_user_per_day
        assert (facts.op, facts.stale) == ("submit", False)
        assert facts.script != "changed"
        assert facts.script == "same" or set(decision.triggers) & {"gpus", "walltime"}
        assert decision.time_min_s is None
    if policy.exempt.users and facts.request.user == "bob":
        assert (decision.action, decision.would_be, decision.lines) == ("pass", "pass", ())
    if decision.sampled:
        assert (decision.action, decision.would_be) == ("pass", "reject")
    if decision.time_min_s is not None:
        assert decision.time_min_s < (facts.request.time_limit_s or 0)
    if decision.override:
        assert day.spent("override", facts.request.user) < policy.override.per_user_per_day


@given(_policy(), _FACTS, _DAY)
def test_a_try_and_the_job_itself_hear_the_same(text: str, facts: SubmissionFacts, day: Day) -> None:
    """Apart from chance and time_min, --test-only changes nothing."""
    tried, _ = _decided(text, replace(facts, test_only=True), day, 0.0)
    real, _ = _decided(text, replace(facts, test_only=False), day, 0.999)
    if not real.sampled:
        assert (tried.action, tried.would_be, tried.lines) == (real.action, real.would_be, real.lines)


def test_a_day_of_rejects_never_exceeds_the_budget() -> None:
    """Charged after each reject as the advisor does: two rejects, then warnings."""
    found = policies(
        '[policy]\nmode = "reject"\n[targets.failure]\nreject = 0.5\n'
        "[budget]\nrejects_per_user_per_day = 2\n[sample]\npass_ratio = 0\n"
    )
    facts = SubmissionFacts(
        asking(), local_time=datetime(2026, 11, 18, 12), script="same",  # noqa: DTZ001 the site's own time
        expected=(Expectation("failure", "site model", 1, p=0.9),),
    )  # fmt: skip
    day, actions = Day(), []
    for _ in range(5):
        decision = found.decide(facts, day, lambda: 0.5)
        actions.append(decision.action)
        if decision.action == "reject":
            key = ("reject", facts.request.user)
            day.had[key] = day.had.get(key, 0) + 1
    assert actions == ["reject", "reject", "warn", "warn", "warn"]
