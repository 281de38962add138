"""OpenAPI's description of the hub's requests and answers, from the declared types.

The routes name the types; the schemas are made when the description is requested, not at the hub's start.
"""

from dataclasses import dataclass
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.routing import APIRoute

Responses = dict[int | str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class SchemaPlaceholder:
    """A placeholder for a type's schema in the description of a route."""

    kind: Any


class DescribedApp(FastAPI):
    """An application that makes the schemas of its routes when its description is requested."""

    def openapi(self) -> dict[str, Any]:
        """Return the description of all routes, in the order of their paths."""
        for route in self.routes:
            if isinstance(route, APIRoute):
                route.responses, route.openapi_extra = _with_schemas([route.responses, route.openapi_extra])
        found = super().openapi()
        return {**found, "paths": dict(sorted(found["paths"].items()))}


def body(kind: Any) -> dict[str, Any]:
    """Return the description of a JSON body that a route reads itself."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": SchemaPlaceholder(kind)}}}}


def answers(kind: Any, *statuses: str, description: str = "Successful Response") -> Responses:
    """Return the description of the answers with these statuses, by default 200."""
    content = {"application/json": {"schema": SchemaPlaceholder(kind)}}
    return {status: {"description": description, "content": content} for status in statuses or ("200",)}


def schema(kind: Any) -> Any:
    """Return the JSON schema of a type, its parts inlined."""
    (found,), parts = msgspec.json.schema_components([kind])

    def written_out(value: Any) -> Any:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            return written_out(parts[name]) if name else {key: written_out(item) for key, item in value.items()}
        return [written_out(item) for item in value] if isinstance(value, list | tuple) else value

    return written_out(found)


def _with_schemas(value: Any) -> Any:
    if isinstance(value, SchemaPlaceholder):
        return schema(value.kind)
    if isinstance(value, dict):
        return {key: _with_schemas(item) for key, item in value.items()}
    return [_with_schemas(item) for item in value] if isinstance(value, list) else value
