"""Serve pages to a browser on this machine: texts that stand ready, and answers that are computed one at a time.

The server knows no parser. It gets functions from the parameters of an address to an answer, and it guards them. It listens to
this machine only. It checks the name of the host in a request, so that a page of the web cannot reach it under a name of its own
("DNS rebinding"). Other pages can neither make it compute nor show it in a frame, but for a notebook on this machine. Lengths
have limits, and no script runs but the pages' own. One thread computes; a request that waits is dropped when its page has gone.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import mimetypes
import re
import select
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socket import MSG_PEEK, SOCK_STREAM, getaddrinfo
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

from lalkit.draw import svg
from lalkit.errors import LalkitError, reason, whole_number

LOOPBACK = "127.0.0.1"
LONGEST, LARGEST = 8_192, 65_536  # characters of an address; bytes of a request's body
TOO_LONG = f"the address is longer than {LONGEST:,} characters: shorten the text"
SECONDS = 30  # without a byte, after which a connection is closed
Answer = Callable[[Any], str | dict]  # parameters of an address, or a body -> an HTML page, or what becomes JSON

logger = logging.getLogger(__name__)
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
# Notebooks on this machine may show the page.
FRAMES = "; frame-ancestors 'self' http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:"
# The pages' own files, and nothing else. An answer is a page of its own that reaches nothing around it.
PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self'"
    f"{FRAMES}"
)
ANSWER = (
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; style-src 'unsafe-inline'; "
    f"script-src 'unsafe-inline'; img-src data:{FRAMES}"
)


class LocalServer(ThreadingTCPServer):
    """Serve pages in a thread of its own until `close`. In a notebook it shows its first page in a frame.

    The frame works where the browser runs on the same machine as Python. Otherwise forward the port, for example with
    `ssh -L`.
    """

    allow_reuse_address = daemon_threads = True
    request_queue_size = 64

    height = 900  # of the frame in a notebook, in pixels

    def __init__(self, pages: Mapping[str, str | Answer], host: str = LOOPBACK, port: int = 0):
        """Begin to serve.

        Args:
            pages: The path of each page or file that stands ready, with its text, and of each answer, with its function.
                "POST /path" answers a body of JSON.
            host: The address to listen to; a warning says if other machines can reach it.
            port: Its port; 0 means any free one.

        Raises:
            LalkitError: The port is in use or no port, or there is no such address.
        """
        host = host or "0.0.0.0"  # which is what an empty name means to sockets
        port = whole_number("--port", port, 0, 65_535)
        try:
            self.address_family, *_, place = getaddrinfo(host, port, type=SOCK_STREAM)[0]
            super().__init__(place, Handler)
        except (OSError, UnicodeError) as error:
            remedy = "Choose another port (0 means any free one), or end the program that uses it."
            problem = f"cannot be opened: {reason(error)}"
            raise LalkitError(problem, where=f"port {port} of {host}", remedy=remedy) from None
        if not ipaddress.ip_address(str(self.server_address[0]).partition("%")[0]).is_loopback:
            text = "other machines that reach %s can use this page; --host %s keeps it to this one"
            logger.warning(text, host, LOOPBACK)
        self.pages, self.host = pages, host
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}/"
        self.computing = ThreadPoolExecutor(1)
        self.thread = Thread(target=self.serve_forever, args=(0.1,), daemon=True)
        self.thread.start()

    def wait(self) -> None:
        """Serve until Ctrl-C."""
        with suppress(KeyboardInterrupt):
            while self.thread.is_alive():
                self.thread.join(1)
        self.close()

    def close(self) -> None:
        """Stop. Requests that wait are dropped."""
        self.computing.shutdown(wait=False, cancel_futures=True)
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address) -> None:
        """Say nothing: the browser closed the connection before its answer came."""

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.height}px; border: 1px solid {svg.LINE}"
        return svg.element("iframe", "", src=self.address, title="Playground", style=style)


class Handler(BaseHTTPRequestHandler):
    """Answer one request. Errors are plain text, so that a browser runs nothing of them."""

    server: LocalServer
    timeout = SECONDS

    def do_POST(self) -> None:
        """Answer JSON with JSON. A page of another site cannot send this type of content without being asked first."""
        size = self.headers.get("Content-Length", "")
        if self.headers.get_content_type() != "application/json" or not size.isdigit() or int(size) > LARGEST:
            problem = f"send JSON, at most {LARGEST:,} bytes, with Content-Type: application/json and Content-Length"
            return self.send_error(400, problem)
        try:
            self._answer("POST ", json.loads(self.rfile.read(int(size))))
        except (ValueError, RecursionError):
            self.send_error(400, "the body is not JSON")

    def do_GET(self) -> None:
        try:
            self._answer("", parse_qs(self.path.partition("?")[2], keep_blank_values=True, errors="strict"))
        except ValueError:
            self.send_error(400, "the address is not UTF-8")

    def _answer(self, method: str, arguments: Any) -> None:
        path = self.path.partition("?")[0]
        page = self.server.pages.get(method + path)
        if not self._is_known():
            return self.send_error(400, "this server does not answer for the host of this request")
        if len(self.path) > LONGEST:
            return self.send_error(414)
        if page is None:
            return self.send_error(404, "there is no such page")
        if isinstance(page, str):
            return self._send(200, page, mimetypes.guess_type(path)[0] or "text/html", PAGE)
        if not self._is_ours():
            return self.send_error(403, "another page of the web asks: open the address of the page itself")
        try:
            answer = self.server.computing.submit(self._compute, page, arguments).result()
        except LalkitError as error:
            return self.send_error(400, str(error))
        except CancelledError:
            return self.send_error(503, "the server ends, or the page has gone")
        except Exception:
            logger.exception("an error of lalkit itself")
            problem = "this is an error of lalkit itself: please report it with the text that you typed"
            return self.send_error(500, problem)
        kind, text = ("text/html", answer) if isinstance(answer, str) else ("application/json", json.dumps(answer))
        return self._send(200, text, kind)

    def _compute(self, page: Answer, arguments: Any) -> str | dict:
        """Return the answer. Raises CancelledError if nobody waits for it any more."""
        ready, *_ = select.select([self.connection], [], [], 0)
        if ready and not self.connection.recv(1, MSG_PEEK):
            raise CancelledError
        return page(arguments)

    def _is_ours(self) -> bool:
        """Return whether our own page asks, or nobody's: a person who typed the address, or a program."""
        origin, site = (self.headers.get(name) for name in ("Origin", "Sec-Fetch-Site"))
        own = origin is None or origin.partition("://")[2] == self.headers.get("Host")
        return own and site in (None, "same-origin", "none")

    def _is_known(self) -> bool:
        """Return whether the request names one host, and one that cannot be made to point elsewhere."""
        name, *others = self.headers.get_all("Host", [""])
        name = re.sub(r":\d+$", "", name).strip("[]").lower()
        with suppress(ValueError):
            return bool(ipaddress.ip_address(name)) and not others
        return name in ("localhost", self.server.host.lower()) and not others

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse the request, for one of our reasons or for one that Python's server found."""
        self.request_version = "HTTP/1.0"  # the request may have none that can be read
        problem = TOO_LONG if code == 414 else "the request is not understood"
        self._send(code, message or problem, "text/plain")

    def _send(self, status: int, text: str, kind: str, policy: str = ANSWER) -> None:
        self.send_response_only(status)  # without the names and versions of what answers
        content = {"Content-Type": f"{kind}; charset=UTF-8", "Content-Security-Policy": policy}
        for name, value in {**content, **HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode("utf-8"))

    def log_message(self, *_) -> None:
        """Keep no list of requests."""
