#!/usr/bin/env bash
# prepare_instance.sh v1 CATEGORY ONNX VNNLIB
# Stops verifiers left behind by earlier runs. Exit 1: declined, since a file cannot be read. The
# files are not analysed.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -eq 4 ] || fail "usage: $script v1 CATEGORY ONNX VNNLIB"
[ "$1" = v1 ] || fail "version is '$1', only v1 is known"
find_tool

# A verifier is left over if it still runs and the script that started it does not.
if own_records; then
    for record in "$records"/*; do
        [ -f "$record" ] || continue
        read -r owner owner_start child child_start <"$record"
        alive "$owner" "$owner_start" && continue
        # timeout is the leader of the group that the verifier runs in.
        alive "$child" "$child_start" && kill -TERM -- "-$child" 2>/dev/null
        rm -f "$record"
    done
fi

timeout 500 "$tool" supports "$3" "$4"
code=$?
[ $code -eq 124 ] && echo "$script: reading took too long" >&2
[ $code -eq 0 ] || exit 1
