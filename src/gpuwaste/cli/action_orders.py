"""The orders of `gpuwaste rules actions` to the hub, and the stop that works without it."""

import re
import sys
from pathlib import Path
from typing import Final

from gpuwaste.act.actions.action_text import action_text
from gpuwaste.act.actions.action_types import ActionDocument
from gpuwaste.cli.hub_access import ask_hub, hub_client
from gpuwaste.cli.options import print_own, typed
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, UsageError
from gpuwaste.core.text import harmless
from gpuwaste.show.terminal_cells import one_line

_ID: Final = re.compile(r"[0-9a-f]{8,64}", re.ASCII)


def show(config: Config, action: str, *, as_json: bool) -> int:
    """Print one action. Raises as the hub's client does."""
    document = typed(ask_hub(config, f"/v1/actions/{_checked(action)}"), ActionDocument, printed=not as_json)
    print_own(document, action_text, as_json=as_json)
    return 0


def decide(config: Config, action: str, decision: str) -> int:
    """Approve or reject an action. Raises as the hub's client does."""
    found = hub_client(config).post(f"/v1/actions/{_checked(action)}/{decision}", {})
    entry = typed(found, ActionDocument, printed=True).action
    sys.stdout.write(f"{entry.id[:12]} {entry.kind} of {entry.subject}: {entry.status}\n")
    return 0


def stop(config: Config, *, stop: bool) -> int:
    """Stop all actions or lift the stop, at the hub and by the actor's file; one of the two is enough to stop.

    Raises GpuwasteError where a stop reached neither of them, or a lift not both.
    """
    done, failed = [], []
    for where, change in (("hub", _stop_hub), ("this host", _stop_file)):
        try:
            done.append(f"{where}: {change(config, stop=stop)}")
        except (GpuwasteError, OSError) as error:
            failed.append(f"{where}: {one_line(str(error))}")
    for line in (*done, *(f"not changed at {line}" for line in failed)):
        sys.stdout.write(f"{harmless(line)}\n")
    if not done or (failed and not stop):
        words = "actions are not stopped" if stop else "the stop is not lifted everywhere"
        raise GpuwasteError(f"{words}: run this as an operator with the hub up, or as root on the actor's host")
    return 0


def _stop_hub(config: Config, *, stop: bool) -> str:
    hub_client(config).post("/v1/actions/stop", {"stop": stop})
    return "no action is sent" if stop else "actions are sent again"


def _stop_file(config: Config, *, stop: bool) -> str:
    path = Path(config.actor.stop_file)
    if stop:
        path.touch(mode=0o644)
        return f"{path} exists: an actor here takes no action"
    path.unlink(missing_ok=True)
    return f"{path} does not exist: an actor here may take actions"


def _checked(action: str) -> str:
    if not _ID.fullmatch(action):
        raise UsageError(
            f"action {action[:70]!r}: expected 8 to 64 digits and letters a to f: see gpuwaste rules actions"
        )
    return action
