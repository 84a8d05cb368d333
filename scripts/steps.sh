# shellcheck shell=bash
#
# steps.sh - the tools of a step of scripts/check: count, build, test, see what is installed.
# Sourced by it, never run.
#
# A step is a process.  It writes its counts and the notes for its line into two small files, which
# lanes.sh reads.
#
# From scripts/check: root, out, builds, tests_at_once, again_max.

: "${root:?}" "${out:?}" "${builds:?}" "${tests_at_once:?}" "${again_max:?}"

current= # The step that this process runs.

# Else git refuses the tree of another user, as under sudo or in CI.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$root

# count PASSED FAILED SKIPPED
count() {
    echo "$@" >>"$out/$current.count"
}

note() {
    echo "$*" >>"$out/$current.note"
    echo "$*"
}

# End a step that fails before it has counted anything.
give_up() {
    note "$*"
    exit 1
}

# Run one command that counts as one test called $1.
one_test() {
    local name=$1 status=0
    shift
    "$@" || status=$?
    count_one "$name" "$status"
}

# The same for a command that exits with 77 if it cannot run here.  Do not use it for others:
# libFuzzer exits with 77 when it has found a bug.
one_test_or_skip() {
    local name=$1 status=0
    shift
    "$@" || status=$?
    if [ "$status" -eq 77 ]; then
        count 0 0 1
        note "$name: skipped: $(grep -i skip "$out/$current.log" | tail -n 1)"
    else
        count_one "$name" "$status"
    fi
}

count_one() {
    if [ "$2" -eq 0 ]; then
        count 1 0 0
    else
        count 0 1 0
        note "$1: failed (exit status $2)"
    fi
}

# The first seed of the version (scripts/seeds), as small as all programs take it.
version_seed() {
    local first
    read -r first _ < <("$root/scripts/seeds" --range)
    echo $((first % 1000000000))
}

random_seed() {
    echo $((RANDOM * 32768 + RANDOM + 1))
}

# Files that git knows and this tree has: tracked PATTERN...
tracked() {
    local file
    git -C "$root" ls-files -- "$@" | while read -r file; do
        [ ! -f "$root/$file" ] || echo "$file"
    done
}

# ---- Builds ----

# build NAME COMPILER OPTION...: build all of it in $builds/NAME.
build() {
    configure "$@"
    ninja -C "$builds/$1"
}

# Only configure.  A folder that was made with the same compiler and options is kept.
configure() {
    local name=$1 compiler=$2 dir made_with
    shift 2
    dir=$builds/$name
    made_with="$("$compiler" --version | head -n 1) $*"
    if [ ! -e "$dir/build.ninja" ] || [ "$(cat "$dir.made-with" 2>/dev/null)" != "$made_with" ]; then
        rm -rf "$dir" "$dir.made-with"
        mkdir -p "$builds"
        CC=$compiler meson setup "$dir" "$root" -Dwerror=true "$@"
        echo "$made_with" >"$dir.made-with"
    fi
}

# The first step that needs the gcc build makes it; steps of several lanes do (see main() of
# scripts/check).
build_gcc() {
    (
        flock 8
        if [ ! -e "$out/gcc-is-built" ]; then
            build gcc gcc --buildtype=debugoptimized
            touch "$out/gcc-is-built"
        fi
    ) 8>"$out/build-gcc"
}

# A step that computes gets what the others leave of the processors, so its tests take longer.
patience=4

