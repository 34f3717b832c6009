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
# Two workers with a thread each, not two with all cores each.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
# Without bytecode, each process that a test starts would compile the package anew.
unset PYTHONDONTWRITEBYTECODE
bin=.venv/bin
"$bin/ruff" check --quiet .
"$bin/ruff" format --check --quiet .
"$bin/mypy" --no-error-summary
"$bin/lint-imports" >/dev/null || "$bin/lint-imports"
echo "lint, types and contracts: clean"
exec "$bin/python" -m pytest --quiet -n "${FGP_VNN_TEST_WORKERS:-2}" --dist worksteal "${chosen[@]}" "$@"
