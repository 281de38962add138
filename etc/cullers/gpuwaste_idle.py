#!/usr/bin/env python3
"""Ask a gpuwaste hub whether a job or a node is idle, and believe nothing but a fresh, verified yes.

Copy this file next to your culler; it needs Python 3.9 and no other package. See docs/how-to/idleness.md.

    asker = IdleAsker("https://hub.example.org:9461", token_file="/etc/culler/token", ca="/etc/culler/ca.pem")
    found = asker.job("4711", for_s=3600)
    if found is not None and found.usable():  # a yes; ask again rather than keep it
        stop("4711")

Whatever goes wrong (no hub, no answer, a wrong signature, an old answer, no, unknown) is None: do not cull.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import http.client
import json
import logging
import os
import pwd
import re
import secrets
import ssl
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

MAX_ANSWER = 1024 * 1024
TIMEOUT_S = 20.0
LOG = logging.getLogger("gpuwaste_idle")


class NotAnsweredError(Exception):
    """There is no answer that can be believed."""


@dataclass(frozen=True)
class Yes:
    """A verified yes: idle from `since` to `as_of`, UTC seconds of the hub's clock; `runs` are the runs it is about."""

    since: int
    as_of: int
    runs: list[Any]
    good_until: float  # of time.monotonic()

    def usable(self) -> bool:
        """Return whether it may be used now."""
        return time.monotonic() < self.good_until


