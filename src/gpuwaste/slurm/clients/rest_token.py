"""The JWT for slurmrestd: a password in a closed file, read again for each request, never printed."""

import base64
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import read_closed

_TOKEN = re.compile(r"[A-Za-z0-9_\-]{2,4096}\.[A-Za-z0-9_\-]{2,8192}\.[A-Za-z0-9_\-]{2,4096}")
_MAX_FILE: Final = 64 * 1024
_PREFIX: Final = "SLURM_JWT="  # as `scontrol token` prints it


@dataclass(frozen=True, slots=True)
class Token:
    """A JWT with what its claims say; `user` and `expires` (UTC seconds) are "" and None where they do not."""

    text: str
    user: str = ""
    expires: float | None = None

    def __repr__(self) -> str:
        return f"Token(user={self.user!r}, expires={self.expires})"

    @property
    def expired(self) -> bool:
        """Whether its time is over by this host's clock."""
        return self.expires is not None and self.expires <= time.time()

    def headers(self) -> Mapping[str, str]:
        """Return the headers that slurmrestd of every version takes; before 23.11 it needs the name too."""
        name = {"X-SLURM-USER-NAME": self.user} if self.user else {}
        return {"X-SLURM-USER-TOKEN": self.text, **name}


def read_token(path: Path) -> Token:
    """Read the token file. Raises ConfigError, never with the token in it."""
    word = read_closed(path, _MAX_FILE, "this token", ": see slurmrestd_token_file").strip().removeprefix(_PREFIX)
    if not _TOKEN.fullmatch(word):
        raise ConfigError(f"{path}: no JWT in it: write the one that `scontrol token` prints, and nothing else")
    claims = _claims(word)
    user, expires = claims.get("sun"), claims.get("exp")
    return Token(
        word,
        user if isinstance(user, str) and user.isprintable() and user.isascii() else "",
        expires if isinstance(expires, int | float) and not isinstance(expires, bool) else None,
    )


def _claims(word: str) -> Mapping[str, object]:
    """Return the claims, unchecked: the signature is slurmrestd's to check."""
    body = word.split(".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}
