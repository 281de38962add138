"""POST /v1/hours over real HTTP: what is taken, what is refused, and with which words."""

from tests.unit.hub.rig import Rig, batch, hour


def test_a_batch_is_stored_and_acknowledged(hub: Rig) -> None:
    """A good batch is answered with a signed acknowledgement of every row, which then is in the store."""
    answer = hub.post(batch(hour(7), hour(8)))
    assert (answer.status, answer.json) == (200, {"protocol": 1, "batch_id": "b1", "accepted": 2, "rejected": []})
    assert answer.headers["gpuwaste-ack"].startswith("ack:900:")
    assert [(h["job_id"], h["util_ms"]) for h in hub.hours()] == [(7, [1_800_000]), (8, [1_800_000])]
