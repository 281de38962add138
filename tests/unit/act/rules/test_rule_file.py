"""Files of rules: a rule of eight lines, and each way in which a file is wrong."""

from pathlib import Path

import pytest

from gpuwaste.act.rules.rule_file import MAX_FILE_B, load_rule, load_rules, rule_from_toml
from gpuwaste.core.errors import ConfigError

RULE = """mode = "act"
where = "ledger.idle_s >= 1800.0"
since = "ledger.idle_s"
approve = "none"
notify = "none"
[[do]]
after = "2h"
action = "cancel"
"""
MAIL = 'action = "notify"\nsubject = "Job {job.id}"\ntext = "idle for {ledger.idle_s}"'


def test_a_rule_of_eight_lines() -> None:
    """The defaults are careful: exempt waste and a coverage below 0.8 are left alone, a day between two rounds."""
    rule = rule_from_toml(RULE.encode(), "idle.toml", "idle")
    assert (rule.head.mode, rule.steps[0].action, rule.steps[0].after_s) == ("act", "cancel", 7200)
    assert (rule.exempt.waste, rule.exempt.coverage_below.value, rule.head.cooldown) == (True, 0.8, 86400)


def test_a_rule_without_a_mode_only_observes() -> None:
    """Nothing is done by default."""
    rule = rule_from_toml(RULE.replace('mode = "act"', "").encode(), "idle.toml", "idle")
    assert rule.head.mode == "observe"
    assert not rule.does(rule.steps[0])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("idle_s >=", "idel_s >=", "idle.toml:2: where: unknown fact 'ledger.idel_s': did you mean 'ledger.idle_s'?"),
        ("mode", "mdoe", "idle.toml:1: unknown key 'mdoe': did you mean 'mode'?"),
        ('"act"', '"atc"', "idle.toml:1: mode: 'atc' is not a value of this key: did you mean 'act'?"),
        ('"2h"', '"2 hours"', "idle.toml:7: [[do]] 1 after: expected a duration"),
        ('"cancel"', '"cancle"', "idle.toml:8: [[do]] 1 action: unknown action 'cancle': did you mean 'cancel'?"),
        ('"cancel"', '"drain"\nreason = "x"', "is for a node"),
        ('"cancel"', '"cancel"\nforce = "x"', "unknown option 'force'"),
        ('"ledger.idle_s"', '"ledger.idle_gpus"', "idle.toml:3: since: unknown fact"),
        ("[[do]]", "[[doo]]", "unknown key 'doo': did you mean 'do'?"),
        ("[[do]]", "[exempt]\nusers = 'a'\n[[do]]", "[exempt] users: expected a list"),
        ("[[do]]", "[budget]\nuser_per_day = -1\n[[do]]", "negative"),
        ("mode", "on = ['job.startd']\nmode", "did you mean 'job.started'?"),
        ('[[do]]\nafter = "2h"\naction = "cancel"\n', "", "do: expected at least one table [[do]]"),
        ('"ledger.idle_s >= 1800.0"', "\"job.user.matches('[')\"", "missing ]"),
        ('"ledger.idle_s >= 1800.0"', "1", "expected str"),
    ],
)
def test_an_error_names_file_line_and_name(old: str, new: str, words: str) -> None:
    """One line, with a suggestion where a name is near."""
    with pytest.raises(ConfigError) as caught:
        rule_from_toml(RULE.replace(old, new, 1).encode(), "idle.toml", "idle")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "mail",
    [
        MAIL.replace('"Job {job.id}"', '"Job\\r\\nBcc: all@example.org"'),
        MAIL.replace('"Job {job.id}"', '"Job {job.id}\\u2028Bcc: x"'),
        MAIL.replace('"Job {job.id}"', '""'),
        MAIL.replace('"Job {job.id}"', f'"{"x" * 200}"'),
        MAIL.replace("idle for", "\\u0000"),
        MAIL.replace("{ledger.idle_s}", "{ledger.idel_s}"),
    ],
    ids=["break", "separator", "empty", "long", "nul", "typo"],
)
def test_a_text_that_breaks_a_mail_is_refused(mail: str) -> None:
    """No line break gets into a header, no control character into a text, no unknown fact into either."""
    with pytest.raises(ConfigError):
        rule_from_toml(RULE.replace('action = "cancel"', mail).encode(), "idle.toml", "idle")


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe", b"\x00" * 100, b"mode", b"[" * 5000, b"where = 'true'\n" * 2, b"x" * (MAX_FILE_B + 1)],
    ids=["empty", "utf-8", "nul", "cut", "nested", "twice", "huge"],
)
def test_what_is_no_rule_is_refused_in_one_line(tmp_path: Path, data: bytes) -> None:
    """Whatever lies in the file."""
    (tmp_path / "odd.toml").write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        load_rule(tmp_path / "odd.toml")
    assert str(caught.value).startswith(str(tmp_path / "odd.toml"))
    assert "\n" not in str(caught.value)


