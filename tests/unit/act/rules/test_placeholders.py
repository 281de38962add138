"""Facts in texts: plain words of one line, whatever a name is."""

from gpuwaste.act.rules.rule_facts import filled, problem_of


def test_durations_and_names_are_words() -> None:
    """Seconds are minutes and hours, what is not known says so."""
    values = {"ledger.idle_s": 7320.0, "job.id": 7, "job.user": None}
    assert filled("{job.id} of {job.user}: {ledger.idle_s}", values) == "7 of unknown: 2 h 2 min"


def test_a_hostile_name_breaks_nothing() -> None:
    """Line breaks, separators, escapes and marks of Slurm's comments become question marks; braces stay as they are."""
    text = filled("{job.user}", {"job.user": "a\r\nBcc: x\x1b[0m\u2028;gw=1{job.id}\ud800"})
    assert text == "a??Bcc: x?[0m??gw?1{job.id}?"[:40]
    assert len(filled("{job.user}", {"job.user": "x" * 5000})) == 40


def test_a_wrong_name_has_a_suggestion() -> None:
    """As in a condition."""
    assert problem_of("{job.usr}", {"job.user": "string"}) == "unknown fact 'job.usr': did you mean 'job.user'?"
