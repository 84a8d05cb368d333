# shellcheck shell=bash
#
# lib.sh - what the scripts beside it share: the root of the tree, and messages.  Sourced, never
# run.  Results go to standard output, messages to standard error, so that
# `eval "$(scripts/masters start)"` works.

# shellcheck disable=SC2034 # The sourcing script uses it.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
me=$(basename "$0")

say() {
    printf '%s: %s\n' "$me" "$*" >&2
}

die() {
    say "$*"
    exit 1
}

# sim_themes PROGRAM: print the themes of the simulator (test/sim/world.c) that this test-sim can run.
sim_themes() {
    local themes="clocks restarts starts lines sets crowds partners revokes moves losses"
    ! ldd "$1" | grep libssl >/dev/null || themes+=" tls"
    echo "$themes"
}

# Run a command as root: directly, or with sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "this needs root, and there is no sudo: $*"
    fi
}

# True while process $1 runs.  A zombie with one thread has ended.  A process whose first thread has
# ended is reported as a zombie, too, but keeps its sockets until the last thread ends.  So a
# killed server may still listen for a moment.
alive() {
    local state
    local -a threads
    state=$(process_state "$1")
    threads=("/proc/$1/task/"*)
    [ -n "$state" ] && { [[ $state != [ZX] ]] || [ ${#threads[@]} -gt 1 ]; }
}

# Print the one-letter state of process $1 (see proc(5)), or nothing if there is no such process.
# The name before the state, in parentheses, may hold any character, so it is cut off first.
process_state() {
    local line
    { read -r -d '' line <"/proc/$1/stat" || [ -n "$line" ]; } 2>/dev/null || return 0
    line=${line##*) }
    printf '%s' "${line%% *}"
}

# Wait until the command after the bound succeeds: wait_for SECONDS COMMAND...
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -le "$end" ] || return 1
        sleep 0.02
    done
}
