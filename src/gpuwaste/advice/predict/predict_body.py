"""What is asked of the hub in a body: its shape for /openapi.json, and its reading."""

import json
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, defstruct

from gpuwaste.advice.predict.request_json import RequestForm, requests_from_json
from gpuwaste.core.errors import UsageError
from gpuwaste.core.refusal import BAD, Refusal
from gpuwaste.slurm.submit.request import JobRequest

MAX_REQUESTS: Final = 64  # the components of one het job, or some candidates: each takes milliseconds


_REQUEST: Final[Any] = RequestForm
PredictQuestion: Final = defstruct(
    "PredictQuestion",
    [("requests", Annotated[list[_REQUEST], Meta(min_length=1, max_length=MAX_REQUESTS)])],
    forbid_unknown_fields=True,
)
PredictQuestion.__doc__ = "The body of POST /v1/predict."


class NoticeRunQuestion(Struct, forbid_unknown_fields=True):
    """The body of POST /v1/notices/run."""

    dry_run: Annotated[bool, Meta(description="Decide, and note and send nothing.")]


class NoticeWish(Struct, forbid_unknown_fields=True):
    """The body of POST /v1/notices/wish."""

    mail: Annotated[bool, Meta(description="Whether the caller wants digests.")]


def parse_requests(body: bytes, user: str, now: int) -> list[JobRequest]:
    """Return the requests of a body, of `user` and submitted `now` where they do not say.

    Raises Refusal 400 with the first thing that is wrong.
    """
    try:
        data = json.loads(body)
        if not isinstance(data, dict) or set(data) != {"requests"} or not isinstance(data["requests"], list):
            raise Refusal(BAD, 'the body is not a JSON object {"requests": [...]}')
        if len(data["requests"]) > MAX_REQUESTS:
            raise Refusal(BAD, f"{len(data['requests'])} requests: at most {MAX_REQUESTS} are allowed")
        return requests_from_json(data, user=user, submit=now)
    except (ValueError, RecursionError, UsageError) as error:
        raise Refusal(BAD, f"the body: {error}") from error
