#!/usr/bin/env bash
# run_instance.sh v1 CATEGORY ONNX VNNLIB RESULTS_FILE TIMEOUT
# Exit 0: RESULTS_FILE holds sat, unsat, unknown, timeout or error. Exit 2: bad arguments, and
# nothing written. Stopped by a signal, it stops the verifier, and RESULTS_FILE is legal all the same.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -eq 6 ] || fail "usage: $script v1 CATEGORY ONNX VNNLIB RESULTS_FILE TIMEOUT"
[ "$1" = v1 ] || fail "version is '$1', only v1 is known"
onnx=$3 vnnlib=$4 results=$5 seconds=$6
[[ $seconds =~ ^([0-9]+\.?[0-9]*|\.[0-9]+)$ && $seconds =~ [1-9] ]] ||
    fail "TIMEOUT is '$seconds', not a positive number of seconds"
[ -n "$results" ] && [ ! -d "$results" ] || fail "RESULTS_FILE '$results' is not a file"
find_tool

# The verifier is asked to end a margin before TIMEOUT, which covers its start and the writing;
# it is stopped when half of the margin is gone, and killed when three quarters are.
read -r budget stop kill_after <<<"$(awk -v t="$seconds" 'BEGIN {
    margin = 2 + 0.02 * t; if (margin > t / 2) margin = t / 2
    printf "%.6f %.6f %.6f\n", t - margin, t - margin / 2, margin / 4 }')"

# A file in the same folder, moved into place: a reader never meets half of one.
record=
seed=$results.$$
write_status() {
    echo "$1" 2>/dev/null >"$seed" && mv -f "$seed" "$results" 2>/dev/null
}
tidy() {
    rm -f "$seed" ${record:+"$record"}
}
trap tidy EXIT

{ write_status timeout; } 2>/dev/null || fail "cannot write RESULTS_FILE '$results'"

# timeout passes on to the verifier what it is sent itself.
child= stopped=
forward() {
    stopped=$1
    [ -n "$child" ] && kill -TERM "$child" 2>/dev/null
}
# When a signal comes while bash parses a substitution, it takes the trap's command for a part of it.
# So there is none from here on until the verifier has ended; this never gives anything to read.
exec {never}<> <(:)
run_verifier() {
    trap 'forward 143' TERM
    trap 'forward 130' INT
    timeout --kill-after="$kill_after" "$stop" \
        "$tool" verify "$onnx" "$vnnlib" --timeout "$budget" --results "$results" &
    child=$!
    if own_records; then
        record=$records/$$
        for process in $$ "$child"; do
            echo "$process"
            started "$process"
        done | tr '\n' ' ' >"$records/.$$" # moved into place: a reader never meets half of one
        mv -f "$records/.$$" "$record"
    fi
    [ -n "$stopped" ] && forward "$stopped" # a signal may have come before there was a child

    # A signal that comes just as `wait` begins is not handled before the child ends: so look again
    # and again, and wait only for what is gone.
    pause=0.02
    while kill -0 "$child" 2>/dev/null; do
        read -rt "$pause" -u "$never" _
        [ "$SECONDS" -lt 10 ] || pause=0.2
    done
    wait "$child"
    code=$?
}
run_verifier

# The first line is the verifier's verdict or still our own `timeout`. The latter is replaced if
# the verifier failed or was killed before its time was up, and so is anything that is not legal.
first=$(head -n 1 "$results" 2>/dev/null)
case $first in
sat | unsat | unknown | error) ;;
timeout) [ $code -eq 0 ] || [ "$SECONDS" -ge "${stop%.*}" ] || [ -n "$stopped" ] || write_status error ;;
*) write_status error ;;
esac || fail "cannot write RESULTS_FILE '$results'"
exit "${stopped:-0}"
