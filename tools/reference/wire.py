"""wire.md: the messages between the programs, from the code that reads and writes them."""

import json
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any, Final

from msgspec.json import schema_components

from gpuwaste.advice.predict import request_json as questions
from gpuwaste.advice.predict.request_json import RequestForm
from gpuwaste.core import refusal
from gpuwaste.core.parts import Parts
from gpuwaste.hub import models
from gpuwaste.hub.app import build_app
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.hub_ports import ServiceLimits
from gpuwaste.hub.mount import HubReading
from gpuwaste.hub.openapi import schema
from gpuwaste.jobs.map_types import MapAnswer
from gpuwaste.ledger.curves.curve_types import JobCurves, NodeSamples
from gpuwaste.ledger.hour import HOUR_CODEC, AllocationHour, encode_hour
from gpuwaste.net.batch import MAX_BATCH_BYTES, PROTOCOL, PROTOCOL_MAX, PROTOCOL_MIN, Batch, Envelope
from gpuwaste.net.health_types import HealthAnswer
from gpuwaste.net.request_signing import ACK_HEADER
from gpuwaste.net.sample_query import RunWindow, SampleQuestion
from gpuwaste.show.resource import Order, Resource, declared
from gpuwaste.slurm.run_key import RunKey
from tools.reference import wire_advice
from tools.reference.markdown import code, document, table

STATUSES: Final = {
    refusal.BAD: "can never succeed: wrong envelope or parameter, or another cluster",
    refusal.UNAUTHORIZED: "no valid credential; `retry` true: a new one may be valid (clock, expiry, munged down)",
    refusal.FORBIDDEN: "a valid credential without the permission",
    refusal.NOT_FOUND: "does not exist, or not visible to the caller: identical answers for both",
    refusal.TOO_SLOW: "timeout while reading the body",
    refusal.TOO_LARGE: "the body is larger than `max_bytes`",
    refusal.NO_SUCH_ENCODING: "a compressed body",
    refusal.UPGRADE: "a protocol version outside `protocol`: [lowest, highest]",
    refusal.NOT_INSTALLED: "the hub's host lacks the extra that this route needs",
    refusal.LATER: "the hub cannot answer now: retry, after `Retry-After` seconds if that header is present",
}
_CREDENTIALS: Final = f"""
- `Authorization: Munge CREDENTIAL`: a munge credential whose payload is the hex sha256 of
  `METHOD\\npath?query\\nbody`, the target exactly as on the request line. It is valid for
  one request.
- `Authorization: Bearer TOKEN`: at a site without munge, over TLS.
- The hub's Unix socket: no credential; the kernel reports the peer's uid.

The answer to a batch carries `{ACK_HEADER}`: a munge credential over the hex sha256 of `ACK\\n` and the answer's body,
or, for a token, the HMAC-SHA256 of that digest under the caller's token. An answer to the actor is signed over
`ACK\\n`, the request's `Authorization` and a newline, and the body: it answers only that request.
"""


_QUESTION: Final = SampleQuestion("gpu1", RunWindow(7, 1750000000, 1749999940_000000, 1750003660_000000, 2000))
_PREDICT: Final = f"""
`POST /v1/predict`, JSON with up to {questions.MAX_HUB_REQUESTS} requests; unknown fields are an error:

```json
{{"requests": [{{"name": "train", "partition": "gpu", "time_limit_s": 86400, "gpus": 4, "gpu_type": "a100"}}]}}
```

Users who are not operators get predictions only for themselves: another user's name or job gets 404, as if it did not
exist. While the hub loads the job history after its start, the answer is 503 with `Retry-After`.
`GET /v1/predict?job=ID` takes the request from accounting, without anything that was known only after the submission,
and predicts it as if it were submitted now.
"""


_SAMPLES: Final = f"""
The hub asks an agent's exporter, with a munge credential of its own user over the target; the parameters are in this
order:

```
GET {_QUESTION.target}
```

`since_us` and `until_us` are UTC microseconds. The answer is gzip'd JSON and carries `{ACK_HEADER}` of the agents'
user. 400: another node's question; 401, 403: not the hub; 503: another question is being answered.
"""


