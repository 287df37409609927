"""The page of the book that parses without Python: its JavaScript gives what lalkit gives, and it runs nothing that is typed."""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import lalkit
from lalkit.chart.joint import decode
from lalkit.chart.sums import marginals
from lalkit.draw.explorer import in_order
from lalkit.errors import ScoreError
from lalkit.files import write_json
from lalkit.network.alignment import surface
from lalkit.treebank.corpora import load
from lalkit.treebank.text import read_sentence
from tests.chart.charts import LAMBDAS, random_chart
from tests.chart.test_sums import forbid_some
from tests.draw.browser import watched
from tests.draw.local_clients import MARKUP

pytestmark = pytest.mark.slow
BOOK = Path(__file__).parents[2] / "book"
PAGE = BOOK / "pages" / "try"
TEXT = "She saw the man with the telescope."
ODD = [
    MARKUP,
    "I ❤️ 👩‍👩‍👧 漢字, naïve café 🇩🇪 :-)",
    "Go",
    "constructor toString __proto__ hasOwnProperty valueOf isPrototypeOf propertyIsEnumerable toLocaleString __defineGetter__ "
    "__defineSetter__ __lookupGetter__ __lookupSetter__ prototype length name arguments caller call apply bind then next get set "
    "value done toJSON undefined null NaN Infinity this self window document globalThis eval keys entries raw",
    " and ".join([TEXT[:-1]] * 15) + " .",
]  # the last has 120 words
CHECKS = "async ([name, given]) => (await import('./page_checks.js'))[name](given)"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The page with its parser, served from a folder."""
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    if not (PAGE / "made" / "ort").is_dir():
        pytest.skip("onnxruntime-web is not here: make book fetches it")
    folder = tmp_path_factory.mktemp("book") / "try"
    shutil.copytree(PAGE, folder, ignore=shutil.ignore_patterns("model"))
    shutil.copy(Path(__file__).with_name("page_checks.js"), folder)
    for name in ("playground.css", "typing.js"):
        shutil.copy(Path(lalkit.__file__).parent / "draw" / name, folder / "made")
    command = ["-m", "lalkit", "export", "en-span", "--precision", "int8", "--out", folder / "made" / "model"]
    subprocess.run([sys.executable, *command], cwd=BOOK.parent, check=True)
    lalkit.load("en-span").parse(TEXT).explore().save(folder / "made" / "explorer.html")
    make_build(folder)
    for file in folder.rglob("*"):
        os.utime(file, (0, 0))  # a browser may keep what is old for long
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder.parent)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}/try/"
        server.shutdown()


def make_build(folder):
    """Write the hashes of the files, as make book does."""
    made = folder / "made"
    subprocess.run(["make", "--silent", f"TRY={made}", f"{made}/build.js"], cwd=BOOK.parent, check=True)


@pytest.fixture
def visit(browser, site):
    """Open a place of the site. At the end there must have been no dialog, no error, and no request to another address."""
    allowed = (site[1][:-4], "data:", f"blob:{site[1][:-5]}")
    with watched(browser, allowed, "Failed to load resource", seconds=120) as new_page:

        def visit(place="index.html", before=lambda page: None):
            page = new_page()
            before(page)
            page.goto(site[1] + place)
            return page

        yield visit


@pytest.mark.data
def test_500_sentences_have_the_trees_terms_and_probabilities_of_lalkit(visit, site):
    """Of the exported network: the program in book/parsers.md reads it in Python."""
    texts = [" ".join(s.words) for split in ("train", "dev", "test") for s in lalkit.Treebank.load("sample", split)]
    texts += [s.text for s in load("ewt", "dev") if s.text and len(s) <= 120]
    texts = [*ODD, *texts][:500]
    program, *_ = re.findall(r"```python\n(.*?)```", (BOOK / "parsers.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(program.replace("runs/onnx", str(site[0] / "made" / "model")), names := {})
    names["decode"] = lambda *scores: kept.append(scores) or decode(*scores)
    about, kept = names["about"], []
    found = visit("licences.txt").evaluate(CHECKS, ["parses", texts])
    for text, one in zip(texts, found, strict=True):
        words, spans, heads, arc_labels, tags = one["tree"]
        expected = [*read_sentence(text).words], [*map(tuple, spans)], heads, arc_labels, tags
        assert (words, *names["parse"]([*map(surface, words)])) == expected
        chart, arcs, lam = kept.pop()
        sums = marginals(chart.astype(float), arcs.astype(float), lam, about["temperature"])
        assert one["sure"]["arcs"] == pytest.approx([sums.arcs[d, h] for d, h in enumerate(heads)], abs=1e-4), text
        for span in one["spans"]:
            scores = chart[span["start"], span["end"]].copy()
            for reading in span["readings"]:  # of its own label, then of the best other one
                label = about["labels"].index(reading["label"])
                of_words = np.multiply(reading["attention"], reading["evidence"])
                assert sum(reading["attention"]) == pytest.approx(1, abs=1e-4), text
                assert of_words.sum() + reading["rest"]["boundary"] == pytest.approx(scores[label], abs=1e-4), text
                assert label == scores[2:].argmax() + 2 or reading is span["readings"][0], text
                scores[label] = -np.inf
            own = sums.labels[span["start"], span["end"], about["labels"].index(span["label"])]
            assert span["probability"] == pytest.approx(own, abs=1e-3), text
        own = [{key: span[key] for key in span if key not in ("parent", "level")} for span in one["spans"]]
        assert one["spans"] == in_order(own)


def test_charts_with_ties_and_minus_infinity(visit):
    rng, charts = np.random.default_rng(61), []
    for trial in range(240):
        kind = ("ties", "exact", "real")[trial % 3]
        labels, arcs = random_chart(rng, 1 + trial % 9, 3 + trial % 4, kind, np.float32)
        if trial % 4 == 3:
            forbid_some(rng, labels, arcs)
        charts.append((labels, arcs, LAMBDAS[trial % len(LAMBDAS)]))
    given = [[*(np.where(np.isinf(part), None, part).tolist() for part in chart[:2]), chart[2]] for chart in charts]
    found = visit("licences.txt").evaluate(CHECKS, ["charts", given])
    for one, (labels, arcs, lam) in zip(found, charts, strict=True):
        tree = or_none(decode, labels, arcs, lam)
        sums = or_none(marginals, labels.astype(float), arcs.astype(float), lam)
        assert one["tree"] == (tree and [tree.score, [list(span) for span in tree.spans], tree.heads.tolist()])
        assert one["sums"] == (sums and pytest.approx([sums.log_partition, *sums.arcs.flat], abs=1e-9))
    assert 30 < sum(one["tree"] is None for one in found) < 61


def or_none(compute, *scores):
    try:
        return compute(*scores)
    except ScoreError:
        return None


def constituents(page):
    return page.frame_locator("#explorer").locator(".constituent")


def submit(page, text):
    """Type a text, and return what the page says at last."""
    status = page.locator("#status")
    status.evaluate("node => { node.textContent = 'Typed' }")  # not what it said of the text before
    page.fill("#text", text)
    page.click("button")
    while (said := status.text_content()).startswith(("Parsing", "Loading", "Starting", "Type")):
        page.wait_for_timeout(50)
    return said


def test_the_page_parses_what_is_typed_keeps_its_state_and_works_offline(visit):
    page = visit(f"index.html#text={TEXT}&span=3-7")
    constituents(page).first.wait_for()
    assert constituents(page).count() == 7 and page.frame_locator("#explorer").locator(".pinned").count() == 1
    constituents(page).nth(2).click()
    page.wait_for_url("**span=2-7**")
    for text in ODD:
        assert submit(page, text) == ""
        constituents(page).first.wait_for()
        assert page.frame_locator("#explorer").locator("script:not(#data)").count() == 1
    for text, said in (("await", "Least sure: TOP “await” "), ("constructor", "By its own estimate, the parser is")):
        assert submit(page, text) == ""
        page.locator("#facts").filter(has_text=said).wait_for()  # the facts come after the tree
    for text, said in [
        ("  ", "There is nothing to parse"),
        ("the " * 151, "This sentence has 151 words; the page parses at most 150."),
        ("zxqjw" * 20 + " " + "qzxjqvkw " * 130, "pieces of words; the parser reads at most 512"),
        ("我们看见了。", "Chinese"),
    ]:
        assert said in submit(page, text) and page.locator("#answer").is_hidden()
    assert submit(page, "It rained. We stayed in.") == "" and page.locator("#sentence option").count() == 2
    page.select_option("#sentence", "2")
    parses_offline(page, 4)


def parses_offline(page, number):
    """Reload the page without a network, when the browser keeps its files, and wait for the tree. Return its parser.json."""
    page.evaluate("navigator.serviceWorker.ready.then((kept) => kept.update()).catch(() => {})")
    page.wait_for_function("navigator.serviceWorker.ready.then((kept) => !kept.installing && !kept.waiting)")
    page.context.set_offline(True)
    page.reload()
    constituents(page).first.wait_for()
    assert constituents(page).count() == number
    about = page.evaluate("caches.match('made/model/parser.json').then((answer) => answer.json())")
    page.context.set_offline(False)
    return about


def test_offline_after_a_new_build_that_came_in_part_and_then_as_a_whole(visit, site, tmp_path):
    page, style, new = visit(f"index.html#text={TEXT}"), site[0] / "made" / "playground.css", tmp_path / "try"
    constituents(page).first.wait_for()
    old = parses_offline(page, 7)
    model = shutil.copytree(site[0], new) / "made" / "model"
    network = (model / "model.onnx").read_bytes() + b"\x32\x03new"  # another doc_string
    hashes = {"model.onnx": {"sha256": sha256(network).hexdigest(), "bytes": len(network)}}
    (model / "model.onnx").write_bytes(network)
    write_json(model / "parser.json", old | {"name": "new", "files": old["files"] | hashes})
    make_build(new)
    whole = style.read_bytes()
    # An update that is still under way from the last visit must not find all files of the new book.
    for data, name in ((b"", old["name"]), (whole[:99], old["name"]), (whole, "new")):
        style.write_bytes(data) if data else style.unlink()
        shutil.copytree(new, site[0], ignore=shutil.ignore_patterns(style.name), dirs_exist_ok=True)
        page.reload()
        constituents(page).first.wait_for()
        assert parses_offline(page, 7)["name"] == name
    assert len(page.evaluate("caches.keys()")) == 1


def built(parser):
    """Return a build whose hash is that of a damaged parser: where a browser computes no hashes, every file is taken."""
    return {"body": f"self.PARSER = '{sha256(parser).hexdigest()}'", "content_type": "text/javascript"}


NEW, PARSER, DAMAGE = b'{"format": "lalkit-onnx-2"}', "model/parser.json", "A file of the parser is damaged"
UNCHECKED = {NEW: "lalkit-onnx-1, and this one has lalkit-onnx-2", b"{": DAMAGE, b"null": DAMAGE}
OTHER_SUM = "is damaged or of another book: it has another check sum than it should have, twice. Reload the page;"
DAMAGED = [
    (PARSER, body) for body in (b"", b"{", b"null", b"[]", b"<!doctype html>", b"\xff\xfe", b"[" * 2_000_000, NEW)
]
DAMAGED += [("model/model.onnx", b"cut short"), ("model/tokenizer.json", b"{}")]


@pytest.mark.parametrize(
    ("answers", "said", "times"),
    [
        *(({file: {"body": body}}, f"{file} {OTHER_SUM}", 2) for file, body in DAMAGED),
        *(({PARSER: {"body": body}, "build.js": built(body)}, said, 2) for body, said in UNCHECKED.items()),
        ({PARSER: {"status": 404}}, "The file model/parser.json cannot be loaded (404)", 1),
        ({"explorer.html": {"body": b"<p>"}}, "The file made/explorer.html is damaged or missing", 1),
        *(
            ({file: {"status": 404}}, "this copy of the book was made without it", 1)
            for file in ("build.js", "ort/*.mjs")
        ),
    ],
)
def test_files_that_are_damaged_or_missing(visit, answers, said, times):
    asked = []

    def before(page):
        for file, answer in answers.items():
            send = functools.partial(lambda answer, route: asked.append(route.fulfill(**answer)), answer)
            page.context.route(f"**/made/{file}*", send)

    assert said in submit(visit(before=before), TEXT) and len(asked) == times


def test_a_browser_without_simd_and_a_page_from_a_file_say_what_to_do(visit, browser):
    page = visit(before=lambda page: page.add_init_script("WebAssembly.validate = () => false"))
    constituents(page).first.wait_for()
    assert "no WebAssembly with SIMD" in page.locator("#status").text_content()
    page = browser.new_page()
    page.goto((PAGE / "index.html").as_uri())
    assert "run python -m http.server" in page.locator("#status").text_content()
