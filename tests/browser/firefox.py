"""Debian's Firefox without a display, over Marionette: the protocol behind WebDriver, which needs no geckodriver."""

import base64
import json
import os
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from gpuwaste.testing.cluster_process import tail, wait_until
from gpuwaste.testing.daemon_config import free_port

FIREFOX: Final = Path("/usr/bin/firefox-esr")
_START_S: Final = 90.0
_ANSWER_S: Final = 90.0
_PREFERENCES: Final = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.safebrowsing.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage": "about:blank",
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "toolkit.telemetry.server": "data:,",
}
_CONSOLE: Final = """return Services.console.getMessageArray()
  .filter((one) => one instanceof Ci.nsIScriptError && one.sourceName.startsWith("http://127."))
  .map((one) => `${one.category}: ${one.errorMessage}`);"""


class Firefox:
    """One browser with a profile of its own below a directory; it ends with the block."""

    def __init__(self, directory: Path, *, dark: bool = False) -> None:
        self._profile = directory / "firefox"
        self._log = directory / "firefox.log"
        self._dark = dark
        self._number = 0

    def __enter__(self) -> Self:
        port = free_port()
        self._profile.mkdir()
        wanted = {**_PREFERENCES, "marionette.port": port, "ui.systemUsesDarkTheme": int(self._dark)}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in wanted.items()]
        (self._profile / "user.js").write_text("\n".join(lines), encoding="ascii")
        options = ["--headless", "--marionette", "--remote-allow-system-access", "--no-remote"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(FIREFOX), *options, "--profile", str(self._profile)],
                stdout=log,
                stderr=log,
                env={**os.environ, "HOME": str(self._profile)},
            )
        try:
            self._connect(port)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def open(self, url: str) -> None:
        """Go to a page and wait until it is loaded."""
        self._send("WebDriver:Navigate", url=url)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run the body of a function in the page and return what it returns; a promise is waited for."""
        return self._send("WebDriver:ExecuteScript", script=script, args=list(arguments))["value"]

    def wait(self, script: str, what: str) -> None:
        """Wait until the body of a function returns something true in the page."""
        wait_until(lambda: bool(self.run(script)), _ANSWER_S, what, lambda: str(self.run("return document.URL")))

    def click(self, selector: str) -> None:
        """Click on the first element that a CSS selector names, as a person does."""
        self._send("WebDriver:ElementClick", id=self._element(selector))

    def write(self, selector: str, text: str) -> None:
        """Type a text into a field."""
        self._send("WebDriver:ElementSendKeys", id=self._element(selector), text=text)

    def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        self._send("WebDriver:SetWindowRect", width=width, height=height)

    def console(self) -> list[str]:
        """Return the errors and warnings of pages of 127.0.0.1: what a policy refused, and what failed in scripts."""
        self._send("Marionette:SetContext", value="chrome")
        try:
            found: list[str] = self.run(_CONSOLE)
        finally:
            self._send("Marionette:SetContext", value="content")
        return found

    def screenshot(self, path: Path) -> None:
        """Keep the page as a PNG."""
        path.write_bytes(base64.b64decode(self._send("WebDriver:TakeScreenshot", full=True)["value"]))

    def _element(self, selector: str) -> str:
        found = self._send("WebDriver:FindElement", using="css selector", value=selector)["value"]
        return str(next(iter(found.values())))

    def _connect(self, port: int) -> None:
        sock = socket.socket()

        def accepted() -> bool:
            assert self._process.poll() is None, tail(self._log)
            return sock.connect_ex(("127.0.0.1", port)) == 0

        wait_until(accepted, _START_S, "Firefox to listen", lambda: tail(self._log), poll_s=0.1)
        sock.settimeout(_ANSWER_S)
        self._stream = sock.makefile("rwb")
        sock.close()  # the stream keeps it
        self._read()
        self._send("WebDriver:NewSession", capabilities={"alwaysMatch": {"acceptInsecureCerts": True}})

    def _send(self, name: str, **parameters: Any) -> Any:
        self._number += 1
        body = json.dumps([0, self._number, name, parameters]).encode()
        self._stream.write(b"%d:%s" % (len(body), body))
        self._stream.flush()
        _, number, error, result = self._read()
        assert number == self._number
        assert error is None, f"{name}: {error}"
        return result

    def _read(self) -> Any:
        """Return the next message: its length in digits, a colon, JSON."""
        digits = b"".join(iter(lambda: self._stream.read(1), b":"))
        return json.loads(self._stream.read(int(digits)))

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)


def missing() -> str | None:
    """Return why it cannot be started here, None where it can."""
    return None if FIREFOX.exists() else f"no {FIREFOX}: make packages installs it"
