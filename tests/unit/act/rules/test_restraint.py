"""What keeps a rule back from a job or node that matches: each exemption, budget and time of rest by itself."""

from datetime import datetime
from typing import Any

import pytest

from gpuwaste.act.rules.rule_definition import Rule
from gpuwaste.act.rules.rule_file import rule_from_toml
from gpuwaste.act.rules.rule_matching import StepsSpent, Subject, at_rest, exemption, needed
from gpuwaste.act.rules.rule_pass import _notice
from gpuwaste.slurm.run_key import RunKey

IDLE = 'where = "ledger.idle_s > 1.0"\n'
PLAIN = 'where = "job.gpus > 0"\n'
NODE = 'about = "node"\nwhere = "node.failed_1d > 0"\n'
MODEL = 'about = "model"\nwhere = "model.ece > 0.1"\n'
COMMENT = '[[do]]\naction = "comment"\ntext = "x"\n'
DRAIN = '[[do]]\naction = "drain"\nreason = "x"\n'
MAIL = '[[do]]\naction = "notify"\nsubject = "x"\ntext = "x"\nto = "staff"\n'


def rule(text: str, step: str = COMMENT) -> Rule:
    """Return a rule of one step."""
    return rule_from_toml((text + step).encode(), "r.toml", "r")


def job(**facts: Any) -> Subject:
    """Return a running job whose GPUs are known."""
    known: dict[str, Any] = {
        "job.user": "alice", "job.account": "proj1", "job.partition": "gpu,debug", "job.qos": "normal",
        "job.reservation": "course", "ledger.exempt_gpu_s": 0.0, "ledger.coverage": 1.0,
    }  # fmt: skip
    return Subject(
        0, "gw/7@1", RunKey("gw", 7, 1), 100, "7", known | {k.replace("__", "."): v for k, v in facts.items()}
    )


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ('users = ["bob", "al*"]', "user"),
        ('accounts = ["proj?"]', "account"),
        ('partitions = ["debug"]', "partition"),
        ('qos = ["normal"]', "qos"),
        ('reservations = ["course"]', "reservation"),
        ('users = ["bob"]\naccounts = ["x"]\npartitions = ["cpu"]\nqos = ["y"]\nreservations = ["z"]', ""),
    ],
)
def test_one_match_is_enough(table: str, why: str) -> None:
    """By each of them; a waiting job is exempt by any of its partitions."""
    assert exemption(rule(f"{PLAIN}[exempt]\n{table}\n"), job()) == why


@pytest.mark.parametrize(
    ("facts", "table", "why"),
    [
        ({"ledger__exempt_gpu_s": 1.0}, "", "exempt waste"),
        ({"ledger__exempt_gpu_s": 1.0}, "waste = false", ""),
        ({"ledger__coverage": 0.79}, "", "coverage"),
        ({"ledger__coverage": 0.8}, "", ""),
        ({"ledger__coverage": None}, "", "coverage"),
        ({"ledger__coverage": 0.5}, "coverage_below = 0.4", ""),
        ({"ledger__coverage": None}, "coverage_below = 0", ""),
    ],
)
def test_exempt_waste_and_the_floor_of_coverage(facts: dict[str, Any], table: str, why: str) -> None:
    """Memory-resident jobs and the interactive grace count as exempt waste; what is not known is below the floor."""
    assert exemption(rule(f"{IDLE}[exempt]\n{table}\n"), job(**facts)) == why


def test_a_rule_that_names_no_fact_of_the_ledger_needs_no_coverage() -> None:
    """A rule about accounting alone also holds for jobs without an agent."""
    assert exemption(rule(PLAIN), job(ledger__coverage=None, ledger__exempt_gpu_s=9.0)) == ""
    assert "ledger.coverage" not in needed(rule(PLAIN))


def test_nodes_and_the_model() -> None:
    """A node is exempt by its name; of a model there is nothing to exempt."""
    subject = Subject(0, "node/gpu1", None, 100, "gpu1", {"node.name": "gpu1"})
    assert exemption(rule(f'{NODE}[exempt]\nnodes = ["gpu*"]\n', DRAIN), subject) == "node"
    assert exemption(rule(NODE, DRAIN), subject) == ""
    model = Subject(0, "model/night", None, 100, "night", {"model.name": "night"})
    assert exemption(rule(f'{MODEL}[exempt]\nusers = ["*"]\n', MAIL), model) == ""


@pytest.mark.parametrize(
    ("line", "local", "why"),
    [
        ('quiet_hours = "20:00-07:00"', "2027-01-04T23:00", "quiet hours"),
        ('quiet_hours = "20:00-07:00"', "2027-01-04T06:59", "quiet hours"),
        ('quiet_hours = "20:00-07:00"', "2027-01-04T07:00", ""),
        ("expires = 2027-01-03", "2027-01-04T00:00", "expired"),
        ("expires = 2027-01-04", "2027-01-04T23:59", ""),
    ],
)
def test_hours_of_rest_and_the_last_day(line: str, local: str, why: str) -> None:
    """Quiet hours may go through midnight; the last day is a whole one."""
    assert at_rest(rule(f"{line}\n{PLAIN}"), datetime.fromisoformat(local)) == why


def test_budgets_of_a_rule_and_of_a_user() -> None:
    """Whichever is used up first holds a step back; a step about a node counts for the rule only."""
    one, spent = rule(f"{PLAIN}[budget]\nrule_per_day = 3\nuser_per_day = 2\n"), StepsSpent()
    for user in ("alice", "alice"):
        assert spent.full(one, user) == ""
        spent.add(user)
    assert spent.full(one, "alice") == "budget of the user"
    assert spent.full(one, "bob") == ""
    spent.add("bob")
    assert spent.full(one, "carol") == spent.full(one, "") == "budget of the rule"


def test_a_mail_to_the_sponsor_is_no_warning() -> None:
    """A step that ends a run waits for the mail to the user, else to staff, and never for the sponsor's."""
    mail = '[[do]]\naction = "notify"\nto = "{to}"\nsubject = "s"\ntext = "t"\n'
    head = 'mode = "observe"\nwhere = "job.gpus > 0"\n'

    def notice(*to: str, action: str = "cancel") -> int | None:
        steps = "".join(mail.format(to=one) for one in to) + f'[[do]]\naction = "{action}"\n'
        return _notice(rule_from_toml((head + steps).encode(), "r.toml", "r"), len(to))

    assert notice("sponsor") is None
    assert notice("user", "sponsor") == 0
    assert notice("staff", "sponsor") == 0
    assert notice("staff", "user", "sponsor") == 1
    assert notice("user", "user", "sponsor", action='lower_request"\ngpus = "1') == 1
    assert notice("user", action="hold") is None
