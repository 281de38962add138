"""The catalogue of actions: every kind declares itself, and no option lets a text break out of its place."""

import pytest
from msgspec.structs import replace

from gpuwaste.act.actions.action_kind import ActionKind, SiteProgram, actions
from gpuwaste.act.actions.action_types import ActionEntry

GOOD = {
    "comment": {"text": "idle for two hours"},
    "drain": {"reason": "Xid 79"},
    "extend_limit": {"by": "1:00:00", "at_most": "2-00:00:00"},
    "promote": {"to": "night-2"},
    "resubmit": {"part": "4:00:00"},
    "lower_request": {"gpus": "1", "time_limit": "4:00:00", "memory": "32G"},
    "shrink": {"nodes": "{ledger.idle_nodes}"},
    "notify": {"subject": "Your job", "text": "Dear user,\n\tyour job is idle.\n"},
}
HOSTILE = (
    "a\nBcc: all@example.org", "a\r\nX: y", "a\0b", "a\x1b[31mb", "a\x85b", "a\u2028b", "a\ud800b", "", "  ",
    "x" * 100_000,
)  # fmt: skip


@pytest.mark.parametrize("kind", actions().values(), ids=lambda kind: kind.name)
def test_each_kind_declares_itself(kind: ActionKind) -> None:
    """A kind has a sentence, rights, and options whose defaults are good; what it lacks or does not know is named."""
    assert kind.about.endswith(".")
    assert kind.needs in {"none", "operator", "administrator", "program"}
    assert (kind.needs == "program") == (kind.execution is not None and isinstance(kind.execution.act, SiteProgram))
    assert (kind.needs == "none") == (kind.execution is None)
    good = GOOD.get(kind.name, {})
    assert not kind.problem(good)
    for option in kind.options:
        assert option.about
        assert option.default is None or not option.check(option.default)
        if option.default is None:
            lacking = {name: text for name, text in good.items() if name != option.name}
            assert f"option {option.name} is missing" in kind.problem(lacking)
    assert "unknown option 'colour'" in kind.problem({**good, "colour": "red"})


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_breaks_a_header_or_a_line(text: str) -> None:
    """Control characters, line breaks, lone surrogates, empty and endless texts are refused in one printable line."""
    for name, option in (("comment", "text"), ("drain", "reason"), ("notify", "subject")):
        problem = actions()[name].problem({**GOOD[name], option: text})
        assert f"{name}: option {option}: " in problem
        assert problem.isprintable()
    if text != HOSTILE[0]:  # the text of a mail has lines
        assert actions()["notify"].problem({**GOOD["notify"], "text": text})


def test_a_comment_forges_no_verdict() -> None:
    """`;gw=ID` in a job's comment is the advice's own mark: no rule writes one."""
    assert "; and = are not allowed" in actions()["comment"].problem({"text": "x;gw=0123456789abcdef"})


@pytest.mark.parametrize("by", ["0", "-5", "later", "9" * 400, "4000-00:00:00", "UNLIMITED", "1:2:3:4"])
def test_durations_are_bounded(by: str) -> None:
    """No limit is raised by nothing, by years, or by what is no duration."""
    problem = actions()["extend_limit"].problem({"by": by, "at_most": "1:00:00"})
    assert "option by: " in problem
    assert len(problem) < 200


def test_the_order_of_regret() -> None:
    """What takes nothing comes first, what loses a run last; each kind says its place once."""
    order = ["notify", "lower_request", "checkpoint", "shrink", "requeue", "cancel"]
    found = [actions()[name].severity for name in order]
    assert found == sorted(set(found))
    for kind in actions().values():
        assert kind.severity >= (1 if kind.ends_runs else 0), kind.name


def test_what_a_lower_request_may_say() -> None:
    """At least one bound, each a number that lowers; no list of nodes but the fact's or plain names."""
    lower, shrink = actions()["lower_request"], actions()["shrink"]
    assert "give at least one of gpus, time_limit and memory" in lower.problem({})
    assert "give at least one" in lower.problem({"gpus": "keep"})
    assert not lower.problem({"memory": "500M"})
    bad = {
        "gpus": ["0", "-1", "1.5", "all", "999999", "1 TimeLimit=1"],
        "time_limit": ["0", "UNLIMITED", "9" * 400],
        "memory": ["0G", "32", "1 G", "-5G", "99999999999G"],
    }
    for name, texts in bad.items():
        for text in texts:
            assert f"option {name}: " in lower.problem({name: text}), text
    for text in ("", "gpu[1-2]", "a b", "-x", "a,,b", "x" * 10_000, "a\nb", "{job.user}"):
        assert "option nodes: " in shrink.problem({"nodes": text}), text
    assert not shrink.problem({"nodes": "gpu1,gpu2"})


def test_what_an_intent_must_name() -> None:
    """An action on a run needs the run and its user; one on a node the node; mail neither."""
    none = ActionEntry(
        id="1", rule="r", rule_hash="", kind="cancel", subject="gw/7@100", approve="none", decided=0, expires=1,
        status="intended", since=0,
    )  # fmt: skip
    kinds = actions()
    assert "does not name a run" in kinds["cancel"].refusal(none)
    userless = replace(none, cluster="gw", job_id=7, start=100)
    assert "does not name a run" in kinds["cancel"].refusal(userless)
    assert not kinds["cancel"].refusal(replace(userless, user="alice"))
    drain = replace(none, kind="drain", subject="gpu1", options={"reason": "x"})
    assert "does not name a node" in kinds["drain"].refusal(drain)
