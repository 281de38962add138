"""A lake's files in S3: DuckDB's signed extension httpfs, and the keys for one bucket."""

import configparser
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import duckdb

from gpuwaste.core.errors import ConfigError, StoreError
from gpuwaste.core.files import read_closed
from gpuwaste.store.duckdb_connection import load_extension, quoted, reason

SCHEME: Final = "s3://"
_MAX_FILE: Final = 16_384
_SECTION: Final = "default"
_PLACE: Final = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,62}(/[A-Za-z0-9._-]{1,100}){1,10}")
_ENDPOINT: Final = re.compile(r"(https?)://([A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:]{2,45}\])(:[0-9]{1,5})?/?")
_REGION: Final = re.compile(r"[A-Za-z0-9-]{1,63}")
# A hub without its lake must finally answer 503: a batch is a dozen requests, and its sender retries.
_SETTINGS: Final = {
    "http_timeout": "5",
    "http_retries": "1",
    "s3_uploader_thread_limit": "4",
    "enable_global_s3_configuration": "false",  # no keys from the environment
    "enable_server_cert_verification": "true",
    "enable_curl_server_cert_verification": "true",
}


@dataclass(frozen=True, slots=True)
class S3Keys:
    """An access key from a credentials file of AWS's tools."""

    key_id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the section [default] of a credentials file that others cannot read. Raises ConfigError.

        Format: https://docs.aws.amazon.com/cli/latest/userguide/cli-configure-files.html
        """
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read_string(read_closed(path, _MAX_FILE, "the keys"))
            section = parser[_SECTION]
            key_id, secret = section["aws_access_key_id"], section["aws_secret_access_key"]
        except (configparser.Error, KeyError):  # its text quotes lines of the file
            key_id = secret = ""
        if not key_id or not secret:
            expected = "[default] with aws_access_key_id and aws_secret_access_key, as in a credentials file of AWS"
            raise ConfigError(f"{path}: expected a section {expected}") from None
        return cls(key_id, secret, section.get("aws_session_token", ""))


@dataclass(frozen=True, slots=True)
class S3Place:
    """A bucket's folder, s3://BUCKET/FOLDER, at a service; an empty endpoint is AWS's endpoint of the region."""

    url: str
    keys: S3Keys
    endpoint: str = ""
    region: str = "us-east-1"
    ca_file: str = ""  # empty: the host's

    def __post_init__(self) -> None:
        """Raise ConfigError where a part is not valid for S3."""
        if not _PLACE.fullmatch(self.url):
            raise ConfigError(f"[hub] lake_data {self.url!r}: expected s3://BUCKET/FOLDER")
        if self.endpoint and not _ENDPOINT.fullmatch(self.endpoint):
            raise ConfigError(f"[hub] lake_s3_endpoint {self.endpoint!r}: expected https://HOST[:PORT]")
        if not _REGION.fullmatch(self.region):
            raise ConfigError(f"[hub] lake_s3_region {self.region!r}: expected a name such as us-east-1")

    def __str__(self) -> str:
        """Return the URL."""
        return self.url

    def prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let a database read and write below the URL, and nowhere else. Raises StoreError."""
        load_extension(connection, "httpfs")
        ca_file = self.ca_file or ssl.get_default_verify_paths().cafile or ""
        settings = {**_SETTINGS, "ca_cert_file": ca_file}
        secret = ", ".join(f"{name} {quoted(value)}" for name, value in self._secret().items())
        try:
            for name, value in settings.items():
                connection.execute(f"SET GLOBAL {name} = {quoted(value)}")
            connection.execute(f"CREATE OR REPLACE TEMPORARY SECRET lake (TYPE s3, {secret})")
        except duckdb.Error as error:
            raise StoreError(f"{self.url}: {reason(error)}") from error

    def _secret(self) -> dict[str, str]:
        found = {"SCOPE": self.url, "REGION": self.region, "KEY_ID": self.keys.key_id, "SECRET": self.keys.secret}
        if self.keys.token:
            found["SESSION_TOKEN"] = self.keys.token
        if match := _ENDPOINT.fullmatch(self.endpoint):
            scheme, host, port = match.groups()
            # Services other than AWS have one host name for all buckets.
            tls = "true" if scheme == "https" else "false"
            found |= {"ENDPOINT": host + (port or ""), "USE_SSL": tls, "URL_STYLE": "path"}
        return found
