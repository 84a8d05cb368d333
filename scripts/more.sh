# shellcheck shell=bash
#
# more.sh - the steps of scripts/check --more and --release that no other tier has.
# Sourced by it, never run.  The tools of steps are in steps.sh.
#
# From scripts/check: root, out, builds, coverage_min_percent, compiles_fast, not_again, and what it
# shares with the steps of its first tier: configure_asan, fuzz_for, run_partition, try_as_root, set_up.

: "${root:?}" "${out:?}" "${builds:?}" "${coverage_min_percent:?}" "${current?}" "${not_again[@]:?}" "${compiles_fast[@]:?}"

# Every order within bounds, of what locks, and of what changes and founds sets; planted bugs in the latter,
# and all that unit tests are to catch.  The models are only searched if their files have changed: what they
# found is in force until then.
step_orders() {
    local -a suites=(--suite orders)
    [ "$(models_sum)" = "$(cat "$root/test/models/searched")" ] || suites+=(--suite models)
    build_gcc
    tests gcc "${suites[@]}"
    note "explored: $(said gcc explore '^together +(\d+ worlds, +\d+ moves)' | tr -s ' ')"
}

# Models of what is planned for sets of masters, and their planted bugs.
step_models() {
    build_gcc
    tests gcc --suite models
    note "if test/models/searched has another sum: $(models_sum)"
}

# The models include no file of the library.
models_sum() {
    cat "$root"/test/models/*.[ch] | sha256sum | cut -c 1-16
}

step_asan-command() {
    configure_asan
    tests asan --suite command "${not_again[@]}" --timeout-multiplier 4
}

# Goes on from what the first tier found.
step_fuzz-120() {
    fuzz_for 120
}

step_interop() {
    build_gcc
    [ -x "$root/test/interop/run" ] || give_up "test/interop/run is missing"
    REDLOCK=$builds/gcc/redlock INTEROP_DIR=$builds/interop \
        one_test_or_skip interop "$root/test/interop/run"
}

# Ours must do all that is asked; npm's client only takes part.  test/conformance/run --all asks more.
step_conformance() {
    build_gcc
    REDLOCK=$builds/gcc/redlock INTEROP_DIR=$builds/interop CONFORMANCE_DIR=$builds/conformance \
        one_test_or_skip conformance "$root/test/conformance/run"
}

# The test setup in test/meson.build says which complaints of valgrind are failures.
step_valgrind() {
    build_gcc
    tests gcc --no-rebuild --setup valgrind --suite valgrind
}

step_coverage() {
    local percent
    # Threads and signal handlers must not lose each other's counts.
    configure coverage gcc --buildtype=debug -Db_coverage=true -Dc_args=-fprofile-update=atomic
    find "$builds/coverage" -name '*.gcda' -delete
    tests coverage --suite unit --suite live --no-suite covered "${not_again[@]}" --timeout-multiplier 2
    cd "$root" || return
    gcovr --root . --object-directory "$builds/coverage" \
        --filter redlock/ --filter drift/ --txt "$out/coverage.txt" "$builds/coverage"
    percent=$(sed -n 's/^TOTAL .* \([0-9]*\)%.*/\1/p' "$out/coverage.txt")
    note "line coverage of redlock/ and drift/: ${percent:-?} %"
    if [ "${percent:-0}" -lt "$coverage_min_percent" ]; then
        cat "$out/coverage.txt" # Else the end of the log is for tests that failed.
        give_up "that is under $coverage_min_percent %"
    fi
    count 1 0 0
}

step_compose() {
    set_up compose || return 0
    build_gcc
    BUILD_DIR=$builds/gcc one_test_or_skip compose-test "$root/scripts/compose-test"
}

# The image of the command, built and tried on a real engine.
step_image() {
    set_up compose || return 0
    one_test_or_skip image-test try_as_root image-test
}

# Tests the report of a partition run in a real browser.
step_report() {
    set_up report || return 0
    one_test_or_skip test-report "$root/test/partition/test-report"
}

# With link-time optimization: what is installed, and tests that link the whole library; the installed archive
# with LLVM's own tools, too.  stranger-all runs all unit tests and those with real masters so.
step_archive() {
    configure lto gcc --buildtype=release -Db_lto=true
    tests lto archive symbols manual open unload link loop options reader uri thread
    if ! command -v llvm-objcopy >/dev/null; then
        note "skipped: there is no llvm-objcopy"
        count 0 0 1
        return
    fi
    printf "[binaries]\nobjcopy = 'llvm-objcopy'\n" >"$builds/llvm.ini"
    configure llvm clang --buildtype=debug --native-file "$builds/llvm.ini"
    tests llvm archive symbols
}

