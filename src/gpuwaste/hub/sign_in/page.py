"""The pages of signing in: plain HTML and one script, under the strictest policy that browsers know."""

from typing import Final

from fastapi import Response

from gpuwaste.show.static_files import static_url

SCRIPT: Final = """\
"use strict";
const form = document.querySelector("form");
const token = window.location.hash.slice(1);
if (token !== "") {
  window.history.replaceState(null, "", window.location.pathname);
  form.elements.namedItem("link").value = token;
  if (form.dataset.signedIn === undefined) {
    form.submit();
  }
}
"""
"""Removes the token from the address bar. A signed-in user has to press the button: a link may be a trap."""
_HOW: Final = "Run <code>gpuwaste web</code> on a login node and open the link that it prints."
_PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - gpuwaste</title>
<link rel="icon" href="{icon}">
<link rel="stylesheet" href="{style}">
</head>
<body>
<header><div class="wide"><a class="brand" href="/me">gpuwaste</a></div></header>
<main class="wide">
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""
_FORM: Final = """\
<form method="post" action="/enter"{signed_in}>
<p><label for="link">Link or token from <code>gpuwaste web</code></label>
<input id="link" name="link" type="text" autocomplete="off" spellcheck="false" required maxlength="1024"></p>
<p><button type="submit">Sign in</button></p>
</form>
<script src="/enter.js"></script>"""


def sign_in_needed() -> Response:
    """Return the answer to a visitor who is not signed in."""
    return page("Sign in", f'<p>{_HOW}</p>\n<p><a href="/enter">I have a link or a token</a></p>', 401)


def enter_page(*, signed_in: bool) -> Response:
    """Return the page that takes a link."""
    note = "<p>A session is open in this browser. Signing in again replaces it.</p>\n" if signed_in else ""
    form = _FORM.format(signed_in=" data-signed-in" if signed_in else "")
    return page("Sign in", f"<p>{_HOW}</p>\n{note}{form}")


def bad_link() -> Response:
    """Return the answer to an invalid link."""
    return page("Sign in", f"<p>This link was used already, or is older than a minute.</p>\n<p>{_HOW}</p>", 403)


def signed_out(*, by_proxy: bool) -> Response:
    """Return the page after signing out."""
    words = "This site's own sign-in is still open: sign out there too." if by_proxy else "The session has ended."
    return page("Signed out", f"<p>{words}</p>")


def page(title: str, body: str, status: int = 200) -> Response:
    """Return the HTML of a page, which has no text from outside."""
    files = {"icon": static_url("icon.svg"), "style": static_url("gpuwaste.css")}
    return Response(_PAGE.format(title=title, body=body, **files), status, media_type="text/html; charset=utf-8")
