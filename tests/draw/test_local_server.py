"""The server of a page on this machine: it answers hostile requests with words, one at a time, and goes on answering."""

import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from lalkit.draw import playground
from lalkit.draw.playground import HEADERS, LocalServer
from lalkit.errors import LalkitError
from tests.draw.local_clients import get, send, until

FRAMES = "frame-ancestors 'self' http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:"


def repeat(arguments):
    if arguments.get("text") == ["wrong"]:
        raise LalkitError("this is <wrong>", remedy="Do it right.")
    if arguments.get("text") == ["broken"]:
        raise KeyError("a secret of the program")
    return {"arguments": dict(arguments)} if "json" in arguments else f"<p>{arguments['text'][0]}</p>"


@pytest.fixture
def server():
    server = LocalServer({"/": "<p>first", "/x.js": "let x;", "/answer": repeat})
    yield server
    server.close()


def ask(server, path, **options):
    return send(server.address, get(path, **options))


def test_pages_have_their_kind_and_a_policy(server):
    status, headers, body = ask(server, "/")
    assert (status, body, headers["content-type"]) == (200, "<p>first", "text/html; charset=UTF-8")
    assert "script-src 'self'" in headers["content-security-policy"] and headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in headers["content-security-policy"] and FRAMES in headers["content-security-policy"]
    assert ask(server, "/x.js")[1]["content-type"].startswith("text/javascript")
    status, headers, body = ask(server, "/answer?text=a%20b")
    assert (status, body) == (200, "<p>a b</p>") and headers["content-security-policy"].startswith("sandbox")
    assert "allow-same-origin" not in (policy := headers["content-security-policy"]) and FRAMES in policy
    status, headers, body = ask(server, "/answer?json=&text=a")
    assert (status, body) == (200, '{"arguments": {"json": [""], "text": ["a"]}}')
    assert headers["content-type"].startswith("application/json")


def test_errors_are_plain_text(server, caplog):
    status, headers, body = ask(server, "/answer?text=wrong")
    assert (status, body) == (400, "this is <wrong>\n  Do it right.")
    assert headers["content-type"].startswith("text/plain")
    with caplog.at_level(logging.ERROR):
        status, headers, body = ask(server, "/answer?text=broken")
    assert status == 500 and "secret" not in body and "Traceback" not in body and "a secret" in caplog.text
    assert ask(server, "/answer?text=right")[0] == 200
    for length in (9_000, 99_000):  # also where Python's server refuses the line
        assert ask(server, f"/answer?text={'a' * length}")[::2] == (414, playground.TOO_LONG)


@pytest.mark.parametrize(
    ("host", "more", "status"),
    [
        ("LOCALHOST:1", "", 200), ("[::1]:80", "", 200), ("example.com", "", 400), ("", "", 400),
        ("localhost:1", "Origin: http://localhost:1\r\nSec-Fetch-Site: same-origin\r\n", 200),
        ("localhost:1", "Sec-Fetch-Site: none\r\n", 200), ("localhost:1", "Sec-Fetch-Site: cross-site\r\n", 403),
        ("localhost:1", "Sec-Fetch-Site: same-site\r\n", 403), ("localhost:1", "Origin: http://localhost:2\r\n", 403),
        ("localhost:1", "Origin: https://example.com\r\n", 403), ("localhost:1", "Origin: null\r\n", 403),
    ],
)  # fmt: skip
def test_a_page_of_the_web_cannot_come_under_its_own_name_nor_make_it_compute(server, host, more, status):
    assert ask(server, "/answer?text=a", host=host, more=more)[0] == status
    assert ask(server, "/", host=host, more=more)[0] == (400 if status == 400 else 200), "a link to the page is allowed"


def test_half_a_request_ends_and_the_answer_names_no_version(monkeypatch):
    monkeypatch.setattr(playground.Handler, "timeout", 0.5)
    server = LocalServer({"/": "first"})
    place = urlsplit(server.address)
    with socket.create_connection((place.hostname, place.port), 30) as client:
        client.sendall(b"GET / HT")
        assert client.recv(1) == b""
    assert set(ask(server, "/")[1]) == {"content-type", "content-security-policy", *map(str.lower, HEADERS)}
    server.close()


def test_one_is_computed_at_a_time_and_what_nobody_waits_for_is_not():
    going, asked = threading.Event(), []

    def slow(arguments):
        asked.append(arguments["text"][0])
        going.wait(30)
        return "done"

    server = LocalServer({"/": "first", "/slow": slow})
    place = urlsplit(server.address)
    with ThreadPoolExecutor(2) as clients:
        first = clients.submit(ask, server, "/slow?text=first")
        until(lambda: asked == ["first"])
        with socket.create_connection((place.hostname, place.port)) as gone:
            gone.sendall(get("/slow?text=gone"))
            until(lambda: server.computing._work_queue.qsize() == 1)
        last = clients.submit(ask, server, "/slow?text=last")
        until(lambda: server.computing._work_queue.qsize() == 2)
        assert ask(server, "/")[2] == "first", "what stands ready needs no computing"
        going.set()
        assert first.result()[0] == last.result()[0] == 200 and asked == ["first", "last"]
    server.close()


@pytest.mark.parametrize(("host", "warns"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True), ("", True)])
def test_a_warning_says_who_else_can_reach_the_page_and_it_ends_twice(host, warns, caplog):
    server = LocalServer({"/": "first"}, host)
    assert ("other machines" in caplog.text) == warns and ask(server, "/")[0] == 200
    assert server.address in server._repr_html_() and "height: 900px" in server._repr_html_()
    server.close()
    server.close()
    with pytest.raises(OSError, match="refused"):
        ask(server, "/")


def test_a_port_in_use_and_other_places_that_cannot_be(server):
    port = int(server.address.rstrip("/").rpartition(":")[2])
    for place in ({"port": port}, {"host": "192.0.2.1"}, {"host": "a" * 70}):
        with pytest.raises(LalkitError, match="cannot be opened.*\n.*0 means any free one"):
            LocalServer({}, **place)
    with pytest.raises(LalkitError, match="--port is 65536\n.*0 to 65535"):
        LocalServer({}, port=65_536)
