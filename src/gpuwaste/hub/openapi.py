"""OpenAPI's description of what the hub is asked and answers, from the declared types."""

from typing import Any

import msgspec

Responses = dict[int | str, dict[str, Any]]


def body(kind: Any) -> dict[str, Any]:
    """Return the description of a JSON body that a route reads itself."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema(kind)}}}}


def answers(kind: Any, *statuses: str, description: str = "Successful Response") -> Responses:
    """Return the description of the answers with these statuses, by default 200."""
    content = {"application/json": {"schema": schema(kind)}}
    return {status: {"description": description, "content": content} for status in statuses or ("200",)}


def schema(kind: Any) -> Any:
    """Return the JSON schema of a type, its parts written in place."""
    (found,), parts = msgspec.json.schema_components([kind])

    def written_out(value: Any) -> Any:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            return written_out(parts[name]) if name else {key: written_out(item) for key, item in value.items()}
        return [written_out(item) for item in value] if isinstance(value, list | tuple) else value

    return written_out(found)