# Without OpenSSL all works but rediss://, which says what is missing.
step_no-tls() {
    local said status=0 want="redlock: open: rediss://: this build has no TLS (meson setup -Dtls=enabled, with OpenSSL) [wrong-argument]"
    configure no-tls gcc "${compiles_fast[@]}" -Dtls=disabled
    ninja -C "$builds/no-tls" redlock
    tests no-tls --suite unit "${not_again[@]}"
    tests no-tls layers
    said=$("$builds/no-tls/redlock" --masters rediss://127.0.0.1:1 status 2>&1) || status=$?
    [ "$status" -eq 64 ] || give_up "rediss:// ends with $status"
    [ "$said" = "$want" ] || give_up "rediss:// says: $said"
    ! ldd "$builds/no-tls/redlock" | grep -E 'lib(ssl|crypto)' || give_up "it needs OpenSSL"
    count 1 0 0
}

step_stranger() {
    as_stranger --suite unit --no-suite compiler
}

step_stranger-all() {
    as_stranger --suite unit --suite live
    configure lto gcc --buildtype=release -Db_lto=true
    tests lto --suite unit --suite live "${not_again[@]}"
}

# as_stranger ARG...: "meson test ARG..." as an ordinary user without capabilities, in a folder with
# blanks, with surroundings that nobody expects.  Nothing may be left behind.
as_stranger() {
    local dir
    dir=$(mktemp -d "/var/tmp/redlock check XXXXXX")
    # shellcheck disable=SC2064 # This folder, and now
    trap "rm -rf '$dir'" EXIT
    mkdir "$dir/tree" "$dir/t m p"
    tracked | tar -C "$root" -c -T - | tar -C "$dir/tree" -x
    root=$dir/tree builds=$dir/builds
    cd "$root" || return
    configure stranger gcc "${compiles_fast[@]}" # The user builds what the tests need.
    if [ "$(id -u)" -eq 0 ]; then
        chmod 755 "$dir"
        chown -R nobody "$dir"
        launcher=(setpriv --reuid=nobody --regid=nogroup --clear-groups --bounding-set=-all)
    fi
    # shellcheck disable=SC2016 # The inner shell's arguments
    launcher+=(env -u HOME TMPDIR="$dir/t m p" MASTERS_PORT=x MASTERS_DIR=/nowhere REDLOCK_MASTERS=nonsense://
        REDLOCK_RESTART_GUARD=soon REDLOCK_TLS_CA=/nowhere REDLOCK_TLS_CERT=/nowhere REDLOCK_TLS_VERIFY=perhaps
        LC_ALL=de_DE.UTF-8 bash -c 'trap "" INT; umask 077; exec "$@"' bash)
    tests stranger "$@"
    [ -z "$(ls -A "$dir/t m p")" ] || give_up "left behind: $(ls -A "$dir/t m p")"
}

step_partition-5() {
    partition_for 300
}

step_partition-30() {
    PARTITION_SEED=${PARTITION_SEED:-$(random_seed)} partition_for 1800
}

# Runs all faults that clients with the clock guard per_vote must survive.
partition_for() {
    local seed=${PARTITION_SEED:-$(version_seed)}
    set_up partition || return 0
    build_gcc
    run_partition "$1" "$seed" --clock-guard per_vote
}

# Plants bugs in real clients, and checks that each is caught.  The table is in the log.
step_teeth() {
    set_up partition || return 0
    one_test_or_skip "partition --teeth" try_as_root partition --teeth --report "$out/teeth"
}

# What caught each planted bug still does.  A run that was interrupted, or whose time was over, goes on.
step_kills() {
    one_test kills nice "$root/test/mutants/kills" --compare --state "$builds/kills"
    note "planted bugs: $(tail -n 1 "$out/kills.log")"
}

# Runs new seeds, which depend on the day.  A run that was interrupted on the same day resumes.
step_seeds() {
    local first last
    build_gcc
    first=$(($(date +%Y%m%d) * 1000000 + 1))
    last=$((first + ${RELEASE_SEEDS:-1000000} - 1))
    SEEDS_JOBS=${SEEDS_JOBS:-1} one_test seeds "$root/scripts/seeds" "$first" "$last"
    note "seeds $first to $last"
}

step_soak() {
    soak_for 60
}

step_soak-120() {
    soak_for 7200
}

soak_for() {
    build_gcc
    one_test soak "$root/scripts/soak" --build "$builds/gcc" --seconds "$1"
    note "$1 s: $(grep -E ' locks, ' "$out/$current.log")"
}

# What programs are compiled against is what abi/libredlock.abi says.
step_abi() {
    set_up abi || return 0
    build_gcc
    one_test abi "$root/scripts/abi" "$builds/gcc"
}

# Debian's packages of this tree, built and tried in chroots.
step_packages() {
    set_up chroots || return 0
    one_test_or_skip packages try_as_root packages
}

# Other systems, compilers and servers.
step_matrix() {
    set_up chroots || return 0
    one_test_or_skip matrix try_as_root matrix
}

# One of them, of which a part is quick.
step_matrix-quick() {
    set_up chroots || return 0
    one_test_or_skip matrix-quick try_as_root matrix --quick trixie-valkey
}

# A cycle has as many instructions and allocations as before.
step_cost() {
    build_gcc
    MASTERS_PORT=${CHECK_COST_PORT:-7401} MASTERS_DIR=$builds/cost-masters \
        one_test_or_skip cost "$root/test/bench/cost" "$builds/gcc"
}
