"""The gate before ingest: too many batches are put off at once, and everybody else is served meanwhile."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.core.refusal import Refusal
from gpuwaste.hub.admission_control import RETRY_AFTER_S, AdmissionControl, AdmissionLimits
from gpuwaste.hub.hub_ports import ServiceLimits
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.hub_rows import AGENT_UID, batch, hour


async def _chunks(*sizes: int) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b"x" * size


def _gate(limits: AdmissionLimits) -> tuple[AdmissionControl, list[int]]:
    put_off: list[int] = []
    return AdmissionControl(limits, lambda: put_off.append(1)), put_off


def test_who_waits_too_long_is_put_off() -> None:
    """With one place taken, a batch whose turn does not come is asked to come back; the next one finds the place."""

    async def story() -> None:
        gate, put_off = _gate(AdmissionLimits(threads=1, patience_s=0.05))
        release = threading.Event()
        with gate.visit() as first, gate.visit() as second:
            working = asyncio.create_task(first.in_thread(lambda: release.wait(20)))
            await asyncio.sleep(0)
            with pytest.raises(Refusal) as refused:
                await second.in_thread(lambda: True)
            assert (refused.value.status, refused.value.extra) == (503, {"retry_after": RETRY_AFTER_S})
            release.set()
            assert await working
            assert await second.in_thread(lambda: True)
        assert put_off == [1]

    asyncio.run(story())


def test_a_queue_has_an_end() -> None:
    """Once as many wait as may, the next is put off before his body is read."""

    async def story() -> None:
        gate, put_off = _gate(AdmissionLimits(threads=1, waiting=1, patience_s=20))
        release = threading.Event()
        with gate.visit() as first, gate.visit() as second:
            tasks = [asyncio.create_task(visit.in_thread(lambda: release.wait(20))) for visit in (first, second)]
            await asyncio.sleep(0)
            with pytest.raises(Refusal), gate.visit():
                pass
            release.set()
            assert await asyncio.gather(*tasks) == [True, True]
        with gate.visit():
            pass
        assert put_off == [1]

    asyncio.run(story())


def test_bodies_in_memory_are_bounded() -> None:
    """A body that finds no room is put off, and what a visitor held is free when he leaves, refused or not."""

    async def story() -> None:
        gate, put_off = _gate(AdmissionLimits(held_bytes=100))
        with gate.visit() as first:
            assert [len(chunk) async for chunk in first.counted(_chunks(60, 30))] == [60, 30]
            with pytest.raises(Refusal), gate.visit() as second:
                assert [len(chunk) async for chunk in second.counted(_chunks(10, 1))] == []
            with gate.visit() as third:
                assert [len(chunk) async for chunk in third.counted(_chunks(10))] == [10]
        with gate.visit() as fourth:
            assert [len(chunk) async for chunk in fourth.counted(_chunks(100))] == [100]
        assert put_off == [1]

    asyncio.run(story())


@pytest.mark.parametrize("late_s", [0.0, 60.0])
def test_a_body_that_does_not_come_gives_its_room_to_a_new_one(late_s: float) -> None:
    """Once it is late its connection ends and its bytes are free; one that is whole or young keeps its room."""

    async def story() -> None:
        gate, put_off = _gate(AdmissionLimits(held_bytes=100, late_s=late_s))
        cut: list[str] = []
        with gate.visit(lambda: cut.append("whole")) as whole, gate.visit(lambda: cut.append("half")) as half:
            assert [len(chunk) async for chunk in whole.counted(_chunks(30))] == [30]
            coming = half.counted(_chunks(60, 1))
            assert len(await anext(coming)) == 60
            with contextlib.suppress(Refusal), gate.visit() as new:
                assert [len(chunk) async for chunk in new.counted(_chunks(50))] == [50]
        assert (cut, put_off) == ((["half"], []) if not late_s else ([], [1]))
        with gate.visit() as last:
            assert [len(chunk) async for chunk in last.counted(_chunks(100))] == [100]

    asyncio.run(story())


def _post(hub: Rig, answers: list[tuple[int, str | None]], job: int) -> None:
    answer = hub.post(batch(hour(job)))
    answers.append((answer.status, answer.headers.get("retry-after")))


def test_a_busy_hub_says_when_to_come_back_and_serves_readers(tmp_path: Path) -> None:
    """While the store is held up, batches beyond the limit get 503 with Retry-After, and health and reports answer."""
    limits = ServiceLimits(gate=AdmissionLimits(threads=1, waiting=1, patience_s=20))
    with running_hub(tmp_path, limits=limits) as hub:
        answers: list[tuple[int, str | None]] = []
        with hub.store.writing():
            threads = [threading.Thread(target=_post, args=(hub, answers, job)) for job in range(1, 5)]
            for thread in threads:
                thread.start()
            wait_until(lambda: len(answers) == 2, 60, "two batches to be put off")
            assert answers == [(503, str(RETRY_AFTER_S))] * 2
            assert hub.send("GET", "/v1/health").status == 200
            assert hub.get(1001, "/v1/report").status == 200
        for thread in threads:
            thread.join(20)
        assert sorted(answers, key=str) == [(200, None)] * 2 + [(503, str(RETRY_AFTER_S))] * 2
        assert len(hub.hours()) == 2
        assert b"gpuwaste_hub_put_off_total 2.0" in hub.send("GET", "/metrics").body


def test_slow_senders_take_no_place_in_the_queue(tmp_path: Path) -> None:
    """Connections that do not get on with their bodies keep no agent out."""
    limits = ServiceLimits(gate=AdmissionLimits(threads=1, waiting=1))
    with running_hub(tmp_path, limits=limits) as hub:
        slow = [socket.create_connection(("127.0.0.1", hub.port), 20) for _ in range(8)]
        try:
            for sock in slow:
                sock.sendall(b"POST /v1/hours HTTP/1.1\r\nHost: hub\r\nContent-Length: 1000\r\n\r\n{")
            assert hub.post(batch(hour(7)), uid=AGENT_UID).status == 200
        finally:
            for sock in slow:
                sock.close()
