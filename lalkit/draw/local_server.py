"""Serve pages to a browser on this machine: texts that stand ready, and answers that are computed one at a time.

The server knows no parser. It gets functions from the parameters of an address to an answer, and it guards them. It listens to
this machine only. It checks the name of the host in a request, so that a page of the web cannot reach it under a name of its own
("DNS rebinding"). Lengths have limits, and no script runs but the pages' own. One thread computes, and requests wait for it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import mimetypes
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler, stream_request_body

from lalkit.draw import svg
from lalkit.errors import LalkitError, whole_number

LOOPBACK = "127.0.0.1"
WAITING = 32  # requests that may wait for the thread
LONGEST = 8_192  # characters of an address
Arguments = Mapping[str, list[str]]
Answer = Callable[[Arguments], str | dict]  # an HTML page, or what becomes JSON

logger = logging.getLogger(__name__)
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
# The pages' own files, and nothing else. An answer is a page of its own that reaches nothing around it.
PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self'"
)
ANSWER = (
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:"
)


class LocalServer:
    """Serve pages in a thread of its own until `close`. In a notebook it shows its first page in a frame.

    The frame works where the browser runs on the same machine as Python. Otherwise forward the port, for example with
    `ssh -L`.
    """

    def __init__(self, pages: Mapping[str, str | Answer], host: str = LOOPBACK, port: int = 0, height: int = 900):
        """Begin to serve.

        Args:
            pages: The path of each page or file that stands ready, with its text, and of each answer, with its function.
            host: The address to listen to.
            port: Its port; 0 means any free one.
            height: Of the frame in a notebook, in pixels.

        Raises:
            LalkitError: The port is in use or no port, or there is no such address.
        """
        try:
            sockets = bind_sockets(whole_number("--port", port, 0, 65_535), host)
        except (OSError, UnicodeError) as error:
            remedy = "Choose another port (0 means any free one), or end the program that uses it."
            problem = f"cannot be opened: {getattr(error, 'strerror', None) or error}"
            raise LalkitError(problem, where=f"port {port} of {host}", remedy=remedy) from None
        self.host, self.height, self.waiting = host, height, 0
        name = f"[{host}]" if ":" in host else host
        self.address = f"http://{name}:{sockets[0].getsockname()[1]}/"
        self.computing = ThreadPoolExecutor(1)
        started: Future = Future()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve(pages, sockets, started)), daemon=True)
        self.thread.start()
        self._loop, self._end = started.result()

    async def _serve(self, pages: Mapping[str, str | Answer], sockets: list, started: Future) -> None:
        routes = [(path, Handler, {"server": self, "path": path, "page": page}) for path, page in pages.items()]
        routes.append((".*", Handler, {"server": self}))
        server = HTTPServer(Application(routes, log_function=lambda _: None), max_header_size=32 * LONGEST)
        server.add_sockets(sockets)
        end = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), end))
        await end.wait()
        server.stop()
        await server.close_all_connections()

    def wait(self) -> None:
        """Serve until Ctrl-C."""
        with suppress(KeyboardInterrupt):
            while self.thread.is_alive():
                self.thread.join(1)
        self.close()

    def close(self) -> None:
        """Stop. Requests that wait are dropped."""
        self.computing.shutdown(wait=False, cancel_futures=True)
        with suppress(RuntimeError):  # it is closed already
            self._loop.call_soon_threadsafe(self._end.set)
        self.thread.join()

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.height}px; border: 1px solid {svg.LINE}"
        return svg.element("iframe", "", src=self.address, title="Playground", style=style)


@stream_request_body  # so that a large body is refused before it is read
class Handler(RequestHandler):
    """Answer one request. Errors are plain text, so that a browser runs nothing of them."""

    work: asyncio.Future | None = None

    def initialize(self, server: LocalServer, path: str = "", page: str | Answer = "") -> None:
        self.server, self.page = server, page
        self.set_header("Content-Security-Policy", PAGE if isinstance(page, str) else ANSWER)
        self.set_header("Content-Type", f"{mimetypes.guess_type(path)[0] or 'text/html'}; charset=UTF-8")

    def set_default_headers(self) -> None:
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        if not self._is_known(self.request.host_name):
            self.refuse(400, f"this server does not answer for the host {self.request.host_name!r}")
        elif self.request.method != "GET":
            self.refuse(405, "only GET is understood here")
        elif len(self.request.uri) > LONGEST:
            self.refuse(414, f"the address is longer than {LONGEST:,} characters: shorten the text")
        elif not self.page:
            self.refuse(404, "there is no such page")

    def _is_known(self, name: str) -> bool:
        with suppress(ValueError):
            return bool(ipaddress.ip_address(name.strip("[]")))  # a number cannot be made to point elsewhere
        return name.lower() in ("localhost", self.server.host.lower())

    def data_received(self, chunk: bytes) -> None:
        pass

    def log_exception(self, *_) -> None:
        pass  # `get` reports errors of ours; the sender of a wrong request gets the error

    async def get(self) -> None:
        if isinstance(self.page, str):
            return await self.finish(self.page)
        arguments = {name: self.get_query_arguments(name) for name in self.request.query_arguments}
        if self.server.waiting >= WAITING:
            return self.refuse(503, f"the parser is busy, and {WAITING} sentences wait already: try again in a moment")
        self.server.waiting += 1
        try:
            loop = asyncio.get_running_loop()
            self.work = loop.run_in_executor(self.server.computing, self.page, arguments)
            self.finish(await self.work)
        except LalkitError as error:
            self.refuse(400, str(error))
        except asyncio.CancelledError:
            pass  # the browser does not wait any more
        except Exception:
            logger.exception("an error of lalkit itself")
            self.refuse(500, "this is an error of lalkit itself: please report it with the text that you typed")
        finally:
            self.server.waiting -= 1

    def on_connection_close(self) -> None:
        if self.work:
            self.work.cancel()

    def refuse(self, status: int, message: str) -> None:
        self.set_status(status)
        self.set_header("Content-Type", "text/plain; charset=UTF-8")
        self.finish(message)

    def write_error(self, status_code: int, **kwargs) -> None:
        """Say what tornado found: wrong UTF-8, or an unknown method."""
        self.refuse(status_code, f"the request is not understood ({status_code} {self._reason})")
