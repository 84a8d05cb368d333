# shellcheck shell=bash
#
# Completion of redlock(1) for bash.  bash-completion loads this file when it is needed.  It can also
# be sourced by hand.  Names of locks are not completed: only the masters know them, and pressing a
# key must not query masters.

# The options come from the command itself: `redlock help options`.

declare -gA _redlock_options=() # By the command as it was typed: what it printed.

# Ask the command, once.  One that cannot be run has no options.
_redlock_ask() {
    [[ -n ${_redlock_options[$1]-} ]] || _redlock_options[$1]=$("$1" help options 2>/dev/null) || true
}

# Print the names of all commands.
_redlock_commands() {
    cut -d " " -f 1 <<<"${_redlock_options[$1]-}" | grep -v -- - | sort -u
}

# Print the rows of a command, or those of all commands if there is none yet.
_redlock_rows() {
    local row
    while read -r row; do
        [[ $row != "${2:--} "* ]] || echo "${row#* }"
    done <<<"${_redlock_options[$1]-}"
}

# Print the row of one option.  Before the command, one of any command: it is refused there, with advice.
_redlock_row() {
    local command option rest
    while read -r command option rest; do
        [[ $option != "$3" || ($command != "$2" && -n $2) ]] || { echo "$rest" && return; }
    done <<<"${_redlock_options[$1]-}"
}

# True: the next word is the value of option $3 of command $2.
_redlock_takes_value() {
    local row
    row=$(_redlock_row "$@")
    [[ -n $row && $row != -* ]]
}

# Offer values of option $3 of command $2, that begin with $4.
_redlock_complete_value() {
    local argument words
    read -r argument words <<<"$(_redlock_row "${@:1:3}")"
    if [[ $words == FILE ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$4")
    elif [[ -n $argument && -n $words ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$4")
    fi
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
    local self=${COMP_WORDS[0]} command="" names=0 i
    COMPREPLY=()
    _redlock_ask "$self"
    # readline splits "--ttl=5s" into three words.
    if [[ $word == "=" ]]; then
        word=""
    elif [[ $before == "=" ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if _redlock_takes_value "$self" "$command" "${COMP_WORDS[i]}"; then
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
    if _redlock_takes_value "$self" "$command" "$before"; then
        _redlock_complete_value "$self" "$command" "$before" "$word"
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_redlock_rows "$self" "$command" | cut -d ' ' -f 1)" -- "$word")
    elif [[ -z $command || ($command == help && $names -eq 0) ]]; then
        mapfile -t COMPREPLY < <(compgen -W "help $(_redlock_commands "$self")" -- "$word")
    elif [[ $command == members ]] && ((names == 0)); then
        mapfile -t COMPREPLY < <(compgen -W "add remove replace rescue" -- "$word")
    elif [[ $command == run ]] && ((names > 0)); then
        COMPREPLY=(--)
    fi
}

complete -F _redlock redlock
