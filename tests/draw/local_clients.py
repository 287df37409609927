"""What tests ask of a server on this machine: raw requests, so that wrong ones can be sent too, and a table of hostile ones."""

import socket
import time
from contextlib import suppress
from urllib.parse import quote, urlsplit

LONG = "9" * 5_000
NO_ITEMS = ("NP(1", f"NP(1,{LONG})", f"{LONG}->1", f"{LONG}_NN")
MARKUP = "<script>hacked()</script> <img src=x onerror=hacked()> \"' &lt;b&gt; </template></script>"


def send(address: str, request: bytes, seconds: float = 60) -> tuple[int, dict[str, str], str]:
    """Send these bytes. Return the status, the headers and the body; 0 if the server only closes the connection."""
    place = urlsplit(address)
    answer = b""
    with socket.create_connection((place.hostname, place.port), seconds) as client, suppress(ConnectionError):
        client.sendall(request)
        while part := client.recv(65_536):
            answer += part
    if not answer:
        return 0, {}, ""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(first.split()[1]), headers, body.decode("utf-8")


def until(happens, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def get(path: str, host: str = "localhost", method: str = "GET", more: str = "") -> bytes:
    """Return a request. The path is sent as it is."""
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n".encode("latin-1")


def parse(text: str, path: str = "/parse", **parameters: object) -> bytes:
    more = "".join(f"&{name}={quote(str(value))}" for name, value in parameters.items())
    return get(f"{path}?text={quote(text)}{more}")


# A name, the request, and the statuses that may answer it.
HOSTILE = [
    ("markup", parse(MARKUP, k=2), {200}),
    ("a NUL byte", parse("One\0two.", k=2), {400}),
    ("unusual characters", parse("One \u202e\ufeff\U0001f600 e\u0301 \ud7ff\ufffe two.", k=2), {200}),
    ("half a surrogate", get("/parse?text=%ed%a0%80"), {400}),
    ("no text", get("/parse"), {400}),
    ("161 words", parse("one " * 161), {400}),
    ("2,001 characters", parse("x" * 2_001), {400}),
    ("Chinese without spaces", parse("\u6211\u5011\u4eca\u5929\u53bb"), {400}),
    ("an endless address", parse("x" * 2_000_000), {0, 400, 414}),
    ("an unknown parameter", parse("One.", evil=1), {400}),
    ("1,000 parameters", get("/parse?" + "&".join(f"a{i}" for i in range(1_000))), {400}),
    *((f"{k[:3]} trees", parse("One.", k=k), {400}) for k in ("21", "all", LONG)),
    ("a tree there is not", parse("One.", tree=6), {400}),
    ("a label there is not", parse("One.", against="ZZ"), {400}),
    ("an unknown form", parse("One.", form="<b>"), {400}),
    *(("no constraint", parse("One.", require=text), {400}) for text in NO_ITEMS),
    ("a constraint on no word", parse("One.", require="NP(7,9)"), {400}),
    ("what is required and forbidden", parse("One.", require="1->2", forbid="1->2"), {400}),
    *(("a label head there is not", parse("One.", without=head), {400}) for head in ("99999", LONG)),
    ("another page", get("/admin"), {404}),
    ("a folder above, escaped", get("/%2e%2e/%2e%2e/etc/passwd"), {404}),
    ("two slashes", get("//example.com/%0d%0aX-Evil:1"), {404}),
    ("another host with a known beginning", get("/parse?text=One.", "localhost.example.com"), {400}),
    *(("a sentence there is not", parse("One. Two.", sentence=number), {400}) for number in (0, 3)),
    ("many sentences", parse("One. " * 400, k=1), {200}),
    ("two hosts", get("/", more="Host: example.com\r\n"), {400}),
    ("POST", get("/parse", method="POST", more="Content-Length: 9\r\n") + b"text=One.", {0, 501}),
    ("a huge body", get("/parse", method="POST", more="Content-Length: 999999999999\r\n"), {0, 501}),
    ("an unknown method", get("/", method="BREW"), {501}),
    ("a huge header", get("/", more=f"X-Long: {'x' * 1_000_000}\r\n"), {0, 431}),
    ("no HTTP", b"\x16\x03\x01\x02\x00\x01\r\n\r\n", {0, 400}),
]
