# shellcheck shell=bash
#
# Completion of redlock(1) for bash.  bash-completion loads this file when it is needed.  It can also
# be sourced by hand.  Names of locks are not completed: only the masters know them, and pressing a
# key must not query masters.

_redlock_commands="acl bench doctor extend help init list lock members run status unlock"
_redlock_options="--clock-guard --connect-timeout --help --json --masters --masters-file --max-ttl
    --reply-timeout --restart-guard --tls-ca --tls-cert --tls-key --tls-server-name --tls-verify
    --verbose --version"

# Print the options of a command, without those of all commands.
_redlock_own_options() {
    case $1 in
    acl) echo --fair --fence --names --permits --shared --user ;;
    bench) echo --contend --cycles --fair --fence --hold-ms --in-flight --mode --note --permits --reentrant \
        --resources --shared --threads ;;
    doctor) echo --fair --fence --names --permits --shared ;;
    extend) echo --permits --shared --ttl ;;
    init) echo --new ;;
    list) echo --all --watch ;;
    lock) echo --fair --fence --note --permits --shared --ttl --wait ;;
    members) echo --dry-run --even --i-know-what-is-lost ;;
    run) echo --fair --fence --hold-at-least --hold-at-most --note --permits --shared --ttl --wait ;;
    status) echo --clocks --prometheus ;;
    unlock) echo --force --now --permit --permits --reason --shared --yes ;;
    esac
}

# True: the next word is the value of option $1 of command $2.
_redlock_takes_value() {
    case $2:$1 in
    acl:--permits | doctor:--permits) return 1 ;;
    esac
    case $1 in
    --clock-guard | --connect-timeout | --contend | --cycles | --hold-at-least | --hold-at-most | \
        --hold-ms | --i-know-what-is-lost | --in-flight | --masters | --masters-file | --max-ttl | --mode | --names | --note | \
        --permit | --permits | --reason | --reply-timeout | --resources | --restart-guard | --threads | --tls-ca | --tls-cert | --tls-key | --tls-server-name | --tls-verify | --ttl | --user | \
        --wait) return 0 ;;
    *) return 1 ;;
    esac
}

_redlock_complete_value() {
    case $1 in
    --masters-file | --tls-ca | --tls-cert | --tls-key) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    --mode) mapfile -t COMPREPLY < <(compgen -W "loop blocking" -- "$2") ;;
    --clock-guard) mapfile -t COMPREPLY < <(compgen -W "off periodic per_vote" -- "$2") ;;
    --tls-verify) mapfile -t COMPREPLY < <(compgen -W "full none" -- "$2") ;;
    --restart-guard) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$2") ;;
    --hold-at-least | --hold-at-most) mapfile -t COMPREPLY < <(compgen -W "1m 10m 1h" -- "$2") ;;
    --ttl | --max-ttl) mapfile -t COMPREPLY < <(compgen -W "5s 10s 30s 60s" -- "$2") ;;
    --wait) mapfile -t COMPREPLY < <(compgen -W "0 10s 1m forever" -- "$2") ;;
    esac
}

# Complete the command of `redlock run NAME --`, from word $1 on, as if it stood alone.
_redlock_complete_command() {
    local first=$1
    if declare -F _comp_command_offset >/dev/null; then # bash-completion 2.12 and later
        _comp_command_offset "$first"
    elif declare -F _command_offset >/dev/null; then
        _command_offset "$first"
    elif ((COMP_CWORD == first)); then
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
    fi
}

_redlock() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local command="" names=0 i
    COMPREPLY=()
    # readline splits "--ttl=5s" into three words.
    if [[ $word == "=" ]]; then
        word=""
    elif [[ $before == "=" ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if _redlock_takes_value "${COMP_WORDS[i]}" "$command"; then
            i=$((i + 1))
            [[ ${COMP_WORDS[i]} != "=" ]] || i=$((i + 1))
        elif [[ ${COMP_WORDS[i]} == -- && $command == run ]] && ((names > 0)); then
            _redlock_complete_command $((i + 1))
            return
        elif [[ ${COMP_WORDS[i]} != -* ]]; then
            if [[ -z $command ]]; then
                command=${COMP_WORDS[i]}
            else
                names=$((names + 1))
            fi
        fi
    done
    if _redlock_takes_value "$before" "$command"; then
        _redlock_complete_value "$before" "$word"
    elif [[ $word == -* ]]; then
        local options=$_redlock_options
        [[ $command != run ]] || options=${options/--json/} # Its output is that of the command.
        mapfile -t COMPREPLY < <(compgen -W "$options $(_redlock_own_options "$command")" -- "$word")
    elif [[ -z $command || ($command == help && $names -eq 0) ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$_redlock_commands" -- "$word")
    elif [[ $command == members ]] && ((names == 0)); then
        mapfile -t COMPREPLY < <(compgen -W "add remove replace rescue" -- "$word")
    elif [[ $command == run ]] && ((names > 0)); then
        COMPREPLY=(--)
    fi
}

complete -F _redlock redlock
