"""/static: the files that pages refer to; their names have a hash, so browsers keep them for a year."""

from typing import Final

from fastapi import FastAPI, Response

from gpuwaste.core.refusal import NOT_FOUND, Refusal
from gpuwaste.hub.exchange import Exchange
from gpuwaste.show.static_files import PREFIX, served_files

_HEADERS: Final = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}


def add(app: FastAPI, _: Exchange) -> None:
    """Add the routes of this subject."""

    @app.get(PREFIX + "{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        found = served_files().get(name)
        if found is None:
            raise Refusal(NOT_FOUND, "no such file: reload the page that refers to it")
        return Response(found.content, media_type=found.media_type, headers=_HEADERS)
