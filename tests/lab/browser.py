"""Chromium, driven through the DevTools protocol over two pipes: no package and no port is needed for it."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions",
         "--disable-background-networking", "--remote-debugging-pipe")  # fmt: skip
PATIENCE = 20.0  # seconds


def chromium() -> str | None:
    """The browser of this machine, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """A browser without a window; `open` gives a page of it."""

    def __init__(self, profile: Path) -> None:
        program = chromium()
        assert program is not None
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to 4.
        line = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}'
        self.process = subprocess.Popen(
            ["bash", "-c", line, program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._number = 0
        self._received = b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        self.process.terminate()
        self.process.wait(10)
        os.close(self._write)
        os.close(self._read)

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """A command, and its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            received = self._message()
            if received.get("id") == self._number:
                assert "error" not in received, (method, received["error"])
                found: dict[str, Any] = received["result"]
                return found
            self.events.append(received)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            data = os.read(self._read, 1 << 20)
            assert data, "the browser has ended"
            self._received += data
        text, _, self._received = self._received.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    @contextmanager
    def open(
        self, url: str, width: int = 1280, height: int = 800,
        until: str = "document.documentElement?.dataset.ready === 'yes'",
    ) -> Iterator["Page"]:  # fmt: skip
        """A page that is ready, or of which an expression is true."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log"):
            page.send(f"{domain}.enable")
        page.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 800
        )
        page.send("Page.navigate", url=url)
        page.wait(until)
        yield page
        self.send("Target.closeTarget", targetId=target)


class Page:
    """A page in the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser = browser
        self.session = session

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.send(method, self.session, **parameters)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; what it promises is awaited."""
        found = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Wait until an expression is true."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = self.evaluate(expression)
            if found:
                return found
            time.sleep(0.01)
        raise AssertionError(f"this never came true: {expression}")

    def click(self, selector: str) -> None:
        """Click the middle of an element, once it is there."""
        place = f"document.querySelector({json.dumps(selector)})"
        self.wait(f"{place} !== null")
        x, y = self.evaluate(
            f"(() => {{ const e = {place}; e.scrollIntoView({{block: 'nearest'}}); const b = e.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press a key of the keyboard."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def text(self, selector: str) -> str:
        """The text of an element, once it is there."""
        place = f"document.querySelector({json.dumps(selector)})"
        self.wait(f"{place} !== null")
        return str(self.evaluate(f"{place}.innerText"))

    @property
    def problems(self) -> list[Any]:
        """Errors in the console, exceptions that nothing caught, requests that failed."""
        self.evaluate("0")
        kinds = {"Runtime.exceptionThrown", "Log.entryAdded"}
        return [
            event["params"] for event in self.browser.events
            if event.get("sessionId") == self.session and (event["method"] in kinds or (
                event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] in ("error", "warning")))
        ]  # fmt: skip
