# memd for bash 5: writes each command with its exit status, duration and folder to a file that memd reads.
# Load it from ~/.bashrc: source <(memd shell init bash). A prompt forks no process, except behind a command with a word
# that can announce a secret, or in such a folder: `memd spool` then stores it in the background, without the secret.
# memd does not capture a command that begins with a space, or matches a glob of MEMD_SHELL_IGNORE, separated by colons.
if [[ $- == *i* && ${BASH_VERSINFO[0]} -ge 5 && -z ${__memd_spool-} ]] && shopt -q promptvars; then
    __memd_flags=$-
    set +a # it would export each function and PS0
    __memd_off=@OFF@
    printf -v __memd_shell '%(%Y%m%dT%H%M%S)T-%s' -1 $$
    __memd_spool=@SPOOL@/bash-$$-$EPOCHSECONDS.lines
    __memd_turn=0 __memd_bytes=0 __memd_pwd= __memd_quarter=-1 __memd_pending= __memd_handed_over=0
    declare -A __memd_heads=()
    declare -a __memd_began=() # bash exports no array
    # bash writes its last line only to a file: use one in memory.
    __memd_line=$(umask 077; mkdir -p @SPOOL@; : >>"$__memd_spool"
        for at in "${XDG_RUNTIME_DIR-}" /dev/shm; do
            [[ -d $at && -w $at ]] && exec mktemp "$at/memd-bash.XXXXXX"
        done)

    __memd_json() {
        local slash='\\' quote='\"' newline='\n' tab='\t'
        __memd_text=${__memd_text//\\/"$slash"}
        __memd_text=${__memd_text//\"/"$quote"}
        __memd_text=${__memd_text//$'\n'/"$newline"}
        __memd_text=${__memd_text//$'\t'/"$tab"}
        __memd_text=${__memd_text//[[:cntrl:]]/ }
    }

    # Pipes lines that may hold a secret to memd, which appends them without it: they are in no other file, and in no
    # argument or environment of a process. The outer subshell leaves jobs and `$!` alone. Argument: seconds to wait.
    __memd_hand_over() {
        __memd_handed_over=$__memd_now
        (
            trap '' HUP INT QUIT
            export -n __memd_text __memd_last __memd_lines_out __memd_pending # after `set -a`
            {
                [[ -z $1 ]] || sleep "$1"
                printf '%s' "$__memd_pending"
            } | @MEMD@ spool --command-limit 10000 "$__memd_spool" &
        ) </dev/null &>/dev/null || :
        __memd_pending=
    }

    # A session belongs to one project for good, so each repository has its own. The head is a format of printf.
    __memd_place() {
        local root=$PWD cwd
        __memd_pwd=$PWD __memd_known=
        while [[ -n $root && ! -e $root/.git && ! -e $root/.memd-id ]]; do
            root=${root%/*}
        done
        __memd_text=$PWD
        __memd_json
        cwd=$__memd_text __memd_text=$__memd_shell${root:+:$root}
        __memd_json
        __memd_session=$__memd_text
        __memd_head='{"request":"capture","origin":{"host":"bash","session":"'$__memd_session'","cwd":"'$cwd
        __memd_head=${__memd_head//\\/\\\\}
        __memd_head=${__memd_head//%/%%}'"},"events":[{"event":'
        case ${PWD,,} in @CLUES@) __memd_place_announces=1 ;; *) __memd_place_announces= ;; esac
    }

    # In every time zone the hour and the offset are constant within a quarter of an hour.
    __memd_clock() {
        local at
        __memd_quarter=$((__memd_began / 900000000))
        printf -v at '%(%Y-%m-%dT%H:%M%z)T' $((__memd_quarter * 900))
        __memd_minute=$((10#${at:14:2}))
        __memd_ran='"ran","turn":"%d","at":"'${at:0:14}'%02d:%02d'${at:16:3}:${at: -2}
        __memd_ran+='","command":"%s","exit_status":%d,"duration_ms":%d}]}\n'
    }

    # Reads the last line of history as it was typed, behind its number.
    __memd_read() {
        if [[ -z $__memd_line ]]; then
            mapfile -t __memd_lines <<<"$(HISTTIMEFORMAT='' builtin history 1)"
        else
            HISTTIMEFORMAT='' builtin history 1 >|"$__memd_line"
            mapfile -t __memd_lines <"$__memd_line"
        fi
    }

    # Whether memd is disabled, or the line matches MEMD_SHELL_IGNORE.
    __memd_withheld() {
        [[ -z ${MEMD_DISABLED-} || $MEMD_DISABLED == @(0|[Nn][Oo]|[Oo][Ff][Ff]|[Ff][Aa][Ll][Ss][Ee]) ]] || return 0
        local pattern
        local -a patterns
        IFS=: read -r -a patterns <<<"${MEMD_SHELL_IGNORE-}"
        for pattern in "${patterns[@]}"; do
            [[ $__memd_text == $pattern ]] && return 0
        done
        return 1
    }

    # Whether memd has been down for long: further commands are not written.
    __memd_full() {
        [[ -s $__memd_spool ]] || __memd_bytes=0
        ((__memd_bytes))
    }

    # One function without locals, and rare work elsewhere: bash copies a function at each call.
    __memd_prompt() {
        __memd_status=$?
        if [[ -n ${__memd_began-} ]]; then
            __memd_now=${EPOCHREALTIME/[.,]/}
            if [[ -z $__memd_line || -v HISTTIMEFORMAT ]]; then
                __memd_read
            else
                builtin history 1 >|"$__memd_line"
                mapfile -t __memd_lines <"$__memd_line"
            fi
            __memd_text=${__memd_lines-}
            ((${#__memd_lines[@]} < 2)) || printf -v __memd_text '\n%s' "${__memd_lines[@]}"
            # Writes no line that could be one that history leaves out.
            if [[ $__memd_text != "${__memd_last-}" ||
                (-o history && ":${HISTCONTROL-}:" != *:ignore[sb]* && -z ${HISTIGNORE-}) ]]; then
                __memd_last=$__memd_text
                __memd_text=${__memd_text#*[0-9][ *] }
                if [[ $__memd_text == [![:space:]]* && $__memd_text != *'<'[Pp]rivate* && ! -e $__memd_off ]] &&
                    { [[ -z ${MEMD_DISABLED-}${MEMD_SHELL_IGNORE-} ]] || ! __memd_withheld; } &&
                    { (((__memd_bytes += ${#__memd_text} + 300) < 4000000)) || ! __memd_full; }; then
                    ((${#__memd_text} > 10000)) && __memd_text=${__memd_text:0:100000}
                    case ${__memd_text,,} in
                        @CLUES@) __memd_announces=1 ;;
                        *) __memd_announces=$__memd_place_announces __memd_text=${__memd_text:0:10000} ;;
                    esac
                    [[ $__memd_text == *[\\\"[:cntrl:]]* ]] && __memd_json
                    ((__memd_began / 900000000 == __memd_quarter)) || __memd_clock
                    printf -v __memd_lines_out "$__memd_head$__memd_ran" $((++__memd_turn)) \
                        $((__memd_began / 60000000 % 15 + __memd_minute)) $((__memd_began / 1000000 % 60)) \
                        "$__memd_text" "$__memd_status" $(((__memd_now - __memd_began) / 1000))
                    if [[ -z $__memd_announces ]]; then # a full disk must not end a shell with `set -e`
                        printf '%s' "$__memd_lines_out" 2>&- >>"$__memd_spool" || :
                    else
                        __memd_pending+=$__memd_lines_out
                    fi
                    # Pasted commands share a process: one begins in a second.
                    [[ -z $__memd_pending ]] || ((__memd_now - __memd_handed_over < 1000000)) || __memd_hand_over ''
                    [[ -n $__memd_known ]] || __memd_known=1 __memd_heads[$__memd_session]=$__memd_head
                fi
            fi
            __memd_began=
        elif [[ ! -v __memd_last ]]; then
            __memd_read # the line before this shell started
            __memd_last=${__memd_lines-}
            ((${#__memd_lines[@]} < 2)) || printf -v __memd_last '\n%s' "${__memd_lines[@]}"
        fi
        [[ $PWD == "$__memd_pwd" ]] || __memd_place # the folder of the next command
        [[ $- != *a* ]] || export -n "${!__memd_@}" # `set -a` would give the command to the next program
        return $__memd_status
    }

    # The end of a session comes behind its last command, which memd may still have to write.
    __memd_leave() {
        local head at
        __memd_lines_out=
        printf -v at '%(%Y-%m-%dT%H:%M:%S%z)T' -1
        for head in "${__memd_heads[@]}"; do
            head+='"session_ended","turn":"session-end","at":"%s","reason":"exit"}]}\n'
            printf -v head "$head" "${at:0:-2}:${at: -2}"
            __memd_lines_out+=$head
        done
        [[ -n $__memd_line ]] && rm -f "$__memd_line"
        if [[ -z $__memd_pending ]] && ((!__memd_handed_over)); then
            printf '%s' "$__memd_lines_out" 2>/dev/null >>"$__memd_spool"
        else
            __memd_pending+=$__memd_lines_out
            __memd_hand_over 5
        fi
    }

    __memd_recall() {
        if [[ -n $READLINE_LINE ]]; then
            @MEMD@ recall --limit 5 -- "$READLINE_LINE"
        else
            echo 'memd: type a few words first'
        fi
    }

    [[ -z $(trap -p EXIT) ]] && trap __memd_leave EXIT
    bind -x "\"${MEMD_SHELL_KEY:-\C-xk}\": __memd_recall" 2>/dev/null
    # Evaluated in this shell before a command runs; it expands to nothing.
    PS0=${PS0-}'${__memd_none[__memd_began=${EPOCHREALTIME/[.,]/},1]-}'
    # bash 5.0 runs only the first entry of an array.
    PROMPT_COMMAND[0]=__memd_prompt${PROMPT_COMMAND[0]:+$'\n'${PROMPT_COMMAND[0]}}
    [[ $__memd_flags != *a* ]] || set -a
fi
