"""Who or what is exempt is not judged: no warning, no reject, and nothing that the policy would have done."""

from typing import Final

from gpuwaste.advice.policy.policy_case import PolicyCase
from gpuwaste.advice.policy.policy_set import in_partitions

ORDER: Final = 110


def apply(case: PolicyCase) -> None:
    """End the case where one pattern of [exempt] matches."""
    exempt, facts = case.policy.exempt, case.facts
    request = facts.request
    found = (
        ("user", exempt.users.match(request.user)),
        ("account", exempt.accounts.match(request.account)),
        ("partition", exempt.partitions and in_partitions(exempt.partitions, request.partition)),
        ("QOS", exempt.qos.match(request.qos)),
        ("job name", exempt.names.match(request.name)),
        ("group", exempt.groups.match_any(facts.groups)),
    )
    if matched := [name for name, matches in found if matches]:
        case.end("exempt")
        case.step("exempt", f"the {matched[0]} is exempt from this policy")
