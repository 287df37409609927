"""Serve the page on which sentences are typed: a server for this machine, and the answers that are computed one at a time.

`LocalServer` knows no parser. It gets functions from the parameters of an address to an answer, and it guards them. It listens to
this machine only. It checks the name of the host in a request, so that a page of the web cannot reach it under a name of its own
("DNS rebinding"). Other pages can neither make it compute nor show it in a frame, but for a notebook on this machine. Lengths
have limits, and no script runs but the pages' own. One thread computes; a request that waits is dropped when its page has gone.

`TypedSentences` answers: trees and a page to explore. The parameters, each a text:

    text      the sentence, or several sentences of raw text
    sentence  which of them to parse, from 1
    form      raw, tokens or tagged
    require   parts that the tree must have: NP(3,5); 2->4 (see `lalkit.chart.constraints`), with spaces or semicolons between
    forbid    parts that it must not have
    without   label heads that are switched off, by number or by label: 3, 7
    k         how many of the best structures to list
    tree      which of them to show, from 1
    against   the label that the page compares with the label of each constituent
"""

from __future__ import annotations

import ipaddress
import json
import logging
import mimetypes
import re
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from socket import MSG_PEEK, SOCK_STREAM, getaddrinfo
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any, cast
from urllib.parse import parse_qs

from lalkit.chart.constraints import items_of
from lalkit.config import PAGE_CHARACTERS, PAGE_TREES, PAGE_WORDS
from lalkit.draw import svg
from lalkit.errors import LalkitError, ParameterError, reason, whole_number
from lalkit.treebank.text import UNLEARNED, Form, read_line, read_sentence, split_sentences

LOOPBACK = "127.0.0.1"
LONGEST = 8_192  # characters of an address
TOO_LONG = f"the address is longer than {LONGEST:,} characters: shorten the text"
SECONDS = 30  # without a byte, after which a connection is closed
Answer = Callable[[Any], str | dict]  # parameters of an address -> an HTML page, or a value to send as JSON

logger = logging.getLogger(__name__)
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
# Notebooks on this machine may show the page.
FRAMES = "; frame-ancestors 'self' http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:"
# A page may load only files of this server. An answer is a separate page that cannot reach the page around it.
PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self'"
    f"{FRAMES}"
)
ANSWER = (
    "sandbox allow-scripts allow-downloads allow-modals; default-src 'none'; style-src 'unsafe-inline'; "
    f"script-src 'unsafe-inline'; img-src data:{FRAMES}"
)
DEFAULTS = {"text": "", "sentence": "1", "form": "raw", "require": "", "forbid": ""}
DEFAULTS |= {"without": "", "k": "5", "tree": "1", "against": ""}
BETWEEN = re.compile(r"[;\s]+(?![^(]*\))")  # constraints: not the spaces inside NP( 3, 5 )


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
            pages: The path of each page or file -> its text; and the path of each answer -> the function that computes it.
            host: The address to listen to; a warning says if other machines can reach it.
            port: Its port; 0 means any free one.

        Raises:
            LalkitError: The port is in use or is not a port number, or there is no such address.
        """
        host = host or "0.0.0.0"  # sockets read an empty name in this way
        port = whole_number("--port", port, 0, 65_535)
        try:
            self.address_family, *_, place = getaddrinfo(host, port, type=SOCK_STREAM)[0]
            super().__init__(place, Handler)  # type: ignore[arg-type]
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
        """Print nothing: the browser closed the connection before its answer came."""

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.height}px; border: 1px solid {svg.LINE}"
        return svg.element("iframe", "", src=self.address, title="Playground", style=style)


class Handler(BaseHTTPRequestHandler):
    """Answer one request. Errors are plain text, so that a browser runs nothing of them."""

    server: LocalServer
    timeout = SECONDS

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        page = self.server.pages.get(path)
        try:
            arguments = parse_qs(query, keep_blank_values=True, errors="strict")
        except ValueError:
            return self.send_error(400, "the address is not UTF-8")
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
        """Return the answer. Raises CancelledError if the browser has closed the connection."""
        ready, *_ = select.select([self.connection], [], [], 0)
        if ready and not self.connection.recv(1, MSG_PEEK):
            raise CancelledError
        return page(arguments)

    def _is_ours(self) -> bool:
        """Return whether the request comes from our own page, or from no page: from a typed address, or from a program."""
        origin, site = (self.headers.get(name) for name in ("Origin", "Sec-Fetch-Site"))
        ours = origin is None or origin.partition("://")[2] == self.headers.get("Host")
        return ours and site in (None, "same-origin", "none")

    def _is_known(self) -> bool:
        """Return whether the request names one host: an IP address, localhost, or the server's own (no "DNS rebinding")."""
        name, *others = self.headers.get_all("Host", [""])
        name = re.sub(r":\d+$", "", name).strip("[]").lower()
        with suppress(ValueError):
            return bool(ipaddress.ip_address(name)) and not others
        return name in ("localhost", self.server.host.lower()) and not others

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse the request, for one of our reasons or for a reason of Python's server."""
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