class TokenProof:
    """A token of the hub's node_tokens_file: only over TLS."""

    def __init__(self, path: str) -> None:
        self._path = path

    def credential(self, _digest: str) -> str:
        """Return the value of Authorization."""
        return "Bearer " + self._token()

    def check(self, ack: str, digest: str) -> None:
        """Raise NotAnsweredError unless the hub signed the digest."""
        wanted = hmac.new(self._token().encode(), digest.encode(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(ack, wanted):
            raise NotAnsweredError("the answer is not signed with this token")

    def _token(self) -> str:
        return Path(self._path).read_text(encoding="ascii").strip()


class MungeProof:
    """munge's own commands; `hub_user` is the user that the hub runs as."""

    def __init__(self, hub_user: str = "gpuwaste", socket: str = "") -> None:
        self._uid = pwd.getpwnam(hub_user).pw_uid
        self._at = ["--socket", socket] if socket else []

    def credential(self, digest: str) -> str:
        """Return the value of Authorization, good for one request."""
        return "Munge " + self._run(["munge", *self._at, "--string", digest], "").strip()

    def check(self, ack: str, digest: str) -> None:
        """Raise NotAnsweredError unless the hub signed the digest."""
        head, _, payload = self._run(["unmunge", *self._at], ack).partition("\n\n")
        uid = re.search(r"^UID:\s+\S+ \((\d+)\)$", head, re.MULTILINE)
        if uid is None or int(uid[1]) != self._uid or payload.strip() != digest:
            raise NotAnsweredError("the answer is not signed by the hub's user for this request")

    @staticmethod
    def _run(argv: list[str], text: str) -> str:
        done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode != 0:  # only the exit code counts: an expired or used credential is printed all the same
            raise NotAnsweredError(f"{argv[0]}: exit code {done.returncode}: {done.stderr.strip()[:200]}")
        return done.stdout


class IdleAsker:
    """Asks one hub; with `token_file` by a token, else by munge."""

    def __init__(
        self, url: str, *, token_file: str = "", ca: str = "", hub_user: str = "gpuwaste", cluster: str = ""
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"https", "http"} or not parts.hostname:
            raise ValueError(f"{url}: expected https://HOST:PORT")
        if token_file and parts.scheme != "https":
            raise ValueError(f"{url}: a token must not be sent in clear text: use https://")
        self._host, self._port, self._tls = parts.hostname, parts.port, None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cafile=ca or None)
        self._proof = TokenProof(token_file) if token_file else MungeProof(hub_user)
        self._cluster = cluster

    def job(self, job_id: str, *, for_s: int = 3600, max_age_s: int = 1200) -> Yes | None:
        """Return a yes about a job, as Slurm prints its id; None for everything else."""
        return self._asked("job", f"/v1/jobs/{quote(job_id, safe='')}/idleness", job_id, for_s, max_age_s)

    def node(self, name: str, *, for_s: int = 3600, max_age_s: int = 1200) -> Yes | None:
        """Return a yes about a node; None for everything else."""
        return self._asked("node", f"/v1/nodes/{quote(name, safe='')}/idleness", name, for_s, max_age_s)

    def _asked(self, about: str, path: str, name: str, for_s: int, max_age_s: int) -> Yes | None:
        try:
            return self._yes(about, path, name, for_s, max_age_s)
        except (NotAnsweredError, OSError, ValueError, http.client.HTTPException, subprocess.SubprocessError) as error:
            LOG.warning("%s %s: not culled: %s", about, name, error)
            return None

    def _yes(self, about: str, path: str, name: str, for_s: int, max_age_s: int) -> Yes | None:
        began = time.monotonic()
        nonce = secrets.token_urlsafe(24)  # so that no older answer can be sent again
        target = f"{path}?{urlencode({'for_s': for_s, 'max_age_s': max_age_s, 'nonce': nonce})}"
        credential = self._proof.credential(hashlib.sha256(f"GET\n{target}\n".encode()).hexdigest())
        status, ack, body = self._fetch(target, credential)
        if status != http.client.OK:
            raise NotAnsweredError(f"HTTP {status}: {body[:200]!r}")
        self._proof.check(ack, hashlib.sha256(f"ACK\n{credential}\n".encode() + body).hexdigest())
        found = json.loads(body)
        wanted = {"document": "idleness", "schema": 1, "about": about, "name": name, "nonce": nonce, "for_s": for_s}
        if self._cluster:
            wanted["cluster"] = self._cluster
        if not isinstance(found, dict) or any(found.get(key) != value for key, value in wanted.items()):
            raise NotAnsweredError("the answer is to another question")
        if found.get("answer") != "yes":
            raise NotAnsweredError(f"{found.get('answer')}: {', '.join(map(str, found.get('reasons', [])))}")
        since, as_of, valid_s = (self._number(found, key) for key in ("since", "as_of", "valid_s"))
        if as_of - since < for_s or self._number(found, "generated") - as_of > max_age_s:
            raise NotAnsweredError("a yes whose own times contradict it")
        return Yes(since, as_of, found["runs"], began + valid_s)

    @staticmethod
    def _number(found: dict[str, Any], key: str) -> int:
        value: Any = found.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise NotAnsweredError(f"{key} is not a number")
        return value

    def _fetch(self, target: str, credential: str) -> tuple[int, str, bytes]:
        """Return status, signature and body; redirects are not followed."""
        if self._tls is None:
            connection: Any = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        else:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT_S, context=self._tls)
        try:
            connection.request("GET", target, headers={"Authorization": credential, "Accept": "application/json"})
            answer = connection.getresponse()
            body = answer.read(MAX_ANSWER + 1)
            if len(body) > MAX_ANSWER:
                raise NotAnsweredError(f"an answer of more than {MAX_ANSWER} bytes")
            return answer.status, answer.headers.get("Gpuwaste-Ack", ""), body
        finally:
            connection.close()


def main() -> int:
    """Exit with 0 only for a yes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="https://HOST:PORT of the hub")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--job", metavar="ID")
    what.add_argument("--node", metavar="NAME")
    parser.add_argument("--for", dest="for_s", type=int, default=3600, metavar="SECONDS")
    parser.add_argument("--token-file", default=os.environ.get("GPUWASTE_TOKEN_FILE", ""), metavar="FILE")
    parser.add_argument("--ca", default="", metavar="FILE")
    options = parser.parse_args()
    logging.basicConfig(format="%(message)s")
    asker = IdleAsker(options.url, token_file=options.token_file, ca=options.ca)
    found = (
        asker.job(options.job, for_s=options.for_s) if options.job else asker.node(options.node, for_s=options.for_s)
    )
    return 0 if found is not None and found.usable() else 1


if __name__ == "__main__":
    sys.exit(main())
