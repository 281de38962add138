"""The hub's answer with a sign-in link, checked before a person opens it."""

import re
from collections.abc import Mapping
from typing import Any, Final

from gpuwaste.core.errors import WireError

_LINK: Final = re.compile(r"https?://[A-Za-z0-9\[\]:._-]{1,260}/enter#[A-Za-z0-9_-]{43}", re.ASCII)


def url_of(answer: Mapping[str, Any]) -> tuple[str, int]:
    """Return the link and the seconds for which it is good. Raises WireError where there is none."""
    match answer:
        case {"url": str(url), "expires_s": int(seconds)} if _LINK.fullmatch(url):
            return url, seconds
    raise WireError("the hub's answer has no link: is it of another version?")
