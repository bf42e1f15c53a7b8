# Sourced by scripts/demo and scripts/test: makes .venv in the checkout and installs into it.
# shellcheck shell=bash
set -euo pipefail

ROOT="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)"
cd -- "$ROOT"
VENV="$ROOT/.venv"

# torch's threads spin: more of them than free cores slows everything down many times over.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
export HF_HUB_OFFLINE=1
export TOKENIZERS_PARALLELISM=false
export PIP_DISABLE_PIP_VERSION_CHECK=1

fail() {
    echo "error: $*" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

# The interpreter to build .venv with: $PYTHON, or the first on the PATH that is new enough.
find_python() {
    local name
    if [ -n "${PYTHON:-}" ]; then
        new_enough "$PYTHON" || fail "PYTHON=$PYTHON is not a Python 3.10 or newer"
        echo "$PYTHON"
        return
    fi
    for name in python3 python3.11 python3.12 python3.13 python3.10; do
        if new_enough "$name"; then
            echo "$name"
            return
        fi
    done
    fail "no Python 3.10 or newer was found; install one (Debian: apt install python3 python3-venv)" \
        "or name one: PYTHON=/path/to/python3.11 $0"
}

digest() {
    { cat pyproject.toml constraints.txt; "$VENV/bin/python" -V; echo "$1 $ROOT"; } | cksum
}

# make_venv EXTRAS: idempotent; a rerun with nothing changed installs nothing.
make_venv() {
    local extras="$1" python stamp="$VENV/.installed-$1"
    if ! "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        python="$(find_python)"
        echo "creating .venv with $("$python" -V)"
        "$python" -m venv --clear "$VENV" ||
            fail "$python -m venv does not work; on Debian and Ubuntu: apt install python3-venv"
    fi
    if [ "$(cat "$stamp" 2>/dev/null)" = "$(digest "$extras")" ] && [ -x "$VENV/bin/rlgov" ]; then
        return
    fi
    echo "installing rlgov[$extras] into .venv (the first time takes a few minutes)"
    "$VENV/bin/python" -m pip install --quiet -c constraints.txt -e ".[$extras]" ||
        fail "the installation failed; it needs a package index (see pip's message above)"
    digest "$extras" >"$stamp"
}
