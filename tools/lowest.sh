#!/usr/bin/env bash
# Installs the lowest version of each package that pyproject.toml allows, in a new environment away from the checkout, and runs
# typical commands with them (not `make book`). Exit code 1 if one fails.
#   tools/lowest.sh [OPTION...]    OPTION: of `uv pip install`, such as --torch-backend cpu;  PYTHON: default python3
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
"${PYTHON:-python3}" -m venv venv
venv/bin/python -m pip install --quiet uv
venv/bin/uv pip install --quiet --python venv/bin/python --resolution lowest-direct "$@" -e "$root[dev]"
PATH=$place/venv/bin:$PATH
failed=0

try() {
    if "$@" >log.txt 2>&1; then echo "ok: $*"; else failed=1; echo "failed: $*"; tail -n 5 log.txt; fi
}

serve() { # ask the page once
    lalkit serve --port 0 >address.txt &
    while [ ! -s address.txt ]; do kill -0 $! || return; sleep 1; done
    python -c 'import sys, urllib.request as u; assert b"Type a sentence" in u.urlopen(sys.argv[1]).read()' "$(cat address.txt)"
    local code=$?
    kill $!
    return $code
}

try lalkit doctor
try lalkit models
try lalkit parse "Fed Ready to Inject Big Funds" --to json --alternatives 2
try lalkit explain "Fed Ready to Inject Big Funds" --label NP --html page.html
try lalkit search "SBAR < (IN < that)" --treebank sample
try lalkit train --treebank sample --preset minilm --dry-run
try lalkit evaluate en-span --treebank sample
try serve
try lalkit run "$root/notebooks/00_quickstart.ipynb"
# The extras, and what checks shapes in tests
try lalkit export en-span --to onnx --out onnx
try python -c 'import spacy; nlp = spacy.blank("en"); nlp.add_pipe("lalkit"); nlp("It rained.")'
try python -m pytest -q "$root/tests/network/test_label_attention.py"
exit $failed
