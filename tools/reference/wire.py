"""wire.md: what travels between the programs, from the code that reads and writes it."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, cast

from pydantic import BaseModel

from gpuwaste.core.hour import SCHEMA, AllocationHour
from gpuwaste.core.run import RunKey
from gpuwaste.core.sample import Confidence, MapSource
from gpuwaste.hub import models, questions, refusal
from gpuwaste.hub.app import build_app
from gpuwaste.hub.services import Limits, Services
from gpuwaste.wire.batch import MAX_BATCH_BYTES, PROTOCOL, PROTOCOL_MAX, PROTOCOL_MIN, Batch, Envelope, encode_hour
from gpuwaste.wire.signing import ACK_HEADER
from tools.reference import wire_advice
from tools.reference.markdown import code, document, table

HOUR_FIELDS: Final = {
    "schema": f"{SCHEMA}; the next one is read too, what it adds is ignored",
    "cluster": "Slurm's ClusterName",
    "jobid": "the job's own number (JobIDRaw)",
    "start": "start of this run, UTC seconds: a requeued job has several",
    "node": "NodeName",
    "gpu_uuid": "UUID of the GPU or MIG instance; `missing:NODE:POSITION` for one that Slurm has and NVML lacks",
    "hour_utc": "begin of the hour, UTC seconds",
    "seq": "version of the row: the highest wins",
    "final": "nothing will be added to this row",
    "share": "1 for a whole GPU, less for shards and MPS",
    "t0": "first instant of the allocation in this hour, UTC seconds",
    "t1": "last such instant",
    "seconds": "seconds by utilization percent 0..100, sparse; 0 only where exactly nothing ran",
    "idle_run_s": "the part of the seconds at 0 in runs of 60 s and more",
    "unknown_s": "seconds of which nothing is known, by reason",
    "suspended_s": "seconds in which the job was suspended",
    "proc_seen": "a process of the job was on the GPU",
    "mem_max_b": "most GPU memory in use, bytes",
    "mem_total_b": "the GPU's memory, bytes",
    "energy_j": "energy, joules",
    "last_active": "last instant with a utilization above 0, UTC seconds",
    "power_w_at_full": "mean power while the utilization was 95 % and more, watts",
    "power_limit_w": "power limit in force, watts",
    "sm_ratio_at_full": "mean share of multiprocessors that were busy in that time, 0 to 1",
    "cpu_s": "CPU seconds of the whole job on this node; the same in the row of each of its GPUs",
    "host_mem_max_b": "most memory of the whole job on this node, bytes",
    "map_source": "how the agent knew whose GPU it is: " + ", ".join(MapSource),
    "confidence": ", ".join(Confidence),
}
STATUSES: Final = {
    refusal.BAD: "can never succeed: the envelope, a parameter, a foreign cluster",
    refusal.UNAUTHORIZED: "no valid credential; `retry` true: a fresh one may do (clock, expiry, munged away)",
    refusal.FORBIDDEN: "a valid credential of somebody who may not do this",
    refusal.NOT_FOUND: "not there, or not the caller's to see: the same bytes for both",
    refusal.TOO_SLOW: "the body did not come in time",
    refusal.TOO_LARGE: "the body is larger than `max_bytes`",
    refusal.NO_SUCH_ENCODING: "a compressed body",
    refusal.UPGRADE: "a protocol out of `protocol`: [lowest, highest]",
    refusal.NOT_INSTALLED: "the hub's host lacks the extra that this route needs",
    refusal.LATER: "the hub cannot answer now: try again, after `Retry-After` seconds where it says so",
}
_CREDENTIALS: Final = f"""
- `Authorization: Munge CREDENTIAL`: a munge credential whose payload is the hex sha256 of
  `METHOD\\npath?query\\nbody`, the target exactly as on the request line. It is good for
  one attempt.
- `Authorization: Bearer TOKEN`: at a site without munge, over TLS.
- The hub's Unix socket: no credential; the kernel tells who is at the other end.

The answer to a batch carries `{ACK_HEADER}`: a munge credential over the hex sha256 of `ACK\\n` and the answer's body,
or, for a token, the HMAC-SHA256 of that digest under the caller's token.
"""


_PREDICT: Final = f"""
`POST /v1/predict`, JSON with up to {questions.MAX_REQUESTS} requests; a field that is not named here is refused:

