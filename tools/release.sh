#!/usr/bin/env bash
# Builds everything that a release has, in dist/, and tries it in new environments, away from the checkout.
#   tools/release.sh check     build lalkit, its parsers and their encoder; install and use them with every Python that is here
#   tools/release.sh           the same, after a look at the tree, the versions and the dates; then it prints what is left to type
# Set VENV for an environment other than .venv (make release-check prepares it).
set -euo pipefail
unset PYTHONPATH
cd "$(dirname "$0")/.."
root=$PWD
bin=$(cd "${VENV:-.venv}" && pwd)/bin
work=$root/build/release
away=$work/away

say() { printf '==> %s\n' "$*"; }
fail() { printf 'error: %s\n' "$@" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
address=$(sed -n 's/^Repository = "\([^"]*\)".*/\1/p' pyproject.toml)

agree() { # everything that is wrong at once
    local date wrong=()
    [ -z "$(git status --porcelain)" ] || wrong+=("the checkout has changes that are not committed: git status")
    date=$(sed -n "s/^## $version (\([0-9]\{4\}-[0-9][0-9]-[0-9][0-9]\))$/\1/p" CHANGELOG.md)
    [ -n "$date" ] || wrong+=("CHANGELOG.md: the section of $version has no date. Write: ## $version ($(date +%F))")
    grep -qx "version: $version" CITATION.cff || wrong+=("CITATION.cff: the version is not $version")
    [ -n "$date" ] && ! grep -qx "date-released: $date" CITATION.cff && wrong+=("CITATION.cff: write date-released: $date")
    grep -qx "__version__ = \"$version\"" lalkit/__init__.py || wrong+=("lalkit/__init__.py: the version is not $version")
    case $address in *example.org*) wrong+=("pyproject.toml: write the address of the repository under [project.urls]") ;; esac
    for tag in $(git tag --points-at HEAD 'v*'); do
        [ "$tag" = "v$version" ] || wrong+=("the tag $tag is here, but the version is $version")
    done
    if git rev-parse -q --verify "refs/tags/v$version" >/dev/null && [ -z "$(git tag --points-at HEAD "v$version")" ]; then
        wrong+=("the tag v$version is at another commit: raise the version in pyproject.toml, lalkit/__init__.py and CITATION.cff")
    fi
    [ ${#wrong[@]} -eq 0 ] || fail "${wrong[@]}"
}

interpreter() { # print the Python of a version, if one runs here
    local python
    for python in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        "$python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null && command -v "$python" && return
    done
}

install() { # ENVIRONMENT WHAT...
    "$bin/uv" pip install --quiet --python "$1/bin/python" -c constraints.txt "${@:2}"
}

parses() { # ENVIRONMENT, DEFAULT (the parser that lalkit.load() is there): parse, explain, serve and doctor, without a network
    local lalkit="$1/bin/lalkit" server
    mkdir -p "$away" && cd "$away"
    "$lalkit" doctor | tee doctor.txt | grep -E '^.. (lalkit|parsers|default)'
    grep -q "^ok default parser *$2\$" doctor.txt || fail "the default parser is not $2"
    "$lalkit" parse "Select the person driving" 2>message.txt | grep "(S "
    [ "$2" = en ] || grep "is $2 here" message.txt || fail "lalkit does not say which parser it uses"
    "$lalkit" parse It --model en-nothing 2>message.txt && fail "en-nothing is here"
    grep "one of these names: .*$2" message.txt || fail "lalkit does not say which parsers are here: $(cat message.txt)"
    "$lalkit" explain "Fed Ready to Inject Big Funds" --label NP >explain.txt
    grep -m 1 "^NP" explain.txt
    "$lalkit" serve --port 0 >address.txt 2>server.txt &
    server=$!
    trap "kill $server 2>/dev/null || true" EXIT # also where a step fails
    for _ in $(seq 240); do [ -s address.txt ] || sleep 0.5; done
    curl --silent --fail --output page.txt "$(cat address.txt)parse?text=It+rained." || fail "lalkit serve: $(cat server.txt)"
    grep -q rained page.txt || fail "lalkit serve: the page has no answer"
    kill $server && wait $server || true
    "$1/bin/python" -c "
import lalkit
assert lalkit.__file__.startswith('$1'), lalkit.__file__
assert len(lalkit.Treebank.load('sample', 'test')) == 44"
    cd "$root"
}

check() {
    local python kind place found=()
    rm -rf "$work" && rm -f dist/lalkit*
    mkdir -p "$away"
    say "lalkit $version: source distribution and wheel"
    "$bin/python" -P -m build --outdir dist . >"$work/build.txt" 2>&1 || fail "$(tail -n 20 "$work/build.txt")"
    "$bin/twine" check --strict dist/lalkit-"$version"*
    unzip -p dist/lalkit-"$version"-*.whl '*/METADATA' | grep -oE '\]\([^)]*' | grep -v '](https\?://' && fail "links that lead nowhere on a package page"
    [ -z "$(find dist -name 'lalkit-*' -size +5M)" ] || fail "lalkit is larger than 5 MB: see MANIFEST.in"
    # A connection to any other machine is an error.
    mkdir "$work/offline"
    cat >"$work/offline/sitecustomize.py" <<'END'
import socket
connect = socket.socket.connect
def refuse(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
        raise OSError(f"no network: {address}")
    return connect(self, address)
socket.socket.connect = refuse
END
    # PyTorch's own index has builds without CUDA, which are ten times smaller.
    curl --silent --fail --max-time 8 --output /dev/null https://download.pytorch.org/whl/cpu/ && export UV_TORCH_BACKEND=cpu
    for number in $(sed -n 's/.*"Programming Language :: Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml); do
        python=$(interpreter "$number") || true
        [ -n "$python" ] || { say "Python $number is not here: skipped"; continue; }
        found+=("$number")
        for kind in tar.gz whl; do
            place=$work/$number-$kind
            say "$("$python" -V), dist/$(cd dist && ls lalkit-"$version"*."$kind")"
            "$bin/uv" venv --quiet --python "$python" "$place"
            install "$place" dist/lalkit-"$version"*."$kind"
            (export PYTHONPATH="$work/offline" HF_HUB_OFFLINE=1 && parses "$place" en-span)
            [ $kind$number = "whl${found[0]}" ] || rm -rf "$place"
        done
    done
    [ ${#found[@]} -gt 0 ] || fail "none of the Pythons of pyproject.toml is here"
    place=$work/${found[0]}-whl
    say "the parsers and the encoder, built beside the installed wheel"
    install "$place" pip setuptools
    "$place/bin/python" tools/ship.py wheel --out dist
    "$place/bin/python" tools/ship.py encoder --out dist
    [ "$(ls dist/lalkit_models_*.whl | wc -l)" -eq "$(ls data/models/*/model.json | wc -l)" ] || fail "a parser has no wheel"
    install "$place" --no-deps dist/lalkit_models_*.whl dist/lalkit_minilm-*.whl
    (
        export PYTHONPATH="$work/offline" HF_HUB_OFFLINE=1
        parses "$place" en
        cd "$away"
        "$place/bin/lalkit" parse "我們 喜歡 音樂" --form tokens --model zh-sinica
    )
    say "the tests that only a release needs"
    ${PYTEST:-$bin/python -m pytest -q} -m release
    [ ! -f tools/lowest.sh ] || PYTHON=$(interpreter "${found[0]}") bash tools/lowest.sh
    say "what a release has"
    du -ch --apparent-size dist/lalkit*
}

case ${1:-all} in
check) check ;;
all)
    agree
    check
    cat <<END
==> lalkit $version is ready. What is left to type:
git tag v$version && git push origin v$version    # starts .github/workflows/release.yml, which attaches dist/ to the release
$bin/twine upload dist/lalkit-$version*    # lalkit alone, to the index of Python packages
END
    ;;
*) fail "tools/release.sh takes check, or nothing" ;;
esac
