#!/usr/bin/env bash
# Create .venv and install the project into it with the tested versions; quick if nothing has changed.
# Set PYTHON to choose the interpreter.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "setup.sh: needs Python 3.10 or later${PYTHON:+ (PYTHON is $PYTHON)}" >&2
    exit 1
}

# The installation depends on its path and on the contents of these files.
fingerprint() {
    "$1" - <<'PY'
import hashlib, pathlib
files = ["pyproject.toml", "scripts/constraints.txt", "scripts/setup.sh"]
parts = [str(pathlib.Path.cwd()).encode()] + [pathlib.Path(f).read_bytes() for f in files]
print(hashlib.sha256(b"\0".join(parts)).hexdigest())
PY
}

stamp=.venv/fgp_vnn.stamp
if [ -f "$stamp" ] && [ "$(fingerprint .venv/bin/python 2>/dev/null)" = "$(cat "$stamp")" ]; then
    exit 0
fi

if [ -L .venv ]; then
    echo "setup.sh: .venv is a link, to another installation: remove it first" >&2
    exit 1
fi
python=$(find_python)
# The stamp exists only after a complete installation at this path; without it, start over.
if [ ! -f "$stamp" ] || ! .venv/bin/python -c '' 2>/dev/null || ! grep -qsF "$PWD/.venv" .venv/bin/pip; then
    echo "Making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv >&2 || {
        echo "setup.sh: $python -m venv failed (Debian and Ubuntu: install python3-venv)" >&2
        exit 1
    }
fi
rm -f "$stamp"

install() {
    .venv/bin/python -m pip install -qq --disable-pip-version-check --no-input "$@"
}
echo "Installing the packages of scripts/constraints.txt (a few minutes the first time)"
# torch is installed first and alone, so that the other packages find the version chosen for this machine.
install "$(grep '^torch==' scripts/constraints.txt)"
# With "compat" Python also finds the package from the folder above this one, where it would otherwise
# take the clone's folder for the package.
install --constraint scripts/constraints.txt --config-settings editable_mode=compat --editable '.[dev]'
fingerprint .venv/bin/python >"$stamp"
