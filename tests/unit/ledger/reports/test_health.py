"""The hub's health and map as they travel: bytes that are read and written as they are."""

import json

import pytest
from msgspec import to_builtins

from gpuwaste.core.codec import convert
from gpuwaste.core.errors import ParseError
from gpuwaste.jobs.map_types import MapAnswer
from gpuwaste.net.health_types import HealthAnswer

HEALTH = (
    b'{"status":"degraded","version":"0.1.0","cluster":"gw","now":1,"protocol":[1,2],'
    b'"accounting":{"ok":false,"lag_s":null,"failures":0,"error":""},'
    b'"prediction":{"state":"ready","model":"","model_hash":"","note":"","created":null,"event":2,"error":""},'
    b'"ledger":{"judged_until":null,"judged_anew_ratio":null},'
    b'"under_use":{"below_pct":5.0,"min_s":30.0,"min_coverage":0.8},"nodes_reporting":0}'
)
NEW = (
    b',"role":"serves","inbox":{"batches":0,"age_s":null}'
    b',"sources":{"runs":0,"typical_pct":null,"mean_pct":null,"far_runs":0}'
)
MAP = (
    b'{"jobs":[{"job_id":7,"start":1000,"restarts":0,"state":"RUNNING","suspended":false,'
    b'"nodes":{"gpu1":{"positions":[0,3],"shards":0},"gpu2":{"positions":[1],"shards":2}}}]}'
)


@pytest.mark.parametrize(
    ("text", "kind", "added"),
    [(HEALTH.replace(b'"now":1,', b'"now":1.5,'), HealthAnswer, NEW), (MAP, MapAnswer, b"")],
)
def test_the_bytes_are_as_they_were(text: bytes, kind: type[HealthAnswer | MapAnswer], added: bytes) -> None:
    """Read as its type and written again, an answer has the same fields in the same order; new ones come last."""
    read = convert(json.loads(text), kind, "an answer")
    assert json.dumps(to_builtins(read), separators=(",", ":")).encode() == text[:-1] + added + b"}"


def test_a_hub_of_another_version_is_read() -> None:
    """What a later hub adds is ignored, and what an earlier one did not send yet is its default."""
    later = json.loads(HEALTH) | {"later": {"x": 1}}
    assert convert(later, HealthAnswer, "health") == convert(json.loads(HEALTH), HealthAnswer, "health")
    least = convert({"version": "0.1.0", "protocol": [1, 1], "accounting": {}}, HealthAnswer, "health")
    assert (least.prediction.model_hash, least.accounting.lag_s, least.under_use.below_pct) == ("", None, 5.0)
    with pytest.raises(ParseError, match="protocol"):
        convert({"status": "ok"}, HealthAnswer, "health")
