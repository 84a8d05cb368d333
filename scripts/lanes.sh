# shellcheck shell=bash
#
# lanes.sh - how scripts/check runs its steps in parallel, and reports them.
# Sourced by it, never run.
#
# Each step belongs to a lane.  The steps of one lane run one after the other; the lanes run in
# parallel.  A step is a process with a time limit and a log.  It leaves its counts and notes in two
# small files.  Steps are reported in the order of the list, so that the output always looks the
# same.
#
# The running steps and the estimated time are shown: on a terminal in a line that is kept up to
# date, elsewhere in a new line whenever a step has ended.  The estimate for a step is the time
# that it took when it last passed.
#
# The sourcing script sets out, the folder for all that; step_s, the time limit; lane_of STEP, which
# prints the name of its lane ("last": runs when all others have ended); usual_s, the seconds of
# each step until it has been timed.

: "${out:?}" "${step_s:?}"

declare -A usual_s
declare -A running=() # The steps that run now, by the pid of their attend process.
declare -A busy=()    # The lanes that they are in.
declare -A begun=()   # The start of each step, by name.
declare -A ended=()   # The exit status and the seconds of each step that has ended.
total_passed=0 total_failed=0 total_skipped=0
failures=() # A line for each step that failed.

# A signal may come before a new process is in running; it is among the jobs already.
end_running() {
    local -a pids
    mapfile -t pids < <(jobs -p)
    ((${#pids[@]} == 0)) || { kill -TERM "${pids[@]}" && wait "${pids[@]}"; } 2>/dev/null || true
}

# ---- What is under way ----

usual_of() {
    cat "$out/$1.seconds" 2>/dev/null || echo "${usual_s[$1]:-60}"
}

# left_s NOW: the estimated seconds until the slowest lane and then the last steps have ended.
left_s() {
    local now=$1 name lane left most=0
    local -A lanes=()
    for name in "${running[@]}" "${waiting[@]}"; do
        lane=$(lane_of "$name")
        left=$(($(usual_of "$name") - now + ${begun[$name]:-$now}))
        ((left > 0)) || left=0
        lanes[$lane]=$((${lanes[$lane]:-0} + left))
    done
    for lane in "${!lanes[@]}"; do
        [ "$lane" = last ] || ((lanes[$lane] <= most)) || most=${lanes[$lane]}
    done
    echo $((most + ${lanes[last]:-0}))
}

under_way() {
    local name text=
    for name in $(printf '%s\n' "${running[@]}" | sort); do
        text+="${text:+, }$name ($((SECONDS - begun[$name])) s of about $(usual_of "$name"))"
    done
    printf 'running %s; %d to come; about %d min left' "$text" ${#waiting[@]} $(($(left_s "$SECONDS") / 60 + 1))
}

clear_line() {
    [ ! -t 1 ] || printf '\r\033[K'
}

show() {
    if [ -t 1 ]; then
        printf '\r\033[K%.*s' $(($(tput cols 2>/dev/null || echo 80) - 1)) "$(under_way)"
    else
        echo "      $(under_way)"
    fi
}

# Wait for one of the steps to end: set pid and status.  On a terminal the line is kept up to date.
await_one() {
    local clock=
    while true; do
        show
        if [ -t 1 ]; then
            sleep 1 >/dev/null 9>&- &
            clock=$!
        fi
        status=0
        wait -n -p pid "${!running[@]}" $clock || status=$?
        [ "$pid" = "$clock" ] || break
    done
    [ -z "$clock" ] || wait "$clock" # Else a later wait takes it for a step.
    clear_line
}

# ---- The steps ----

# Run these steps, print a line for each, and add up the totals.
run_steps() {
    local pid name status
    local -a waiting=("$@") untold=("$@")
    begin_what_can
    while ((${#running[@]} > 0)); do
        await_one
        name=${running[$pid]}
        unset "running[$pid]" "busy[$(lane_of "$name")]"
        ended[$name]="$status $((SECONDS - begun[$name]))"
        begin_what_can
        tell_what_can
    done
}

# Begin the first waiting step of each idle lane.
begin_what_can() {
    local name lane
    local -a rest=()
    for name in "${waiting[@]}"; do
        lane=$(lane_of "$name")
        if [ -n "${busy[$lane]:-}" ] || { [ "$lane" = last ] && ((${#running[@]} > 0)); }; then
            rest+=("$name")
        else
            busy[$lane]=$name
            begin "$name"
        fi
    done
    waiting=("${rest[@]}")
}

begin() {
    local name=$1
    rm -f "$out/$name".{count,note,log}
    touch "$out/$name".{count,note}
    begun[$name]=$SECONDS
    attend "$name" >"$out/$name.log" 2>&1 </dev/null 9>&- &
    running[$!]=$name
}

# A separate process that ends with the status of the step, but never by a signal: `wait -n` may
# miss a process that a signal ends.  The log ends with the processor time of the step.
attend() {
    local child status=0 told=
    trap - EXIT
    trap 'told=1' TERM # A signal may come before the child is known.
    timeout --kill-after=20 "$step_s" "$0" --step "$1" &
    child=$!
    trap 'kill -TERM "$child"; wait "$child" || true' TERM
    [ -z "$told" ] || kill -TERM "$child"
    wait "$child" || status=$?
    echo "processor time, user and system, of this shell and of the step:"
    times
    exit "$status"
}

# Report each ended step once all steps before it are reported.
tell_what_can() {
    local name status took
    while ((${#untold[@]} > 0)) && [ -n "${ended[${untold[0]}]:-}" ]; do
        name=${untold[0]}
        untold=("${untold[@]:1}")
        read -r status took <<<"${ended[$name]}"
        tell "$name" "$status" "$took"
    done
}

# tell STEP STATUS SECONDS: print the line of the step, and add its counts to the totals.
tell() {
    local name=$1 status=$2 took=$3 passed=0 failed=0 skipped=0 p f s verdict notes
    while read -r p f s; do
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    done <"$out/$name.count"
    if ((status != 0)); then
        failed=$((failed + 1)) # The step itself counts as one failure.
        [ "$status" -ne 124 ] || echo "not done after $step_s s" >>"$out/$name.note"
    elif ((passed + failed + skipped == 0)); then
        echo "nothing was tested" >>"$out/$name.note"
        failed=1
    fi
    verdict=ok
    ((skipped == 0 || passed > 0)) || verdict=SKIP
    ((failed == 0)) || verdict=FAIL
    notes=$(sed 's/^/; /' "$out/$name.note" | tr -d '\n')
    printf '%-4s  %-10s %4d s  %3d passed, %d failed, %d skipped%s\n' "$verdict" "$name" "$took" \
        "$passed" "$failed" "$skipped" "$notes"
    ((failed == 0)) || failures+=("failed: $name: $failed$notes")
    ((failed > 0 || passed == 0)) || echo "$took" >"$out/$name.seconds"
    if ((failed > 0)) || grep -q unsteady: "$out/$name.note"; then
        echo "----- the end of $out/$name.log"
        tail -n 60 "$out/$name.log" | cut -c 1-160
        echo "-----"
    fi
    total_passed=$((total_passed + passed))
    total_failed=$((total_failed + failed))
    total_skipped=$((total_skipped + skipped))
}
