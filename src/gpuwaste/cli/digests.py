"""What `gpuwaste notify` asks of the hub, and how its answers are printed."""

import argparse
import sys
from collections.abc import Callable
from typing import Any

from gpuwaste.act.notify.notice_text import notices_text, preview_text, replay_text, run_text
from gpuwaste.act.notify.notice_types import NoticeDocument, NoticePreview, NoticeReplay, NoticeRun, NoticesDocument
from gpuwaste.cli.hub_access import LONG_PATIENCE_S, ask_hub, hub_client
from gpuwaste.cli.time_options import window_of
from gpuwaste.core.config import Config
from gpuwaste.core.text import harmless
from gpuwaste.show.layout import Look

Found = tuple[dict[str, Any], type[NoticeDocument], Callable[[Any, Look], str]]
"""An answer, its type, and what prints it."""


def ask(options: argparse.Namespace, config: Config, rows: int) -> Found:
    """Return the hub's answer. Raises UsageError, NoDataError, AuthError, WireError."""
    if options.action == "run":
        found = hub_client(config, LONG_PATIENCE_S).post("/v1/notices/run", {"dry_run": options.dry_run})
        return found, NoticeRun, run_text
    user = {} if getattr(options, "user", None) is None else {"user": options.user}
    if options.action == "preview":
        return ask_hub(config, "/v1/notices/preview", user), NoticePreview, preview_text
    start, end = window_of(options.starttime, options.endtime)
    if options.action == "replay":
        found = ask_hub(config, "/v1/notices/replay", {"start": start, "end": end}, LONG_PATIENCE_S)
        return found, NoticeReplay, replay_text
    window = {"start": start, "end": end + 1, "limit": rows}
    return ask_hub(config, "/v1/notices", {**user, **window}), NoticesDocument, notices_text


def wish(config: Config, *, mail: bool) -> int:
    """Tell the hub whether the caller wants mail."""
    answer = hub_client(config).post("/v1/notices/wish", {"mail": mail})
    words = (
        "digests and notices of time limits are sent again"
        if mail
        else "no digests and no notices of time limits are sent any more"
    )
    sys.stdout.write(f"{harmless(str(answer['user']))}: {words}\n")
    return 0


def is_empty(document: NoticeDocument) -> bool:
    """Tell whether a document holds nothing: nobody told, nobody not told."""
    if isinstance(document, NoticeReplay):
        return not document.users
    return isinstance(document, NoticesDocument) and not document.notices
