"""Headless Chromium, driven over the DevTools protocol."""

import base64
import itertools
import json
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # CI is root in a container; only our own pages are opened
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--remote-debugging-port=0",
)
PATIENCE = 120.0  # seconds, for a machine that is busy
COMPLAINTS = (
    "Runtime.exceptionThrown",
    "Network.loadingFailed",
    "Log.entryAdded",
    "Runtime.consoleAPICalled",
)


class BrowserError(Exception):
    """The browser refuses a command, a script in it fails, or what is waited for does not happen."""


@contextmanager
def running(program: str, profile: Path) -> Generator["Browser"]:
    """A browser with one tab, which is ended with the block."""
    command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:  # noqa: S603 - a browser that the caller chose
        try:
            port, path = wait_for(lambda: (profile / "DevToolsActivePort").read_text().split())
            with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, open_timeout=PATIENCE) as socket:
                yield Browser(socket)
        finally:
            process.kill()


class Browser:
    """One tab; `complaints` collects errors of the console, of scripts and of the network."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.numbers = itertools.count()
        self.session: str | None = None
        self.size: tuple[int, int] | None = None
        self.complaints: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its result; events that come meanwhile are taken."""
        number = next(self.numbers)
        command = {"id": number, "method": method, "params": parameters}
        self.socket.send(json.dumps(command | ({"sessionId": self.session} if self.session else {})))
        while True:
            message = json.loads(self.socket.recv(timeout=PATIENCE))
            if message.get("id") == number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']}")
                return message["result"]
            event = message.get("params", {})
            level = event.get("entry", event).get("level", event.get("type"))
            if message.get("method") in COMPLAINTS and level not in {"info", "verbose", "log", "debug"}:
                self.complaints.append(json.dumps(event)[:500])

    def resize(self, width: int, height: int, scheme: str) -> None:
        """Make the window so large, for a user who prefers a "light" or "dark" scheme."""
        if (width, height) != self.size:  # else the page would be laid out again
            self.send(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=height,
                deviceScaleFactor=1,
                mobile=width < 600,
            )
            self.size = (width, height)
        preferred = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[preferred])

    def open(self, url: str) -> None:
        """Open a page, and wait until everything that it names is loaded."""
        self.send("Page.navigate", url=url)
        wait_for(lambda: self.run(f"location.href == {json.dumps(url)} && document.readyState == 'complete'"))

    def run(self, script: str) -> Any:
        """Return what an expression is, awaited."""
        result = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in result:
            raise BrowserError(result["exceptionDetails"])
        return result["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Write a PNG of what the window shows."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))


def wait_for(attempt: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """Return the first true value of a function that is called again and again."""
    end = time.monotonic() + seconds
    while True:
        try:
            if found := attempt():
                return found
        except FileNotFoundError:
            pass
        if time.monotonic() > end:
            raise BrowserError("It did not happen in time.")
        time.sleep(0.02)
