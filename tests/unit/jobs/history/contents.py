"""What a history knows, to be compared."""

import numpy as np

from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_state import HistoryState


def content(state: HistoryState) -> tuple[object, ...]:
    """Return what a state knows, whatever the places of its rows."""
    rows = state.keys.used()[1:]
    at = np.argsort(rows["key"])
    keys = state.keys.used()["key"]
    runs = {
        run: (keys[list(held.rows)].tolist(), str(held.cpus), str(held.limit_s), held.gpus, held.started, held.ended)
        for run, held in state.open.items()
    }
    recent = state.recent.used()[1:]
    return rows[at].tobytes(), recent[np.argsort(recent["key"])].tobytes(), runs, list(state.unjudged), state.as_of


def known(follower: Follower) -> tuple[object, ...]:
    """Return what a follower knows: its state, each name's last runs, what is open and what has ended."""
    rows = follower.recall.rows.used()[1:]
    columns = follower._columns()
    names = rows[np.argsort(rows["key"])].tobytes()
    return content(follower.state), names, columns["open"].tolist(), columns["ended"].tolist(), follower.seq
