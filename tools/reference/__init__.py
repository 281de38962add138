"""The generated pages: each file here makes one page's text from the declarations in the code."""

from collections.abc import Callable
from functools import partial
from typing import Final

from tools.boards import BOARDS
from tools.reference import (
    alerts,
    before_install,
    campaigns,
    commands,
    configuration,
    dependencies,
    doctor,
    event_kinds,
    events,
    exit_codes,
    faults,
    features,
    field,
    findings,
    metrics,
    outputs,
    policies,
    releases,
    rules,
    slurmrestd,
    stored_data,
    wire,
)

PAGES: Final[dict[str, Callable[[], str]]] = {
    **BOARDS,
    "docs/reference/alerts.md": alerts.page,
    "docs/reference/before-install.md": before_install.page,
    "docs/reference/commands.md": commands.page,
    "docs/reference/configuration.md": configuration.page,
    "docs/reference/dependencies.md": dependencies.page,
    "docs/reference/doctor.md": doctor.page,
    "docs/reference/event-kinds.md": event_kinds.page,
    "docs/reference/events.md": events.page,
    "docs/reference/exit-codes.md": exit_codes.page,
    "docs/reference/faults.md": faults.page,
    "docs/reference/features.md": features.page,
    "docs/reference/field.md": field.page,
    "docs/reference/findings.md": findings.page,
    "docs/reference/metrics.md": metrics.page,
    "docs/reference/policies.md": policies.page,
    "docs/reference/releases.md": releases.page,
    "docs/reference/campaigns.md": campaigns.page,
    "docs/reference/rules.md": rules.page,
    "docs/reference/slurmrestd.md": slurmrestd.page,
    "docs/reference/stored-data.md": stored_data.page,
    "docs/reference/wire.md": wire.page,
    "etc/gpuwaste.toml": configuration.example,
    **{path: partial(outputs.page, path) for path in outputs.pages()},
}
"""Path in the repository -> what makes the file's whole text."""
