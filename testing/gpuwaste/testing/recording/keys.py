"""Configurations and tokens of a played site: a site without munge, on loopback."""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.config import Config, config_from_dict
from gpuwaste.testing.recording.format import Opening

USERS: Final = ("root", "alice", "bob", "carol", "dave")
_HUB: Final = "hub"


class Keys:
    """What hub, agents and users of a played site are configured with; files lie in `directory`."""

    def __init__(self, directory: Path, opening: Opening, hub_url: str) -> None:
        """Write a token for each user and node, and the hub's list of them."""
        self._directory = directory
        self._opening = opening
        self._url = hub_url
        tokens = {name: secrets.token_hex(16) for name in (*USERS, *opening.nodes)}
        _write_closed(self._token_file(_HUB), "".join(f"{name} {token}\n" for name, token in tokens.items()))
        for name, token in tokens.items():
            _write_closed(self._token_file(name), token)

    def hub(self) -> Config:
        """Return the hub's configuration."""
        keys = {
            "listen": self._url.partition("://")[2],
            "state_dir": str(self._directory / _HUB),
            "node_tokens_file": str(self._token_file(_HUB)),
            "sacct_every_s": self._opening.sacct_every_s,
            "sacct_overlap_s": 600.0,
            **self._opening.hub,
        }
        return self._config("root", "hub", keys)

    def agent(self, node: str, state_dir: Path) -> Config:
        """Return a node's configuration."""
        keys = {
            "collectors": ["nvml", "host"],
            **self._opening.agent,
            "node_name": node,
            "state_dir": str(state_dir),
            "interval_s": self._opening.interval_s,
            "ship_every_s": self._opening.ship_every_s,
            "listen": "",
        }
        return self._config(node, "agent", keys)

    def user(self, name: str) -> Path:
        """Return the configuration file with which a user calls the command."""
        path = self._directory / f"{name}.toml"
        common = {"hub_url": self._url, "token_file": str(self._token_file(name))}
        # JSON's strings are TOML's as well.
        path.write_text("\n".join(["[common]", *(f"{key} = {json.dumps(value)}" for key, value in common.items()), ""]))
        return path

    def _config(self, name: str, section: str, keys: Mapping[str, Any]) -> Config:
        common = {
            "cluster": self._opening.cluster,
            "hub_url": self._url,
            "token_file": str(self._token_file(name)),
            "run_dir": str(self._directory / f"run-{name}"),
        }
        own = {"jobs_dir": common["run_dir"]} if section == "agent" else {}  # empty: the tape has what prologs left
        return config_from_dict({"common": common, section: {**own, **keys}}, "the played site")

    def _token_file(self, name: str) -> Path:
        return self._directory / f"{name}.token"


def _write_closed(path: Path, text: str) -> None:
    """Write a file that its owner alone can read."""
    path.touch(mode=0o600)
    path.write_text(text)
