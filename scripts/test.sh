#!/usr/bin/env bash
# Set up, then run lint, type checks, import contracts and tests. With --quick only the tests that
# tests/conftest.py selects for it. Other arguments go to pytest: bash scripts/test.sh -k scripts
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
chosen=()
if [[ ${1:-} == --quick ]]; then
    shift
    chosen=(--quick)
fi
bash scripts/setup.sh
# Each worker gets one thread, not all cores.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
# Without bytecode, each process that a test starts would compile the package again.
unset PYTHONDONTWRITEBYTECODE
bin=.venv/bin
"$bin/ruff" check --quiet .
"$bin/ruff" format --check --quiet .
"$bin/lint-imports" >/dev/null || "$bin/lint-imports"
# Type checks take most of a minute of one core without a cache: run them beside the tests and
# report them afterwards.
types=$(mktemp)
trap 'kill "$checking" 2>/dev/null || true; rm -f "$types"' EXIT
"$bin/mypy" --no-error-summary >"$types" 2>&1 &
checking=$!
failed=0
# One worker more than cores: two workers spend a fifth of the time waiting for other processes.
"$bin/python" -m pytest --quiet -n "${FGP_VNN_TEST_WORKERS:-3}" --dist worksteal "${chosen[@]}" "$@" || failed=$?
if wait "$checking"; then
    echo "lint, types and contracts: clean"
else
    failed=1
fi
cat "$types"
exit "$failed"
