"""An app for Open OnDemand: runs `gpuwaste web` as the user and sends the browser to the link that it prints.

Passenger starts it with the portal's Python, so it needs the standard library of 3.6 alone. The link is only in a
redirect: other apps of the portal share its origin and could read it in a page.
"""

import re
import subprocess

COMMAND = ["gpuwaste", "web"]
LINK = re.compile(r"https?://[A-Za-z0-9\[\]:._-]{1,260}/enter#[A-Za-z0-9_-]{43}")
TIMEOUT_S = 30
HEADERS = [
    ("Cache-Control", "no-store"),
    ("Content-Type", "text/plain; charset=utf-8"),
    ("Referrer-Policy", "no-referrer"),
]


def application(environ, start_response):
    """Answer a GET by a redirect to the link, or by the reason why there is none."""
    if environ["REQUEST_METHOD"] != "GET":
        start_response("405 Method Not Allowed", [*HEADERS, ("Allow", "GET"), ("Content-Length", "0")])
        return [b""]
    link, reason = make_link()
    if link:
        start_response("303 See Other", [*HEADERS, ("Location", link), ("Content-Length", "0")])
        return [b""]
    body = f"No link to the GPU waste pages: {reason}\n".encode("utf-8", "replace")
    start_response("503 Service Unavailable", [*HEADERS, ("Content-Length", str(len(body)))])
    return [body]


def make_link():
    """Return the link, or an empty text and the reason."""
    try:
        done = subprocess.run(
            COMMAND, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            universal_newlines=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"cannot run gpuwaste web: {error}"
    link = done.stdout.strip()
    if done.returncode == 0 and LINK.fullmatch(link):
        return link, ""
    return "", (done.stderr.strip().splitlines() or ["gpuwaste web printed no link"])[-1][:500]
