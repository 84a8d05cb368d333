# shellcheck shell=bash
#
# lib.sh - what the scripts beside it share: where the tree is, and how they
# speak to people.  Sourced, never run.  Results go to standard output, all
# talk to standard error, so that `eval "$(scripts/masters start)"` works.

# shellcheck disable=SC2034 # for whoever sources this
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
me=$(basename "$0")

say() {
    printf '%s: %s\n' "$me" "$*" >&2
}

die() {
    say "$*"
    exit 1
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

# True while process $1 runs: neither gone nor a zombie that nobody has reaped.  One
# whose first thread has ended is said to be a zombie, too, but what it had open stays
# open until the last has: a server that was killed may still listen for a moment.
alive() {
    local state
    local -a threads
    state=$(process_state "$1")
    threads=("/proc/$1/task/"*)
    [ -n "$state" ] && { [[ $state != [ZX] ]] || [ ${#threads[@]} -gt 1 ]; }
}

# The one-letter state of process $1 (see proc(5)), nothing if there is none.
# The name before it, in parentheses, may hold anything, so it is cut off first.
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