# ---------------------------------------------------------------- the answers


class TypedSentences:
    """Parse typed sentences, each with the parameters of an address.

    Heads that are switched off for one answer are switched off in its thread alone: see `lalkit.network.encoder.Change`.
    """

    def __init__(self, parser: Any):
        """parser: a `lalkit.Parser` of joint trees. Raises ModelError for one without label attention."""
        self.heads, labels = parser.attribution.heads, parser.attribution.head_labels
        self.example = ", ".join(labels[1:3]) or "3, 7"  # 0 is <H>
        self.ready: tuple[Mapping, str] | None = None  # the last question, and its page
        self.parser = parser

    def trees(self, arguments: Mapping[str, Sequence[str]]) -> dict:
        """Return the sentences, the best structures, the probabilities of the shown tree, and the price of the constraints.

        It also makes the page that explores the tree, because the browser requests it next.
        """
        with self._parsed(arguments) as (usual, results, number, parts):
            shown, changed = results[number], None
            if usual:
                before, after = (items_of(r.spans, r.sentence.heads) for r in (usual, results[0]))
                changed = {"added": sorted(map(str, after - before)), "missing": sorted(map(str, before - after))}
            self.ready = arguments, self._explored(usual, shown, arguments)
            return {
                "sentences": parts,
                "trees": [result.to_dict() for result in results],
                "shown": {"number": number + 1, **shown.with_confidence().to_dict()},
                "price": shown.price._asdict() if shown.constraints.items else None,
                "changed": changed,
                "note": UNLEARNED if self.parser.reader.is_unlearned([shown.sentence]) else "",
            }

    def page(self, arguments: Mapping[str, Sequence[str]]) -> str:
        """Return the page that explores the tree. If heads are switched off, its first pane has the tree with all heads."""
        if self.ready and self.ready[0] == arguments:
            return self.ready[1]
        with self._parsed(arguments) as (usual, results, number, _):
            return self._explored(usual, results[number], arguments)

    def _explored(self, usual: Any, shown: Any, arguments: Mapping[str, Sequence[str]]) -> str:
        against = arguments.get("against", [""])[-1].strip() or None
        return (usual or shown).explore(beside=usual and shown, constrain=True, against=against).html

    @contextmanager
    def _parsed(self, arguments: Mapping[str, Sequence[str]]) -> Iterator[tuple[Any, list, int, list[str]]]:
        """Yield the usual parse (None if no head is off), the best trees, the index of the tree to show, and the sentences.

        Raises ParameterError for a parameter that is unknown, too long or wrong.
        """
        if unknown := sorted(arguments.keys() - DEFAULTS.keys()):
            raise ParameterError("is not a parameter", where=unknown[0][:40], remedy=f"Use {', '.join(DEFAULTS)}.")
        values = DEFAULTS | {name: texts[-1] for name, texts in arguments.items() if texts}
        k, form = whole_number("k", _number(values["k"]), 1, PAGE_TREES), cast(Form, values["form"])
        if len(values["text"]) > PAGE_CHARACTERS:
            problem = f"the text has {len(values['text']):,} characters"
            raise ParameterError(problem, remedy=f"Give at most {PAGE_CHARACTERS:,} characters.")
        parts = split_sentences(values["text"]) if form == "raw" else []
        parts = parts or [values["text"]]
        text: Any = parts[whole_number("sentence", _number(values["sentence"]), 1, len(parts)) - 1]
        sentence = read_line(text, form)
        if sentence is not None and len(sentence) > PAGE_WORDS:  # a longer one would take too long
            raise ParameterError(f"the sentence has {len(sentence)} words", remedy=f"Give at most {PAGE_WORDS} words.")
        text = read_sentence(text, form, 1, self.parser.reader.hyphens) if form == "raw" else text
        lists = {name: list(filter(None, BETWEEN.split(values[name]))) for name in ("require", "forbid")}
        heads = [_number(head) for head in re.split(r"[;,\s]+", values["without"]) if head]
        parser = self.parser
        usual = parser.parse(text, form, **lists) if heads else None
        if usual:
            # Now, because its explanation belongs to the network as it is.
            usual.explore(constrain=True, against=values["against"].strip() or None)
            parser = copy(parser)
            what = f"without head{'s' * (len(heads) > 1)} {', '.join(map(str, heads))}"
            info = {**parser.info, "name": f"{parser.info.get('name', 'a parser')} {what}"}
            parser.model = replace(parser.model, info=info)
        with parser.without(heads) if heads else nullcontext():
            results = parser.parse(text, form, **lists).alternatives(k)
            yield usual, results, whole_number("tree", _number(values["tree"]), 1, len(results)) - 1, parts


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch("-?[0-9]{1,20}", text) else text
