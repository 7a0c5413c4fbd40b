"""The page served to a browser on this machine: answers are made when it asks for them."""

from __future__ import annotations

import gc
import json
import secrets
import socket
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ptxlab.lab.page import page, pair
from ptxlab.lab.ranks import NodeViews
from ptxlab.lab.views import Views

HOST = "127.0.0.1"
QUIET = 0.1  # seconds without a request, after which there is time for something else
FIRST, TRIED = 8712, 20  # the port, and how many after it are tried


class Server(ThreadingHTTPServer):
    """Serves one recorded launch, one beside another, or several with one clock, where only its user finds them."""

    daemon_threads = True

    def __init__(self, views: Views | NodeViews, port: int | None = None, beside: Views | None = None) -> None:
        self.views, self.beside = views, beside
        self.asked = time.monotonic()  # when there was a request last
        self.token = secrets.token_urlsafe(12)
        super().__init__((HOST, _free_port() if port is None else port), _Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: object) -> None:
        """A browser that has gone away while it was answered is nothing to report."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def prepare(self) -> None:
        """Make what many answers need, so that the first of them is fast; between its parts, answers go first."""
        for part in (part for one in (self.views, self.beside) if one is not None for part in one.parts()):
            while (rest := self.asked + QUIET - time.monotonic()) > 0:
                time.sleep(rest)
            part()
        gc.freeze()  # the recording stays: to look for garbage in it, again and again, delays answers

    def start(self) -> threading.Thread:
        """Serve in the background until `shutdown`."""
        thread = threading.Thread(target=self.serve_forever, daemon=True)
        thread.start()
        return thread


def _free_port() -> int:
    """The first free port from the usual one on; any other if none of them is."""
    for port in range(FIRST, FIRST + TRIED):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((HOST, port))
            except OSError:
                continue
            return port
    return 0


def _problem(unknown: KeyError) -> str:
    return f"there is no {unknown.args[0]}"


class _Handler(BaseHTTPRequestHandler):
    """Answers requests whose address has the token, and that were meant for this host."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a short answer does not wait for the browser to acknowledge its head
    wbufsize = -1
    server: Server
    views: Views | NodeViews  # that the request is about

    def do_GET(self) -> None:
        """The page, or an answer."""
        self.server.asked = time.monotonic()
        expected = f"{HOST}:{self.server.server_port}"
        if self.headers.get("Host") not in (expected, expected.replace(HOST, "localhost")):
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"not the host of this page")
            return
        token, _, name = self.path.lstrip("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"there is no page here: open the address as it was printed")
            return
        self.views, beside = self.server.views, self.server.beside
        if beside is not None and not name:
            found = pair([self.views.title, beside.title])
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", found.encode())
            return
        if beside is not None:
            number, _, name = name.partition("/")
            self.views = beside if number == "1" else self.views
        if not name:
            found = page(of_node=isinstance(self.views, NodeViews))
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", found.encode())
        else:
            self._answer(name.removeprefix("data/").partition("?")[0])

    def _answer(self, name: str) -> None:
        if name == "prepare":  # the page is shown, and has nothing to ask for now
            threading.Thread(target=self.server.prepare, daemon=True).start()
            self._send(HTTPStatus.OK, "application/json", b"true")
        elif "," in name:  # several answers at once
            found = ",".join(self._one_of_several(one) for one in name.split(","))
            self._send(HTTPStatus.OK, "application/json", f"[{found}]".encode())
        else:
            try:
                self._send(HTTPStatus.OK, "application/json", self._found(name).encode())
            except KeyError as unknown:
                self._send(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", _problem(unknown).encode())

    def _found(self, name: str) -> str:
        return json.dumps(self.views.get(name), separators=(",", ":"))

    def _one_of_several(self, name: str) -> str:
        try:
            return f'{{"found":{self._found(name)}}}'
        except KeyError as unknown:
            return json.dumps({"problem": _problem(unknown)})

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged: the terminal belongs to the kernel's output."""
