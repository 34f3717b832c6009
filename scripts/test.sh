#!/usr/bin/env bash
# Set up, then lint, types, contracts between the layers, and tests. With --quick only the tests that
# tests/conftest.py chooses for it. Other arguments go to pytest: bash scripts/test.sh -k scripts
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
chosen=()
if [[ ${1:-} == --quick ]]; then
    shift
    chosen=(--quick)
fi
bash scripts/setup.sh
# Workers with a thread each, not with all cores each.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
# Without bytecode, each process that a test starts would compile the package anew.
unset PYTHONDONTWRITEBYTECODE
bin=.venv/bin
"$bin/ruff" check --quiet .
"$bin/ruff" format --check --quiet .
"$bin/lint-imports" >/dev/null || "$bin/lint-imports"
# Types take most of a minute of one core without a cache: beside the tests, and told after them.
types=$(mktemp)
trap 'kill "$checking" 2>/dev/null || true; rm -f "$types"' EXIT
"$bin/mypy" --no-error-summary >"$types" 2>&1 &
checking=$!
failed=0
# One worker more than two cores can run: a fifth of the time of two is waiting, for other processes.
"$bin/python" -m pytest --quiet -n "${FGP_VNN_TEST_WORKERS:-3}" --dist worksteal "${chosen[@]}" "$@" || failed=$?
if wait "$checking"; then
    echo "lint, types and contracts: clean"
else
    failed=1
fi
cat "$types"
exit "$failed"
