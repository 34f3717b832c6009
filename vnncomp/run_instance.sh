#!/usr/bin/env bash
# run_instance.sh v1 CATEGORY ONNX VNNLIB RESULTS_FILE TIMEOUT
# Exit 0: RESULTS_FILE contains sat, unsat, unknown, timeout or error. Exit 2: bad arguments, nothing
# written. A signal stops the verifier too, and RESULTS_FILE is valid even then.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[ $# -eq 6 ] || fail "usage: $script v1 CATEGORY ONNX VNNLIB RESULTS_FILE TIMEOUT"
[ "$1" = v1 ] || fail "version is '$1', only v1 is known"
onnx=$3 vnnlib=$4 results=$5 seconds=$6
[[ $seconds =~ ^([0-9]+\.?[0-9]*|\.[0-9]+)$ && $seconds =~ [1-9] ]] ||
    fail "TIMEOUT is '$seconds', not a positive number of seconds"
[ -n "$results" ] && [ ! -d "$results" ] || fail "RESULTS_FILE '$results' is not a file"
find_tool

# The verifier's own time limit is a margin before TIMEOUT, for its start and for writing results. It
# gets SIGTERM when half of the margin has passed, and is killed after three quarters of it.
read -r budget stop kill_after <<<"$(awk -v t="$seconds" 'BEGIN {
    margin = 2 + 0.02 * t; if (margin > t / 2) margin = t / 2
    printf "%.6f %.6f %.6f\n", t - margin, t - margin / 2, margin / 4 }')"

# Write to a file in the same folder and rename it: a reader never sees an incomplete file.
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

# `timeout` passes the signals that it gets on to the verifier.
child= stopped=
forward() {
    stopped=$1
    [ -n "$child" ] && kill -TERM "$child" 2>/dev/null
}
# A signal that arrives while bash parses a command substitution is not handled correctly: bash takes
# the trap's command for a part of the substitution. So there are no substitutions from here on until
# the verifier has ended. Reading from this descriptor never returns anything, so it serves to wait.
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
    [ -n "$stopped" ] && forward "$stopped" # the signal may have arrived before the child existed

    # A signal that arrives just as `wait` begins is not handled before the child ends. So poll, and
    # call `wait` only when the child has ended.
    pause=0.02
    while kill -0 "$child" 2>/dev/null; do
        read -rt "$pause" -u "$never" _
        [ "$SECONDS" -lt 10 ] || pause=0.2
    done
    wait "$child"
    code=$?
}
run_verifier

# The first line is the verifier's verdict, or still our own `timeout`. A `timeout` is replaced by
# `error` if the verifier failed or was killed before its time was up, and so is any invalid line.
first=$(head -n 1 "$results" 2>/dev/null)
case $first in
sat | unsat | unknown | error) ;;
timeout) [ $code -eq 0 ] || [ "$SECONDS" -ge "${stop%.*}" ] || [ -n "$stopped" ] || write_status error ;;
*) write_status error ;;
esac || fail "cannot write RESULTS_FILE '$results'"
exit "${stopped:-0}"
