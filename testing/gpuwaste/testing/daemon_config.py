"""What each test daemon of ours needs: a port of its own and a gpuwaste.toml."""

import json
import socket
from collections.abc import Mapping
from typing import Any


def free_port() -> int:
    """Return a TCP port of the loopback address that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def to_toml(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """Print sections of strings, numbers, booleans and lists, which TOML writes as JSON does."""
    lines: list[str] = []
    for name, keys in sections.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"