def routes() -> Iterator[tuple[str, str, str, str]]:
    """Yield (method, path, parameters, what it does) of each documented route."""
    app = build_app(Exchange(HubReading(Parts()), ServiceLimits()), "0")
    for path, methods in sorted(app.openapi()["paths"].items()):
        for method, route in methods.items():
            names = ", ".join(code(p["name"]) for p in route.get("parameters", ()) if p["in"] == "query")
            yield method.upper(), path, names, str(route.get("description", ""))


def answers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the schema of the answers' types and their parts."""
    kinds = [thing for thing in vars(models).values() if getattr(thing, "__module__", "") == models.__name__]
    kinds += [one.document for one in declared() if isinstance(one, Resource | Order)]
    kinds += [JobCurves, MapAnswer, HealthAnswer]
    yield from schema_components(kinds)[1].items()


def page() -> str:
    """Return the page."""
    return document(
        "Wire",
        f"HTTP with JSON, protocol {PROTOCOL}; the hub accepts {PROTOCOL_MIN} to {PROTOCOL_MAX}. The hub's own "
        "description is at `/openapi.json`.",
        "## Routes",
        table(("method", "path", "parameters", "what it does"), [(m, code(p), n, t) for m, p, n, t in routes()]),
        "`GET /metrics`: see [metrics](metrics.md).",
        f"## Authentication\n\n{_CREDENTIALS.strip()}",
        f"## A batch of hours\n\n`POST /v1/hours`, NDJSON of at most {MAX_BATCH_BYTES} bytes. The first line names the "
        "sender, each further line is one allocated GPU in one UTC hour:",
        f"```json\n{_sample()}\n```",
        _fields(schema(HOUR_CODEC.struct)),
        "A row is stored by (cluster, jobid, start, node, gpu_uuid, hour_utc). Unknown fields are ignored.",
        f"## A request for predictions\n\n{_PREDICT.strip()}",
        *(_shape(kind.__name__, schema(kind)) for kind in (questions.PredictQuestion, RequestForm)),
        f"## The samples of a run, from an agent\n\n{_SAMPLES.strip()}",
        *(_shape(name, part) for name, part in schema_components([NodeSamples])[1].items() if name == "NodeSamples"),
        "## Answers that are not 200\n\nA JSON object with `error`, one line.",
        table(("status", "meaning"), [(str(status), meaning) for status, meaning in STATUSES.items()]),
        "## Shapes of the answers",
        *(_shape(name, part) for name, part in answers()),
        wire_advice.section(),
    )


def _fields(found: dict[str, Any]) -> str:
    """Return the table of what an object has: each field with its type, its bounds and its meaning."""
    return table(
        ("field", "type", "meaning"),
        [(code(name), code(_type(part)), part.get("description", "")) for name, part in found["properties"].items()],
    )


def _shape(name: str, found: dict[str, Any]) -> str:
    return f"### {name}\n\n{cleandoc(found['description'])}\n\n{_fields(found)}"


def _type(part: dict[str, Any]) -> str:
    """Return a field's type in a few words: `integer 0..100 or null`, `list of string`, `map of number`."""
    if "anyOf" in part:
        return " or ".join(dict.fromkeys(text for one in part["anyOf"] for text in _type(one).split(" or ")))
    if "enum" in part:
        return " or ".join(json.dumps(value) for value in part["enum"])
    if part.get("type") == "array":
        return f"list of {_type(part.get('items') or part.get('prefixItems', [{}])[0])}"
    if "additionalProperties" in part and part.get("title") is None:
        return f"map of {_type(part['additionalProperties'] or {})}"
    low, high = part.get("minimum"), part.get("maximum")
    bounds = f" {low:.6g}..{high:.6g}" if low is not None and high is not None and high < 1 << 60 else ""
    name = str(part.get("$ref", "")).rpartition("/")[2] or part.get("title") or part.get("type", "anything")
    return f"{name}{bounds}"


def _hour() -> AllocationHour:
    run = RunKey("gw", 7, 1750000000)
    return AllocationHour(
        run, "gpu1", "GPU-1", 1749999600, 3, 1750000000_000, 1750000060_000, util_ms={0: 12000, 87: 48000}
    )


def _sample() -> str:
    envelope = json.loads(Envelope("gw", "gpu1", "6f1c", "0.1.0").line(Batch(()).batch_id)) | {"batch_id": "5f0e"}
    return f"{json.dumps(envelope)}\n{json.dumps(json.loads(encode_hour(_hour()).line))}"