def test_a_bad_file_leaves_the_others(tmp_path: Path) -> None:
    """Two of three rules are used, the third is said."""
    for name, text in (("a", RULE), ("b", RULE.replace("mode", "mdoe")), ("c", RULE)):
        (tmp_path / f"{name}.toml").write_text(text)
    found = load_rules(tmp_path)
    assert [rule.name for rule in found.rules] == ["a", "c"]
    assert len(found.errors) == 1
    assert load_rules(tmp_path / "missing").rules == ()


@pytest.mark.parametrize("action", ["cancel", "requeue", 'signal"\nsignal = "TERM'])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('after = "2h"\n', 'after = "2h"'),
        ('approve = "none"\n', 'approve = "person"'),
        ('notify = "none"\n', 'a [[do]] with action = "notify" to the user before it, or notify = "none"'),
    ],
)
def test_a_rule_that_may_end_jobs_says_when_after_what_mail_and_with_whose_approval(
    action: str, line: str, words: str
) -> None:
    """In mode act each of the three is an explicit word; in mode observe, where nothing is done, none is needed."""
    text = RULE.replace('"cancel"', f'"{action}"')
    assert rule_from_toml(text.encode(), "idle.toml", "idle").head.approve == "none"
    without = text.replace(line, "")
    with pytest.raises(ConfigError) as caught:
        rule_from_toml(without.encode(), "idle.toml", "idle")
    assert f"'{action.partition(chr(34))[0]}' may end jobs: mode act needs {words}" in str(caught.value)
    assert ";" not in str(caught.value).partition("needs")[2]
    rule_from_toml(without.replace('"act"', '"observe"').encode(), "idle.toml", "idle")


def test_all_that_a_cancellation_lacks_is_said_at_once() -> None:
    """The bare rule, act and cancel, is told all three in one line that names the step."""
    with pytest.raises(ConfigError) as caught:
        rule_from_toml(b'mode = "act"\nwhere = "ledger.idle_s > 1.0"\n[[do]]\naction = "cancel"\n', "a.toml", "a")
    assert str(caught.value).startswith("a.toml:4: [[do]] 1 action: 'cancel' may end jobs: mode act needs after = ")
    assert all(word in str(caught.value) for word in ("after", "notify", "approve"))


@pytest.mark.parametrize(("to", "told"), [("", True), ('\nto = "user"', True), ('\nto = "staff"', False)])
def test_only_a_mail_to_the_user_warns_them(to: str, told: bool) -> None:
    """A notify step before the cancellation is the word; one to staff is not: the user could not answer."""
    text = RULE.replace('notify = "none"\n', "").replace("[[do]]", f"[[do]]\n{MAIL}{to}\n[[do]]", 1)
    if told:
        assert len(rule_from_toml(text.encode(), "idle.toml", "idle").steps) == 2
    else:
        with pytest.raises(ConfigError, match="to the user before it"):
            rule_from_toml(text.encode(), "idle.toml", "idle")


def test_a_step_that_ends_no_job_needs_no_word() -> None:
    """A profiler, a comment or a mail in mode act is taken as it was."""
    for step in ('action = "profile"', 'action = "comment"\ntext = "idle"', MAIL):
        text = f'mode = "act"\nwhere = "ledger.idle_s > 1.0"\n[[do]]\n{step}\n'
        assert rule_from_toml(text.encode(), "a.toml", "a").head.mode == "act"
