"""Which rules a campaign can hold back."""

from gpuwaste.act.rules.rule_definition import Rule


def rule_problem(name: str, rule: Rule | None) -> str:
    """Return why a campaign does not hold back a rule, "" if it does; None is a rule that is not in use."""
    if rule is None:
        return f"rule {name}: is not in use: `gpuwaste rules list` shows those that are"
    if rule.protects:
        return f"rule {name}: protects jobs (a signal or a longer limit), so it is never held back"
    if rule.head.about in {"node", "model"}:
        return f"rule {name}: is about a {rule.head.about}, so it concerns no user"
    return ""
