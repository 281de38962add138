"""The shapes of what is asked of the hub in a body: strict, so that a misspelt field is refused and not passed over."""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gpuwaste.core.request import JobRequest
from gpuwaste.hub.refusal import BAD, Refusal

MAX_REQUESTS: Final = 64  # the components of one het job, and some candidates
_STRICT: Final = ConfigDict(extra="forbid", strict=True)
Text = Annotated[str, Field(max_length=4096)]
Amount = Annotated[int, Field(ge=0, le=2**53)]


class JobQuestion(BaseModel):
    """One job as it would be submitted: the fields of JobRequest; null and "" are "not said"."""

    model_config = _STRICT
    user: Text = Field("", description="Whose history speaks: the caller's own; an operator may name anybody.")
    submit: Amount | None = Field(None, description="UTC seconds; a time that has passed is taken as now.")
    account: Text = ""
    partition: Text = ""
    qos: Text = ""
    name: Text = ""
    time_limit_s: Amount | None = None
    nodes: Amount | None = None
    cpus: Amount | None = Field(None, description="Processors of the whole job.")
    mem_b: Amount | None = Field(None, description="Bytes over all nodes.")
    gpus: Amount = Field(0, description="Whole GPUs of the whole job.")
    gpu_type: Text = ""
    is_array: bool = False
    interactive: bool = False
    script: str | None = Field(None, description="The batch script's text.")

    def request(self, user: str, now: int) -> JobRequest:
        """Return the request of `user`, submitted now or later (UTC seconds)."""
        submit = max(now, self.submit or 0)
        return JobRequest(user=user, submit=submit, **self.model_dump(exclude={"user", "submit"}))


class PredictQuestion(BaseModel):
    """The body of POST /v1/predict."""

    model_config = _STRICT
    requests: list[JobQuestion] = Field(min_length=1, max_length=MAX_REQUESTS)


def parse_predict(body: bytes) -> list[JobQuestion]:
    """Return the questions of a body. Raises Refusal 400 with the first thing that is wrong."""
    try:
        return PredictQuestion.model_validate_json(body).requests
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Refusal(BAD, f"{where or 'body'}: {first['msg']}") from error


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
