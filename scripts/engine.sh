# shellcheck shell=bash
#
# engine.sh - a Docker engine, the image, and the five masters of
# docker-compose.yml.  Sourced after lib.sh, never run.
#
# Uses a running engine, or starts one, which leaves this machine's network settings alone.
# If the image cannot be pulled, makes one with debootstrap.  The sourcing script sets
#
#   dir          the folder of the engine's files
#   log          the file of all output
#   project      the name of these containers in compose
#   base_port    the port of the first master; REDLOCK_PORT_1 to _5 override the ports
#
# and calls stop_all in the end, in every case.

# shellcheck disable=SC2154 # The sourcing script sets them.
local_image=$project:local
image_file=$root/build-check/redis-image.tar
services=(redis-1 redis-2 redis-3 redis-4 redis-5)
ports=()

engine_is_ours=no
image_is_ours=no
cluster_is_up=no
engine_run= # The folder of our engine's sockets (choose_engine_folders).

skip() {
    say "=================================================================="
    say "SKIPPED: $*"
    say "=================================================================="
    exit 77
}

fail() {
    say "FAILED: $*"
    say "the last lines of $log:"
    tail -n 20 "$log" >&2
    exit 1
}

# Run a command with its output in the log.
logged() {
    echo "+ $*" >>"$log"
    "$@" >>"$log" 2>&1
}

# --- the engine -------------------------------------------------------------

engine_answers() {
    [ -n "$(timeout 20 docker info --format '{{.ServerVersion}}' 2>/dev/null)" ]
}

