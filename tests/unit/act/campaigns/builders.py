"""Campaigns as the tests of campaigns make them."""

import re

from gpuwaste.act.campaigns.campaign_definition import Campaign
from gpuwaste.act.campaigns.campaign_file import campaign_from_toml

GOOD = """\
what = ["policy:gpus", "digest"]
start = 2027-05-03
end = 2027-07-25
held_back = 0.5
"""


def campaign_of(name: str = "test", **changes: str) -> Campaign:
    """Return the good campaign with keys changed or added."""
    text = GOOD
    for key, value in changes.items():
        text = re.sub(rf"(?m)^{key} = .*\n", "", text) + f"{key} = {value}\n"
    return campaign_from_toml(text.encode(), f"{name}.toml", name)
