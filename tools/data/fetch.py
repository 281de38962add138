"""Fetches one file: what was begun goes on where it stopped; what is not the content of the catalogue is not kept."""

import contextlib
import hashlib
import lzma
import zlib
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tools.data.catalog import Item

_TIMEOUT_S: Final = 30.0  # to connect, and for each part
_TRIES: Final = 3
_CHUNK_B: Final = 65536
_SLACK_B: Final = 65536  # of a packed file beyond its plain size
_PARTIAL: Final = 206
_NOT_SATISFIABLE: Final = 416


class DataError(Exception):
    """A file that cannot be had: which, why, what to do."""


class HostError(DataError):
    """Its server does not answer."""


def fetch(item: Item, into: Path) -> bool:
    """Put the file below `into`; False where it was there. Raises DataError, HostError."""
    target = into / item.name
    if target.is_file() and _digest(_plain(target)) == item.sha256:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    for left in reversed(range(_TRIES)):
        if _download(item, part):
            break
        if not left:
            raise DataError(f"{item.name}: {item.url} ends too early each time; run it again to go on")
    _unpack(item, part, target)
    return True


def _download(item: Item, part: Path) -> bool:
    """Fetch what is missing of the published file; false where the connection ended before its end."""
    done = part.stat().st_size if part.exists() else 0
    request = Request(item.url, headers={"Range": f"bytes={done}-"} if done else {})  # noqa: S310 of our catalogue
    try:
        with urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            return _receive(answer, item, part, done)
    except HTTPError as error:
        if error.code == _NOT_SATISFIABLE:
            return True  # all of it was there
        raise DataError(f"{item.name}: {item.url} answers {error.code}: its publisher may have moved it") from error
    except (URLError, TimeoutError) as error:
        raise HostError(f"{item.name}: no answer from {item.url} ({_words(error)}): is this host online?") from error


def _receive(answer: HTTPResponse, item: Item, part: Path, done: int) -> bool:
    goes_on = answer.status == _PARTIAL and answer.headers.get("Content-Range", "").startswith(f"bytes {done}-")
    size = done if goes_on else 0
    with part.open("ab" if goes_on else "wb") as file:
        try:
            while chunk := answer.read(_CHUNK_B):
                size += len(chunk)
                if size > item.size + _SLACK_B:
                    part.unlink()
                    raise DataError(f"{item.name}: {item.url} is larger than its {item.size} bytes: not kept")
                file.write(chunk)
        except (HTTPException, OSError):
            return False
    return not answer.length  # http.client takes an answer that ends early for a whole one


def _unpack(item: Item, part: Path, target: Path) -> None:
    """Compare the content with its hash, pack it as its name says, put it in its place in one step."""
    data = b"".join(_inflated(item, part)) if item.form == "gzip" else part.read_bytes()
    found = _digest(data)
    part.unlink()
    if found != item.sha256:
        raise DataError(f"{item.name}: {item.url} has SHA-256 {found}, not {item.sha256}: damaged or changed, not kept")
    ready = target.with_name(f".{target.name}.ready")
    try:
        ready.write_bytes(lzma.compress(data) if target.suffix == ".xz" else data)
        ready.replace(target)
    finally:
        ready.unlink(missing_ok=True)


def _inflated(item: Item, part: Path) -> Iterator[bytes]:
    """Yield the content of a gzip file, and no more than it may have, so that a small file cannot fill the memory."""
    inflater = zlib.decompressobj(wbits=31)
    with contextlib.suppress(zlib.error):  # damaged: the hash of what there is says so
        yield inflater.decompress(part.read_bytes(), item.size + 1)


def _plain(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix != ".xz":
        return data
    try:
        return lzma.decompress(data)
    except (lzma.LZMAError, EOFError):
        return b""


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _words(error: OSError) -> str:
    cause = getattr(error, "reason", None) or error
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__
