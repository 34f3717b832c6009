# Functions shared by the competition scripts. Sourced, not run.
export LC_ALL=C # numbers with a decimal point, whatever the locale
script=$(basename "$0")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# One record per run in progress, so that processes left behind by a run that has ended can be found.
records=${TMPDIR:-/tmp}/fgp_vnn-$(id -u)

fail() {
    echo "$script: $1" >&2
    exit 2
}

# Sets `tool`: $FGP_VNN if it is set, else the installation of this project.
find_tool() {
    tool=${FGP_VNN:-$root/.venv/bin/fgp-vnn}
    [ -f "$tool" ] && [ -x "$tool" ] || fail "no command $tool (run install_tool.sh v1, or set FGP_VNN)"
}

# When a process started, in clock ticks since boot; empty if it does not exist. Process ids are
# reused, so a process is identified by its id and its start.
started() {
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20
}

alive() { # PID START
    [ -n "$2" ] && [ "$(started "$1")" = "$2" ]
}

own_records() {
    mkdir -m 700 "$records" 2>/dev/null
    [ -d "$records" ] && [ ! -L "$records" ] && [ -O "$records" ]
}
