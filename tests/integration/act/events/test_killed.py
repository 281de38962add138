"""Kill -9 of the hub and of the broker in the middle: nothing is lost, each event comes, each run's order is kept."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.events.envelope import event_of
from gpuwaste.jobs.events.event_store import EventStore
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.kafka_broker import kafka_broker
from gpuwaste.testing.lone_hub import LoneHub, munged_path, private_munged
from gpuwaste.testing.webhook_receiver import webhook_receiver

START = 1_700_000_000
JOBS = 10_000
pytestmark = [pytest.mark.long, pytest.mark.skipif(munged_path() is None, reason="munge is not installed")]


def filled(directory: Path) -> list[tuple[str, str]]:
    """Make a hub's store with runs that have ended; return key and id of its events in order."""
    store = HubStore.open(directory / "state" / "hub.duckdb", SystemClock())
    rows = [
        JobRecord("gw", n, START + n, user="u", start=START + n + 5, end=START + n + 500, state="COMPLETED")
        for n in range(1, JOBS + 1)
    ]
    upsert_jobs(store, rows)
    events = [event_of(stored) for stored in EventStore(store, SystemClock()).page(0, 3 * JOBS).events]
    store.close()
    return [(event.subject, event.id) for event in events]


def check(sent: list[tuple[str, str]], got: list[dict[str, Any]]) -> int:
    """Each event came, and of each key the first comings are in order; returns how many came twice."""
    lost = {id_ for _, id_ in sent} - {event["id"] for event in got}
    assert not lost, f"{len(lost)} of {len(sent)} events did not come"
    expected: dict[str, list[str]] = defaultdict(list)
    came: dict[str, list[str]] = defaultdict(list)
    for key, id_ in sent:
        expected[key].append(id_)
    for event in got:
        if event["id"] not in came[event["subject"]]:
            came[event["subject"]].append(event["id"])
    wrong = [key for key, ids in expected.items() if came[key] != ids]
    assert not wrong, f"{len(wrong)} runs in another order, the first is {wrong[0]}"
    return len(got) - len(sent)


def test_a_killed_hub_goes_on_where_it_was(tmp_path: Path) -> None:
    """Three times in the middle of a webhook's work; what was on its way comes again, and all the rest once."""
    sent = filled(tmp_path)
    outlets = tmp_path / "outlets.d"
    outlets.mkdir()
    with webhook_receiver() as receiver, private_munged() as munge:
        text = f'[outlet]\nbegin = "oldest"\n[webhook]\nurl = "{receiver.url}"\nnetworks = ["127.0.0.0/8"]\n'
        (outlets / "hook.toml").write_text(text)
        hub = LoneHub(tmp_path, munge, {"outlets_dir": str(outlets)})
        try:
            for part in (1, 2, 3):
                hub.start()
                wait_until(lambda: len(receiver.events) > part * 1000, 60, "events")  # noqa: B023 called at once
                hub.kill()
            hub.start()
            wait_until(lambda: len({e["id"] for e in receiver.events}) == len(sent), 120, "the last event")
        finally:
            hub.stop()
        twice = check(sent, receiver.events)
    print(f"{len(sent)} events, {twice} of them twice")  # noqa: T201 what a kill costs the receiver


def test_a_killed_broker_gets_what_it_did_not_acknowledge(tmp_path: Path) -> None:
    """A receiver beside it waits for nothing; when the broker is back the hub goes on, in order."""
    sent = filled(tmp_path)
    outlets = tmp_path / "outlets.d"
    outlets.mkdir()
    with kafka_broker(tmp_path) as broker, webhook_receiver() as receiver, private_munged() as munge:
        broker.kill()
        begin = '[outlet]\nbegin = "oldest"\n'
        hook = f'{begin}[webhook]\nurl = "{receiver.url}"\nnetworks = ["127.0.0.0/8"]\n'
        (outlets / "hook.toml").write_text(hook)
        (outlets / "bus.toml").write_text(f'{begin}[kafka]\nbrokers = ["{broker.address}"]\ntimeout_s = 5.0\n')
        hub = LoneHub(tmp_path, munge, {"outlets_dir": str(outlets)})
        try:
            hub.start()
            wait_until(lambda: len(receiver.events) == len(sent), 120, "the other outlet")
            broker.start()
            broker.create("gpuwaste.job")
            got = [json.loads(message.value()) for message in broker.read("gpuwaste.job", len(sent), different=True)]
        finally:
            hub.stop()
    check(sent, got)
    check(sent, receiver.events)
