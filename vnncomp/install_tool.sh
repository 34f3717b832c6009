#!/usr/bin/env bash
# install_tool.sh v1
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -eq 1 ] || fail "usage: $script v1"
[ "$1" = v1 ] || fail "version is '$1', only v1 is known"
bash "$root/scripts/setup.sh" || fail "the installation failed"
"$root/.venv/bin/fgp-vnn" --version || fail "the installed command does not start"
