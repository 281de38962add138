"""campaigns.md, from the declaration of a campaign's keys."""

from dataclasses import MISSING, fields
from typing import Any, Final

from gpuwaste.act.campaigns.campaign_definition import NO_DATE, CampaignHead
from gpuwaste.advice.policy.policy_file import Patterns
from tools.reference.markdown import code, document, table

_INTRO: Final = """
A campaign is one TOML file in `[common] campaigns_dir` (`/etc/gpuwaste/campaigns.d`); its name is the file's. The
hosts of the hub and of the advisors have the same files and the same `[common] campaign_key_file`. What a campaign is
for: [did it help?](../how-to/effect.md).
"""


def page() -> str:
    """Return the page."""
    rows = []
    for field in fields(CampaignHead):
        make: Any = field.default_factory
        default = make() if field.default is MISSING else field.default
        rows.append((code(field.name), _shown(default), field.metadata["text"]))
    return document("Campaigns", _INTRO, table(("key", "default", "meaning"), rows))


def _shown(default: Any) -> str:
    if default in {NO_DATE, "", 0, ()} or (isinstance(default, Patterns) and not default):
        return "none"
    return code(str(default))
