"""What `gpuwaste notify` asks of the hub, and how its answers are printed."""

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any

from gpuwaste.cli.hub_access import LONG_PATIENCE_S, ask_hub, hub_client
from gpuwaste.cli.times import window_of
from gpuwaste.core.config import Config
from gpuwaste.core.text import harmless
from gpuwaste.report.layout import Look
from gpuwaste.report.notice_text import notices_text, preview_text, replay_text, run_text

Text = Callable[[Mapping[str, Any], Look], str]


def ask(options: argparse.Namespace, config: Config, rows: int) -> tuple[dict[str, Any], Text]:
    """Return the hub's document and what prints it. Raises UsageError, NoDataError, AuthError, WireError."""
    if options.action == "run":
        return hub_client(config, LONG_PATIENCE_S).post("/v1/notices/run", {"dry_run": options.dry_run}), run_text
    user = {} if getattr(options, "user", None) is None else {"user": options.user}
    if options.action == "preview":
        return ask_hub(config, "/v1/notices/preview", user), preview_text
    start, end = window_of(options.starttime, options.endtime)
    if options.action == "replay":
        return hub_client(config, LONG_PATIENCE_S).get("/v1/notices/replay", {"start": start, "end": end}), replay_text
    return ask_hub(config, "/v1/notices", {**user, "start": start, "end": end + 1, "limit": rows}), notices_text


def wish(config: Config, *, mail: bool) -> int:
    """Tell the hub whether the caller wants digests."""
    answer = hub_client(config).post("/v1/notices/wish", {"mail": mail})
    words = "digests are sent again" if mail else "no digests are sent any more"
    sys.stdout.write(f"{harmless(str(answer['user']))}: {words}\n")
    return 0


def is_empty(document: Mapping[str, Any]) -> bool:
    """Tell whether a document holds nothing: nobody told, nobody not told."""
    rows = {"notices": "notices", "notice-replay": "users"}.get(document["document"])
    return rows is not None and not document[rows]
