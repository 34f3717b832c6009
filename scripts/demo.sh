#!/usr/bin/env bash
# Set up, then verify the bundled benchmark and compare every verdict with the ground truth.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bash scripts/setup.sh
exec .venv/bin/fgp-vnn demo "$@"