# tests NAME ARG...: build what these tests need, run them with "meson test ARG...", and count each.
# Each step has its own logs, because two steps may test one build at a time.  Tests with real masters
# that failed run once more, one at a time (scripts/count-tests), unless they are more than chance
# explains.
tests() {
    local dir=$builds/$1 status=0 log name
    local -a again=()
    shift
    log=$dir/meson-logs/$current
    rm -f "$log-log"*.json "$log-again"*.json
    "${launcher[@]}" meson test -C "$dir" --num-processes "$tests_at_once" --print-errorlogs \
        --timeout-multiplier "$patience" --logbase "$current-log" "$@" || status=$?
    while read -r name; do
        [ -z "$name" ] || again+=("$name")
    done < <("$root/scripts/count-tests" --names "$(log_of "$log-log")")
    if [ ${#again[@]} -gt 0 ] && [ ${#again[@]} -le "$again_max" ]; then
        "${launcher[@]}" meson test -C "$dir" --no-rebuild --num-processes 1 --print-errorlogs \
            --logbase "$current-again" "$@" "${again[@]}" || true
    fi
    count_tests "$status" "$(log_of "$log-log")" "$(log_of "$log-again")"
}

# log_of PREFIX: the log that meson wrote.  A test setup is part of its name.
log_of() {
    local file
    for file in "$1"*.json; do
        echo "$file"
    done
}

# It is a failure if no test ran, or if meson failed and no test did.
count_tests() {
    local status=$1 passed failed skipped line
    shift
    line=$("$root/scripts/count-tests" "$@")
    read -r passed failed skipped <<<"$line"
    [[ $line != *$'\n'* ]] || note "$(tail -n +2 <<<"$line" | paste -sd ';' | sed 's/;/; /g')"
    if ((passed + failed + skipped == 0)); then
        give_up "no test ran"
    fi
    if ((status != 0 && failed == 0)) && [[ $line != *unsteady:* ]]; then
        note "meson test ended with status $status"
        failed=1
    fi
    count "$passed" "$failed" "$skipped"
}

# said BUILD TEST PATTERN: print what matches in the output of a test that ran last.
said() {
    python3 - "$2" "$3" "$builds/$1/meson-logs/$current-log"*.json <<'END'
import json, re, sys

for path in sys.argv[3:]:
    for test in map(json.loads, open(path)):
        if test["name"].split(" / ")[-1] == sys.argv[1]:
            for line in re.findall(sys.argv[2], test.get("stdout") or "", re.MULTILINE):
                print(line)
END
}

# Note how many planted bugs the test $1 has caught.
note_bugs() {
    note "planted bugs ($1): $(said gcc "$1" '^\d+ passed, \d+ failed$')"
}

# The command that starts the programs of this step.
launcher=()

# The sanitizers need fixed memory areas.  A kernel that scatters mappings widely
# (vm.mmap_rnd_bits) may occupy them, and the program then aborts at random.  So this turns address
# randomization off, unless a sandbox forbids that.
prepare_sanitizers() {
    ! setarch "$(uname -m)" -R true 2>/dev/null || launcher=(setarch "$(uname -m)" -R)
    export ASAN_OPTIONS=abort_on_error=1:detect_leaks=1:strict_string_checks=1
    # A cancelled thread leaves poisoned memory on its stack.  AddressSanitizer then fails when it
    # removes the signal stack of the thread.
    ASAN_OPTIONS+=:use_sigaltstack=0
    export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
}

# ---- What is installed ----

# The unit that is installed below $1 starts the command with the prefix $2.  systemd-analyze reads a
# copy that starts the command below $1, because it looks for this file.
check_units() {
    local units=$1$2/share/doc/redlock/examples dir=$builds/install-units name said
    grep -qx "ExecStart=$2/bin/redlock init" "$units/redlock-init.service" ||
        give_up "redlock-init.service does not start $2/bin/redlock"
    grep -q " $2/bin/redlock status --prometheus " "$units/redlock-metrics.service" ||
        give_up "redlock-metrics.service does not start $2/bin/redlock"
    ! grep -F -e "$root" -e /usr/local "$units"/redlock-{init,metrics}.* ||
        give_up "a unit names a path of the build, or of another prefix"
    if ! command -v systemd-analyze >/dev/null; then
        count 0 0 1
        note "units: skipped: there is no systemd-analyze"
        return
    fi
    rm -rf "$dir"
    mkdir "$dir"
    for name in redlock-{init,metrics}.{service,timer}; do
        sed "s|\([= ]\)$2/|\1$1$2/|" "$units/$name" >"$dir/$name"
    done
    said=$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$dir"/redlock-* 2>&1) ||
        give_up "systemd-analyze: $said"
    [[ $said != *redlock-* ]] || give_up "systemd-analyze: $said"
}
