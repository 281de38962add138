"""The site's rules, how one applies to a job now, and what it would have done on history: /v1/rules, for operators."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from gpuwaste.act.rules.rule_text import rules_text
from gpuwaste.act.rules.rule_types import LookDocument, ReplayDocument, RuleQuestion, RuleRestored, RulesDocument
from gpuwaste.core.scope import Scope
from gpuwaste.show.resource import NoQuestion, Order, ReadCommand, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.act.rules.rule_reads import RuleReads


@dataclass(frozen=True)
class OneRule:
    """Which rule."""

    name: Annotated[str, Meta(min_length=1, max_length=64, description="A rule's name.")]


def _rules(reading: Reading) -> "RuleReads":
    from gpuwaste.act.rules.rule_reads import RuleReads

    return reading.get(RuleReads)


def listed(reading: Reading, scope: Scope, _: NoQuestion) -> RulesDocument:
    """List the rules in use and what they did in the last 30 days."""
    return _rules(reading).rules(scope)


def look(reading: Reading, scope: Scope, _: NoQuestion, body: bytes) -> LookDocument:
    """Return what a rule, sent with the question, makes of a job or node now; nothing is done or recorded."""
    return _rules(reading).look(scope, body)


def replay(reading: Reading, scope: Scope, _: NoQuestion, body: bytes) -> ReplayDocument:
    """Return what a rule, sent with the question, would have done in a window of the history."""
    return _rules(reading).replay(scope, body)


def restore(reading: Reading, scope: Scope, question: OneRule, _: bytes) -> RuleRestored:
    """Give a rule that went back to mode notify by itself the mode of its file; for operators and administrators."""
    return _rules(reading).restore(scope, question.name)


RESOURCES = (
    Resource(
        path="/v1/rules",
        question=NoQuestion,
        document=RulesDocument,
        read=listed,
        commands=[
            ReadCommand(
                text=rules_text, action="list", about="rules in use, and what they did (operators)", forms=False
            )
        ],
    ),
    Order(path="/v1/rules/{name}/restore", question=OneRule, document=RuleRestored, do=restore),
    Order(path="/v1/rules/look", body=RuleQuestion, question=NoQuestion, document=LookDocument, do=look),
    Order(path="/v1/rules/replay", body=RuleQuestion, question=NoQuestion, document=ReplayDocument, do=replay),
)
