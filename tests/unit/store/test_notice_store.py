"""Notices in the store: a period is taken once, a notice is claimed once, and old ones go."""

import threading
from typing import Any

from gpuwaste.act.notify.notice_store import OPEN, NoticeStatus, NoticeStore
from gpuwaste.store.database import MEMORY
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock


def made() -> tuple[NoticeStore, FakeClock]:
    """Return an empty store."""
    clock = FakeClock(1_700_000_000)
    return NoticeStore(HubStore.open(MEMORY, clock), clock), clock


def row(user: str, status: str = "due", wasted_s: float = 1.0) -> dict[str, Any]:
    """Return a notice."""
    return {
        "user": user, "period_start": 1, "status": status, "why": "", "address": f"{user}@x", "jobs": 1, "gpu_s": 2.0,
        "wasted_s": wasted_s, "exempt_s": 0.0, "coverage": None, "document": "{}",
    }  # fmt: skip


def test_a_period_is_taken_once() -> None:
    """A second plan of the same period changes nothing; a dry one stands beside it."""
    store, _ = made()
    assert store.add_period("digest", 100, [row("alice")], dry=False)
    assert not store.add_period("digest", 100, [row("bob")], dry=False)
    assert store.add_period("digest", 100, [row("alice", "dry")], dry=True)
    assert [(r["user"], r["dry"]) for r in store.listed(0, 101)] == [("alice", False), ("alice", True)]
    assert (store.last_period("digest", dry=False), store.last_period("staff", dry=False)) == (100, None)


def test_one_of_many_claims_a_notice() -> None:
    """Of eight threads that want to send the same notice exactly one may."""
    store, _ = made()
    store.add_period("digest", 100, [row("alice")], dry=False)
    (due,) = store.due()
    won: list[bool] = []
    threads = [
        threading.Thread(target=lambda: won.append(store.move(due, NoticeStatus.SENDING, was=OPEN))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 7 + [True]
    assert store.due() == []


def test_later_is_later() -> None:
    """What the server put off comes back when its wait is over, the largest waste first; its document is kept."""
    store, clock = made()
    store.add_period("digest", 100, [row("alice"), row("bob", wasted_s=9.0)], dry=False)
    first, second = store.due()
    assert (first["user"], second["user"]) == ("bob", "alice")
    store.move(first, NoticeStatus.SENDING, was=OPEN)
    store.move(first, NoticeStatus.LATER, "451 busy", was=("sending",), wait_s=60)
    assert [r["user"] for r in store.due()] == ["alice"]
    clock.advance(61)
    (again,) = [r for r in store.due() if r["user"] == "bob"]
    assert (again["document"], again["tries"], again["detail"]) == ("{}", 1, "451 busy")


def test_who_was_told_last() -> None:
    """What failed or was not told does not count; what is perhaps sent does; dry runs count among themselves."""
    store, _ = made()
    rows = [row(name, name) for name in ("sent", "failed", "unclear", "not", "later")]
    store.add_period("digest", 100, rows, dry=False)
    store.add_period("digest", 90, [row("sent", "sent")], dry=False)
    store.add_period("digest", 100, [row("x", "dry")], dry=True)
    assert store.last_told(200, dry=False) == {"sent": 100, "unclear": 100, "later": 100}
    assert store.last_told(100, dry=False) == {"sent": 90}
    assert store.last_told(200, dry=True) == {"x": 100}


def test_wishes_stay() -> None:
    """No, twice, and yes, with the quotes and semicolons that a name may have."""
    store, _ = made()
    for user in ("alice", "alice", "b'; DROP TABLE jobs; --"):
        store.want(user, mail=False)
    assert store.opted_out() == {"alice", "b'; DROP TABLE jobs; --"}
    store.want("alice", mail=True)
    assert store.opted_out() == {"b'; DROP TABLE jobs; --"}
