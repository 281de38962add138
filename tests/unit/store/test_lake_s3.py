"""S3 as the place of a lake: what of settings and of a file with keys is accepted."""

from pathlib import Path

import pytest

from gpuwaste.core.errors import ConfigError
from gpuwaste.store.lake_s3 import S3Keys, S3Place

KEYS = S3Keys("AKIA", "hidden")


def closed(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def test_keys_of_a_credentials_file(tmp_path: Path) -> None:
    """The section [default] counts, as AWS's tools write it; nothing is interpolated."""
    text = "[other]\naws_access_key_id=no\n[default]\naws_access_key_id = AKIA\naws_secret_access_key=a%b/c+d=\n"
    assert S3Keys.read(closed(tmp_path / "keys", text.encode())) == S3Keys("AKIA", "a%b/c+d=")
    more = text + "aws_session_token = x/y==\n"
    assert S3Keys.read(closed(tmp_path / "keys", more.encode())) == S3Keys("AKIA", "a%b/c+d=", "x/y==")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hidden",
        b"[default]\n",
        b"[default]\naws_access_key_id = AKIA\n",
        b"[default]\naws_access_key_id =\naws_secret_access_key = hidden\n",
        b"[default]\naws_secret_access_key = hidden\naws_secret_access_key = hidden\n",
        b"[default]\nhidden" * 10_000,
        b"\xff\xfehidden",
        b"[default]\n\0hidden\0",
    ],
    ids=["empty", "no section", "nothing", "no secret", "empty id", "twice", "huge", "binary", "NUL"],
)
def test_other_files_are_refused_and_not_quoted(tmp_path: Path, content: bytes) -> None:
    """A file without both keys is one line that says which file, and nothing of what is in it."""
    path = closed(tmp_path / "keys", content)
    with pytest.raises(ConfigError) as caught:
        S3Keys.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_everybody_can_read_is_refused(tmp_path: Path) -> None:
    """The message says what to do."""
    path = closed(tmp_path / "keys", b"[default]\n")
    path.chmod(0o604)
    with pytest.raises(ConfigError, match="chmod o="):
        S3Keys.read(path)


def test_keys_are_not_shown() -> None:
    """Neither secret nor token stand in what a log or a traceback would print."""
    assert "hidden" not in repr(S3Place("s3://bucket/x", S3Keys("AKIA", "hidden", "hidden")))


@pytest.mark.parametrize(
    "url", ["s3://bucket", "s3://bucket/", "s3://B/x", "s3://b/x'", "s3://bucket/*", "s3://bucket/a//b"]
)
def test_other_places_are_refused(url: str) -> None:
    """A folder in a bucket, and no pattern."""
    with pytest.raises(ConfigError, match=r"lake_data .*: expected s3://BUCKET/FOLDER"):
        S3Place(url, KEYS)


@pytest.mark.parametrize(
    "endpoint", ["s3.example.org", "ftp://x", "https://x/path", "https://u:p@x", "http://x:123456"]
)
def test_other_endpoints_are_refused(endpoint: str) -> None:
    """A host and a port, with the scheme that says whether TLS is spoken."""
    with pytest.raises(ConfigError, match="lake_s3_endpoint"):
        S3Place("s3://bucket/x", KEYS, endpoint)


@pytest.mark.parametrize(
    "endpoint", ["", "https://s3.example.org", "http://127.0.0.1:9000/", "https://[2001:db8::1]:9000"]
)
def test_usual_places(endpoint: str) -> None:
    """Nothing is said of them."""
    assert str(S3Place("s3://bucket/a/b", KEYS, endpoint, "eu-central-1")) == "s3://bucket/a/b"
