"""Requests as JSON: the fields of JobRequest by name, on standard input and in the body of POST /v1/predict."""

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, ValidationError, defstruct, structs

from gpuwaste.core.codec import annotated, nullable, problem
from gpuwaste.core.errors import UsageError
from gpuwaste.core.refusal import BAD, Refusal
from gpuwaste.core.typed import convert
from gpuwaste.slurm.submit.job_request import JobRequest

_LONE: Final = re.compile("[\ud800-\udfff]")  # half a character: JSON can encode it, UTF-8 cannot
MAX_REQUESTS: Final = 1000
RequestForm: Final[type[Struct]] = defstruct(
    "JobRequest",
    [(field.name, nullable(kind), None) for field, kind, _ in annotated(JobRequest)],
    forbid_unknown_fields=True,
)
RequestForm.__doc__ = "One job as it would be submitted; null or a missing field is unset."
MAX_HUB_REQUESTS: Final = 64  # the components of one het job, or some candidates: each takes milliseconds

_REQUEST: Final[Any] = RequestForm
PredictQuestion: Final = defstruct(
    "PredictQuestion",
    [("requests", Annotated[list[_REQUEST], Meta(min_length=1, max_length=MAX_HUB_REQUESTS)])],
    forbid_unknown_fields=True,
)
PredictQuestion.__doc__ = "The body of POST /v1/predict."


def requests_from_json(data: object, *, user: str = "", submit: int = 0) -> list[JobRequest]:
    """Read one request, a list, or {"requests": [...]}; `user` and `submit` are the defaults where they are left out.

    Raises UsageError naming the request and the field.
    """
    found = data["requests"] if isinstance(data, Mapping) and set(data) == {"requests"} else data
    items = found if isinstance(found, list) else [found]
    if not items or len(items) > MAX_REQUESTS:
        raise UsageError(f"requests: found {len(items)}, expected 1 to {MAX_REQUESTS}")
    return [_request(item, f"request {place}", user, submit) for place, item in enumerate(items, 1)]


def _request(item: object, where: str, user: str, submit: int) -> JobRequest:
    try:
        form = convert(_whole(item), RequestForm)
    except ValidationError as error:
        place, names = " - at " in str(error), ", ".join(field.name for field in fields(JobRequest))
        raise UsageError(f"{where}: {problem(error)}{'' if place else f': the fields are {names}'}") from error
    said = {name: value for name, value in structs.asdict(form).items() if value is not None}
    for name, value in said.items():
        if isinstance(value, str) and _LONE.search(value):
            raise UsageError(f"{where}: {name}: expected a text in UTF-8")
    return JobRequest(**{**said, "user": said.get("user") or user, "submit": said.get("submit") or submit})


def _whole(item: object) -> object:
    """Return an object with floats such as 1e9, which are integers, as integers."""
    if not isinstance(item, Mapping):
        return item
    return {key: int(v) if isinstance(v, float) and v.is_integer() else v for key, v in item.items()}


def parse_requests(body: bytes, user: str, now: int) -> list[JobRequest]:
    """Return the requests of a body, of `user` and submitted `now` where a request has neither.

    Raises Refusal 400 with the first error.
    """
    try:
        data = json.loads(body)
        if not isinstance(data, dict) or set(data) != {"requests"} or not isinstance(data["requests"], list):
            raise Refusal(BAD, 'the body is not a JSON object {"requests": [...]}')
        if len(data["requests"]) > MAX_HUB_REQUESTS:
            raise Refusal(BAD, f"{len(data['requests'])} requests: at most {MAX_HUB_REQUESTS} are allowed")
        return requests_from_json(data, user=user, submit=now)
    except (ValueError, RecursionError, UsageError) as error:
        raise Refusal(BAD, f"the body: {error}") from error
