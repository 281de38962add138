"""Inlets' files and events that other systems send, for the tests of this room."""

import base64
import json
from pathlib import Path
from typing import Any

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
LICENCES = '[kind.licence_low]\nabout = "Few licences."\n[kind.licence_low.fields]\nlicence = "text"\nleft = "whole?"\n'


def fs_full(number: int = 1, **more: Any) -> dict[str, Any]:
    """Return an event as a storage system sends it."""
    data = {"file_system": "/scratch", "used_ratio": 0.97}
    sent = {"specversion": "1.0", "id": f"e{number}", "source": "/storage/1", "type": "site.fs_full", "data": data}
    return {**sent, **more}


def sent(*events: Any) -> bytes:
    """Return the body of a request."""
    return json.dumps(list(events) if len(events) != 1 else events[0]).encode()


def written(folder: Path, text: str, name: str = "storage.toml") -> Path:
    """Write an inlet's file; `{key}` in it is the path of a file with SECRET."""
    folder.mkdir(exist_ok=True)
    key = folder / "key"
    key.write_text(SECRET)
    key.chmod(0o600)
    path = folder / name
    path.write_text(text.replace("{key}", str(key)))
    return path


WEBHOOK = '[inlet]\n[webhook]\nsecret_file = "{key}"\n'
