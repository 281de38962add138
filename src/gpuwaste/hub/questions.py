"""What is asked of the hub in a body: its shape for /openapi.json, and its reading."""

import json
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from gpuwaste.core.errors import UsageError
from gpuwaste.core.request import JobRequest
from gpuwaste.hub.refusal import BAD, Refusal
from gpuwaste.predict.request_json import requests_from_json

MAX_REQUESTS: Final = 64  # the components of one het job, or some candidates: each takes milliseconds


class JobQuestion(BaseModel):
    """One job as it would be submitted: the fields of JobRequest; null, "" and a field left out are "not said"."""

    model_config = ConfigDict(extra="forbid")
    user: str | None = Field(None, description="Whose history speaks: the caller's own; an operator may name anybody.")
    submit: int | None = Field(None, description="UTC seconds; left out or passed: now.")
    account: str | None = None
    partition: str | None = None
    qos: str | None = None
    name: str | None = None
    time_limit_s: int | None = None
    nodes: int | None = None
    cpus: int | None = Field(None, description="Processors of the whole job.")
    mem_b: int | None = Field(None, description="Bytes over all nodes.")
    gpus: int | None = Field(None, description="Whole GPUs of the whole job.")
    gpu_type: str | None = None
    is_array: bool | None = None
    interactive: bool | None = None
    script: str | None = Field(None, description="The batch script's text.")
    comment: str | None = Field(None, description="--comment: an override of a policy stands there.")
    whole_node: bool | None = Field(None, description="Whether whole nodes are asked for (--exclusive).")


class PredictQuestion(BaseModel):
    """The body of POST /v1/predict."""

    model_config = ConfigDict(extra="forbid")
    requests: list[JobQuestion] = Field(min_length=1, max_length=MAX_REQUESTS)


class NoticeRunQuestion(BaseModel):
    """The body of POST /v1/notices/run."""

    model_config = ConfigDict(extra="forbid")
    dry_run: bool = Field(description="Decide, and note and send nothing.")


class NoticeWish(BaseModel):
    """The body of POST /v1/notices/wish."""

    model_config = ConfigDict(extra="forbid")
    mail: bool = Field(description="Whether the caller wants digests.")


def parse_requests(body: bytes, user: str, now: int) -> list[JobRequest]:
    """Return the requests of a body, of `user` and submitted `now` where they do not say.

    Raises Refusal 400 with the first thing that is wrong.
    """
    try:
        data = json.loads(body)
        if not isinstance(data, dict) or set(data) != {"requests"} or not isinstance(data["requests"], list):
            raise Refusal(BAD, 'the body is no JSON object {"requests": [...]}')
        if len(data["requests"]) > MAX_REQUESTS:
            raise Refusal(BAD, f"{len(data['requests'])} requests: at most {MAX_REQUESTS} at a time")
        return requests_from_json(data, user=user, submit=now)
    except (ValueError, RecursionError, UsageError) as error:
        raise Refusal(BAD, f"the body: {error}") from error


def body_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return OpenAPI's description of a JSON body that a route reads itself, its parts written in place."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def written_out(value: Any) -> Any:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            return written_out(parts[name]) if name else {key: written_out(item) for key, item in value.items()}
        return [written_out(item) for item in value] if isinstance(value, list) else value

    return {"requestBody": {"required": True, "content": {"application/json": {"schema": written_out(schema)}}}}
