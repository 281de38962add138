"""alerts.md, from the annotations of the rules in etc/prometheus/rules."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tools.reference.markdown import code, document, table

RULES: Final = Path(__file__).parents[2] / "etc" / "prometheus" / "rules"
_INTRO: Final = """
The alerts of [etc/prometheus/rules](../../etc/prometheus/rules), with what to do. How to load them:
[monitoring](../how-to/monitoring.md). `critical`: something is being lost now, or nearly so; get up. `warning`: in
office hours, nothing is lost until then. `info`: for the weekly round; a user's waste is never more than that.
"""


class Alert(NamedTuple):
    """One alerting rule; texts are templates of Prometheus."""

    subject: str
    name: str
    expr: str
    lasts: str
    severity: str
    annotations: dict[str, str]


def rules() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file's subject, rule) of every rule."""
    for path in sorted(RULES.glob("*.yml")):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                yield path.stem, rule


def alerts() -> Iterator[Alert]:
    """Yield every alerting rule."""
    for subject, rule in rules():
        if "alert" in rule:
            yield Alert(
                subject, rule["alert"], rule["expr"], rule.get("for", ""), rule["labels"]["severity"],
                rule.get("annotations", {}),
            )  # fmt: skip


def page() -> str:
    """Return the page: a table of all, then one section for each, which runbook_url names."""
    found = sorted(alerts(), key=lambda a: (a.subject, a.name))
    rows = [(f"[{a.name}](#{a.name.lower()})", a.subject, a.severity, a.lasts or "at once") for a in found]
    return document(
        "Alerts", _INTRO, table(("alert", "rules", "severity", "after"), rows), *(_section(alert) for alert in found)
    )


def _section(alert: Alert) -> str:
    told = alert.annotations
    after = f" for {alert.lasts}" if alert.lasts else ""
    return "\n\n".join(
        [
            f"## {alert.name}",
            f"{_plain(told['summary'])} {_plain(told['description'])} ({alert.severity})",
            f"**What to do.** {_plain(told['action'])}",
            f"Fires where this holds{after}:\n\n```promql\n{alert.expr.strip()}\n```",
        ]
    )


def _plain(text: str) -> str:
    """Return a template's text with its fields as code."""
    parts = text.replace("{{", "\0{{").replace("}}", "}}\0").split("\0")
    return " ".join("".join(code(_field(p)) if p.startswith("{{") else p for p in parts).split())


def _field(template: str) -> str:
    name = template.strip("{} ").split("|")[0].strip()
    return "value" if name == "$value" else name.removeprefix("$labels.")
