#!/usr/bin/env bash
# Makes or brings up to date the virtual environment that the Makefile's targets run in.
#   tools/setup.sh [VENV]     VENV: folder, default .venv;  PYTHON: the interpreter to make it with, default python3;
#                             EXTRAS: the extras of pyproject.toml to install, default dev
# Safe to run again: what is installed already is kept, and a step that fails stops here with its reason. An installation that
# was interrupted, or a folder that was moved, is made anew.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}
python=${PYTHON:-python3}
case $venv in /*) place=$venv ;; *) place=$(pwd -P)/$venv ;; esac
ready=$venv/.lalkit-ready # holds the place of an environment that is whole; the Makefile reads it
begun=$venv/.lalkit-begun # stands there instead while an installation runs, and holds its process

say() { printf '==> %s\n' "$*"; }
fail() { printf 'error: %s\n' "$1" >&2; shift; for line in "$@"; do printf '  %s\n' "$line" >&2; done; exit 1; }
recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; }

anew=
if [ -e "$begun" ]; then
    ps -p "$(cat "$begun")" -o args= 2>/dev/null | grep -q setup.sh && fail "process $(cat "$begun") is installing into $venv" "Wait for its end."
    anew="its last installation did not end"
elif [ -s "$ready" ] && [ "$(cat "$ready")" != "$place" ]; then
    anew="it was made as $(cat "$ready")"
elif [ ! -e "$venv/pyvenv.cfg" ] && [ -n "$(ls -A "$venv" 2>/dev/null)" ]; then
    fail "$venv holds other files than a virtual environment" "Remove it, or name another folder."
elif [ -x "$venv/bin/python" ]; then
    recent "$venv/bin/python" || fail "$venv holds $("$venv/bin/python" -V 2>&1), lalkit needs 3.11 or later" "Remove $venv and run this again."
fi
if [ -n "$anew" ] || [ ! -x "$venv/bin/python" ]; then
    command -v "$python" >/dev/null 2>&1 || fail "there is no $python" "Install Python 3.11 or later, or name one: make PYTHON=/path/to/python3.11"
    recent "$python" || fail "$python is $("$python" -V 2>&1), lalkit needs 3.11 or later" "Name another one: make PYTHON=python3.12"
fi

mkdir -p "$venv"
[ ! -e "$ready" ] || mv "$ready" "$begun"
echo $$ >"$begun"
if [ -n "$anew" ]; then
    say "removing $venv: $anew"
    find "$venv/" -mindepth 1 ! -path "$begun" -delete
fi
if [ ! -x "$venv/bin/python" ]; then
    say "making $venv with $("$python" -V 2>&1)"
    "$python" -m venv "$venv" || fail "$python -m venv failed" "On Debian and Ubuntu: apt install python3-venv"
fi
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip # uv makes environments without pip

pip() { # Python compiles a module when it is first imported; most of what is installed here never is
    local options=(--disable-pip-version-check)
    [ -t 1 ] || options+=(--quiet) # progress bars only where somebody looks at them
    "$venv/bin/python" -m pip "${options[@]}" "$@"
}

torch=$(grep -E '^torch==' constraints.txt) || fail "constraints.txt pins no torch"
cpu_index=https://download.pytorch.org/whl/cpu
installed() { "$venv/bin/python" -c 'import importlib.metadata as m, sys; sys.exit(m.version("torch").split("+")[0] != sys.argv[1])' "${torch#torch==}" 2>/dev/null; }
answers() { timeout 8 "$venv/bin/python" -c 'import sys, urllib.request as u; u.urlopen(sys.argv[1], timeout=5)' "$1/" >/dev/null 2>&1; }
if installed; then
    say "$torch is installed"
elif [ "$(uname -s)" = Linux ] && ! nvidia-smi >/dev/null 2>&1 && answers "$cpu_index"; then
    say "installing $torch for CPU (about 200 MB; there is no NVIDIA GPU)"
    pip install --no-compile --no-deps --index-url "$cpu_index" "$torch"
else
    say "installing $torch (may take several minutes)"
    pip install --no-compile -c constraints.txt "$torch"
fi
say "installing lalkit and the packages it needs (a few minutes the first time)"
all=(-c constraints.txt -e ".[${EXTRAS:-dev}]")
# uv is several times as fast as pip. It reads no pip.conf, so there may be packages that only pip finds.
if ! { pip install --no-compile uv && "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "${all[@]}"; }; then
    say "uv could not: pip does it"
    pip install --no-compile "${all[@]}"
fi
echo "$place" >"$begun"
mv "$begun" "$ready"
say "$venv is ready"