# The name of a Unix socket has at most 107 bytes, and the engine appends about 35 to its folder.
# So a deep checkout gets a folder in /tmp.
choose_engine_folders() {
    engine_run=$dir/run
    if [ ${#engine_run} -gt 70 ]; then
        engine_run=/tmp/redlock-engine-$(id -u)-$(cksum <<<"$dir" | cut -d ' ' -f 1)
    fi
    mkdir -p "$engine_run"
    if [ -L "$engine_run" ] || [ ! -O "$engine_run" ]; then
        fail "$engine_run belongs to another user"
    fi
}

# Print the pid that file $1 holds, if that process runs and this script started it: then our
# folder is in its arguments.
engine_pid() {
    local pid
    pid=$(as_root cat "$1" 2>/dev/null) || return 0
    [[ $pid =~ ^[0-9]+$ ]] && alive "$pid" || return 0
    as_root tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF "$engine_run" || return 0
    echo "$pid"
}

ended() {
    ! alive "$1"
}

end_process() {
    local pid=$1
    as_root kill -TERM "$pid" 2>/dev/null || true
    wait_for 30 ended "$pid" && return 0
    say "process $pid ignores SIGTERM; sending SIGKILL"
    as_root kill -KILL "$pid" 2>/dev/null || true
    wait_for 10 ended "$pid" || say "process $pid survives SIGKILL"
}

# End our engine and the containerd that it may have left.  Then unmount and remove their folders.
# Does nothing if there was no engine.
remove_engine() {
    local pidfile pid mount
    for pidfile in "$engine_run/dockerd.pid" "$engine_run/exec/containerd/containerd.pid"; do
        pid=$(engine_pid "$pidfile")
        [ -z "$pid" ] || end_process "$pid"
    done
    while read -r _ mount _; do
        case $mount in
        "$engine_run"/* | "$dir/data" | "$dir/data"/*) as_root umount -l "$mount" || true ;;
        esac
    done < <(tac /proc/self/mounts)
    [ ! -e "$engine_run" ] || as_root rm -rf "$engine_run"
    [ ! -e "$dir/data" ] || as_root rm -rf "$dir/data"
}

# Start dockerd with the given arguments.  It must not change this machine.  Without these options
# it would change the packet filter (a FORWARD policy of DROP, address translation), turn on
# routing, and make docker0.  Published ports on the loopback need none of these: dockerd's own
# proxy serves them.  Its networks come from 198.18.0.0/15, reserved for benchmarks (RFC 2544),
# so that they hide no private range in use here.
start_engine() {
    local pid
    mkdir -p "$engine_run"
    as_root setsid dockerd --data-root "$dir/data" --exec-root "$engine_run/exec" \
        --pidfile "$engine_run/dockerd.pid" -H "unix://$engine_run/docker.sock" \
        --group "$(id -gn)" --bridge=none --iptables=false --ip6tables=false \
        --ip-forward=false --ip-masq=false \
        --default-address-pool base=198.18.128.0/18,size=24 "$@" \
        </dev/null >>"$dir/dockerd.log" 2>&1 &
    pid=$!
    wait_for 40 engine_answers_or_ended "$pid"
    engine_answers
}

engine_answers_or_ended() {
    ! alive "$1" || engine_answers
}

# Even if dockerd answers, a container may fail to run: only now are mounts and control groups
# needed.  The image can hold any static program.
engine_runs_containers() {
    local probe=$dir/probe
    rm -rf "$probe"
    mkdir -p "$probe"
    printf 'int main(void) { return 42; }\n' | gcc -static -x c -o "$probe/probe" - || return 1
    tar -C "$probe" -c probe | logged docker import - "$project:probe" || return 1
    local status=0
    logged timeout 60 docker run --rm --network none "$project:probe" /probe || status=$?
    logged docker image rm "$project:probe" || true
    [ "$status" -eq 42 ]
}

last_complaint() {
    local line
    line=$(grep -E 'level=(error|fatal)|failed' "$dir/dockerd.log" | tail -n 1) || true
    [ -n "$line" ] || line=$(tail -n 1 "$dir/dockerd.log")
    echo "${line:-says nothing}"
}

have_engine() {
    local storage
    if engine_answers; then
        say "using the engine that runs already"
        return
    fi
    say "starting an engine"
    choose_engine_folders
    export DOCKER_HOST=unix://$engine_run/docker.sock
    # An earlier run that was killed may have left its engine and containers running.
    ! engine_answers || stop_cluster || true
    remove_engine
    engine_is_ours=yes
    # Some sandboxes forbid overlay2.  vfs copies all files, and works everywhere.
    for storage in overlay2 vfs; do
        if start_engine "--storage-driver=$storage" && engine_runs_containers; then
            return
        fi
        say "storage driver $storage does not work here"
        remove_engine
    done
    skip "no engine can run here; dockerd: $(last_complaint) (see $dir/dockerd.log and $log)"
}

# --- the image --------------------------------------------------------------

# Make an image with Debian's redis-server, and keep its file.
make_image() {
    local tree=$dir/tree
    mkdir -p "$(dirname "$image_file")"
    if [ ! -e "$image_file" ]; then
        say "making an image with debootstrap (about a minute)"
        as_root rm -rf "$tree"
        logged as_root debootstrap --variant=minbase --include=redis-server trixie "$tree" \
            "${DEBOOTSTRAP_MIRROR:-http://deb.debian.org/debian}" || return 1
        as_root tar -C "$tree" -c --exclude=./var/cache/apt --exclude=./var/lib/apt/lists . \
            >"$image_file.new" || return 1
        as_root rm -rf "$tree"
        mv "$image_file.new" "$image_file"
    fi
    image_is_ours=yes
    logged docker import "$image_file" "$local_image"
}

have_image() {
    local image=${REDIS_IMAGE:-redis:7}
    if logged docker image inspect "$image" || logged timeout 180 docker pull "$image"; then
        say "image: $image"
    elif [ -n "${REDIS_IMAGE:-}" ]; then
        fail "image $image can be neither found nor pulled"
    else
        say "image $image cannot be pulled"
        make_image || skip "no image can be pulled here, and none be made; see $log"
        image=$local_image
    fi
    export REDIS_IMAGE=$image
}

# --- the cluster ------------------------------------------------------------

compose() {
    local -a command=(docker-compose)
    ! docker compose version >/dev/null 2>&1 || command=(docker compose)
    "${command[@]}" -p "$project" -f "$root/docker-compose.yml" "$@"
}

choose_ports() {
    local i name
    for i in 1 2 3 4 5; do
        name=REDLOCK_PORT_$i
        # shellcheck disable=SC2154 # The sourcing script sets it.
        export "$name=${!name:-$((base_port + i - 1))}"
        ports+=("${!name}")
    done
    REDLOCK_MASTERS=$(printf ',127.0.0.1:%s' "${ports[@]}")
    export REDLOCK_MASTERS=${REDLOCK_MASTERS#,}
}

# Asks docker, because the containers that `compose ps` shows depend on its version.
container_of() {
    docker ps -aq --filter "label=com.docker.compose.project=$project" \
        --filter "label=com.docker.compose.service=$1"
}

# is_in_state SERVICE STATE: the container is healthy, paused or exited.
is_in_state() {
    local state
    state=$(docker inspect -f '{{.State.Status}} {{.State.Health.Status}}' \
        "$(container_of "$1")" 2>/dev/null) || return 1
    case $2 in
    healthy) [ "$state" = "running healthy" ] ;;
    *) [ "${state%% *}" = "$2" ] ;;
    esac
}

await_state() {
    local state=$1 service
    shift
    for service in "$@"; do
        wait_for 90 is_in_state "$service" "$state" || fail "$service does not become $state"
    done
}

start_cluster() {
    logged compose down -v --remove-orphans -t 5 || true
    cluster_is_up=yes
    logged compose up -d || fail "compose up"
    await_state healthy "${services[@]}"
    say "five masters are up and healthy on ports ${ports[*]}"
}

# Remove the cluster by its name.  Fails if anything with that name is left.
stop_cluster() {
    local label=com.docker.compose.project=$project left
    logged compose down -v --remove-orphans -t 5 || true
    left=$(
        docker ps -aq --filter "label=$label"
        docker volume ls -q --filter "label=$label"
        docker network ls -q --filter "label=$label"
    )
    [ -z "$left" ] || {
        say "left behind: $left"
        return 1
    }
}

# Remove cluster, image and engine, in any state.  Fails if something of the cluster is left.
stop_all() {
    local status=0
    if [ "$cluster_is_up" = yes ]; then
        stop_cluster || status=1
        cluster_is_up=no
    fi
    if [ "$image_is_ours" = yes ]; then
        logged docker image rm "$local_image" || true
        image_is_ours=no
    fi
    if [ "$engine_is_ours" = yes ]; then
        remove_engine
        engine_is_ours=no
    fi
    return "$status"
}