```json
{{"requests": [{{"name": "train", "partition": "gpu", "time_limit_s": 86400, "gpus": 4, "gpu_type": "a100"}}]}}
```

Who is no operator asks about himself: another user's name or job gets 404, as what does not exist. While the hub still
reads the history after its start the answer is 503 with `Retry-After`. `GET /v1/predict?job=ID` takes the request
from accounting, none of what was known after the submission, and asks it as if it were submitted now.
"""


def routes() -> Iterator[tuple[str, str, str, str]]:
    """Yield (method, path, parameters, what it does) of each documented route."""
    app = build_app(cast("Services", _Nothing()), "0", Limits())
    for path, methods in app.openapi()["paths"].items():
        for method, route in methods.items():
            names = ", ".join(code(p["name"]) for p in route.get("parameters", ()) if p["in"] == "query")
            yield method.upper(), path, names, str(route.get("description", ""))


def answers() -> Iterator[type[BaseModel]]:
    """Yield the answers' models in the order of their file."""
    for thing in vars(models).values():
        if isinstance(thing, type) and issubclass(thing, BaseModel) and thing is not BaseModel:
            yield thing


def page() -> str:
    """Return the page."""
    return document(
        "Wire",
        f"HTTP with JSON, protocol {PROTOCOL}; the hub takes {PROTOCOL_MIN} to {PROTOCOL_MAX}. The hub serves its own "
        "description at `/openapi.json`.",
        "## Routes",
        table(("method", "path", "parameters", "what it does"), [(m, code(p), n, t) for m, p, n, t in routes()]),
        "`GET /metrics` is on the page of the [metrics](metrics.md).",
        f"## Who calls\n\n{_CREDENTIALS.strip()}",
        f"## A batch of hours\n\n`POST /v1/hours`, NDJSON of at most {MAX_BATCH_BYTES} bytes. The first line names the "
        "sender, each further line is one allocated GPU in one UTC hour:",
        f"```json\n{_sample()}\n```",
        table(("field", "meaning"), [(code(name), HOUR_FIELDS[name]) for name in _hour().to_wire()]),
        "A row is stored by (cluster, jobid, start, node, gpu_uuid, hour_utc). Unknown fields are ignored.",
        f"## A question for predictions\n\n{_PREDICT.strip()}",
        *(_shape(model) for model in (questions.PredictQuestion, questions.JobQuestion)),
        "## Answers that are not 200\n\nA JSON object with `error`, one line.",
        table(("status", "meaning"), [(str(status), meaning) for status, meaning in STATUSES.items()]),
        "## Shapes of the answers",
        *(_shape(model) for model in answers()),
        wire_advice.section(),
    )


def _shape(model: type[BaseModel]) -> str:
    rows = [
        (code(field.alias or name), code(_type(field.annotation)), field.description or "")
        for name, field in model.model_fields.items()
    ]
    return f"### {model.__name__}\n\n{model.__doc__}\n\n" + table(("field", "type", "meaning"), rows)


def _type(annotation: Any) -> str:
    text = (
        annotation.__name__ if isinstance(annotation, type) and not hasattr(annotation, "__args__") else str(annotation)
    )
    return re.sub(r"\b(?:typing|gpuwaste\.hub\.(?:models|questions))\.", "", text)


def _hour() -> AllocationHour:
    run = RunKey("gw", 7, 1750000000)
    return AllocationHour(
        run, "gpu1", "GPU-1", 1749999600, 3, 1750000000_000, 1750000060_000, util_ms={0: 12000, 87: 48000}
    )


def _sample() -> str:
    envelope = json.loads(Envelope("gw", "gpu1", "6f1c", "0.1.0").line(Batch(()).batch_id)) | {"batch_id": "5f0e"}
    return f"{json.dumps(envelope)}\n{json.dumps(json.loads(encode_hour(_hour()).line))}"


class _Nothing:
    """Stands for the services: the routes are only described."""

    def __getattr__(self, name: str) -> object:
        return None
