"""The token in a job's AdminComment, `gw=ID`, by which a run names the verdict that was said of it."""

import re
from typing import Final

_TOKEN: Final = re.compile(r"(?:^|;)gw=([0-9a-z]{16})(?=;|\Z)", re.ASCII)


def token_of(admin_comment: str) -> str:
    """Return the verdict's id of an admin_comment, "" where there is none; of several, the last one's."""
    found = _TOKEN.findall(admin_comment)
    return found[-1] if found else ""
