"""Whether a policy judges a submission: what its table [when] says, made at load into the few tests that it needs."""

from collections.abc import Callable

from gpuwaste.advice.policy.declarations import FIRST_DAY, LAST_DAY, When
from gpuwaste.advice.policy.facts import SubmissionFacts
from gpuwaste.advice.policy.values import ALWAYS, EVERY_DAY, Patterns

Test = Callable[[SubmissionFacts], bool]


def tests_of(when: When) -> tuple[Test, ...]:
    """Return what has to hold, the cheapest first; none where the policy judges everything."""
    tests: list[Test] = []
    if when.min_gpus:
        tests.append(lambda facts: facts.request.gpus >= when.min_gpus)
    if when.min_nodes > 1:
        tests.append(lambda facts: (facts.request.nodes or 1) >= when.min_nodes)
    if (when.from_, when.until) != (FIRST_DAY, LAST_DAY):
        tests.append(lambda facts: when.from_ <= facts.local_time.date() <= when.until)
    if when.weekdays != EVERY_DAY:
        tests.append(lambda facts: facts.local_time.weekday() in when.weekdays.numbers)
    if when.hours != ALWAYS:
        tests.append(lambda facts: when.hours.hold(facts.local_time))
    if when.partitions:
        tests.append(lambda facts: in_partitions(when.partitions, facts.request.partition))
    for patterns, name in ((when.qos, "qos"), (when.accounts, "account"), (when.users, "user")):
        if patterns:
            tests.append(_request_matches(patterns, name))
    if when.groups:
        tests.append(lambda facts: when.groups.match_any(facts.groups))
    return tuple(tests)


def in_partitions(patterns: Patterns, asked: str) -> bool:
    """Tell whether one of the partitions asked for, which commas separate, matches."""
    return patterns.match(asked) if "," not in asked else patterns.match_any(asked.split(","))


def _request_matches(patterns: Patterns, name: str) -> Test:
    return lambda facts: patterns.match(getattr(facts.request, name))
