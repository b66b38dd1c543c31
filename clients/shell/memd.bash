# memd for bash 5: each command with its exit status, duration and folder, left for memd in a file of its own.
# Load it from ~/.bashrc: source <(memd shell init bash). Nothing is forked by a prompt. A command that begins with a
# space, or matches a pattern of MEMD_SHELL_IGNORE (globs, separated by colons), stays with you.
if [[ $- == *i* && ${BASH_VERSINFO[0]} -ge 5 && -z ${__memd_spool-} ]] && shopt -q promptvars; then
    __memd_off=@OFF@
    printf -v __memd_shell '%(%Y%m%dT%H%M%S)T-%s' -1 $$
    __memd_spool=@SPOOL@/bash-$$-$EPOCHSECONDS.lines
    __memd_turn=0 __memd_bytes=0 __memd_pwd= __memd_root= __memd_ignored=
    declare -A __memd_sessions=()
    declare -a __memd_ignore=()
    # bash gives its last line to nobody but a file: one in memory.
    __memd_line=$(umask 077; mkdir -p @SPOOL@; : >>"$__memd_spool"
        for at in "${XDG_RUNTIME_DIR-}" /dev/shm; do
            [[ -d $at && -w $at ]] && exec mktemp "$at/memd-bash.XXXXXX"
        done)

    __memd_json() {
        REPLY=$1
        [[ $REPLY == *[\\\"[:cntrl:]]* ]] || return 0
        local slash='\\' quote='\"' newline='\n' tab='\t'
        REPLY=${REPLY//\\/"$slash"}
        REPLY=${REPLY//\"/"$quote"}
        REPLY=${REPLY//$'\n'/"$newline"}
        REPLY=${REPLY//$'\t'/"$tab"}
        REPLY=${REPLY//[[:cntrl:]]/ }
    }

    # name, group of the secret (0: all but the first group), regex; works on `text`.
    __memd_rule() {
        local rest=$text out= match kept
        while [[ $rest =~ $3 ]]; do
            match=${BASH_REMATCH[0]}
            if (($2)); then
                kept=${match%"${BASH_REMATCH[$2]}"*}[redacted:$1]${match##*"${BASH_REMATCH[$2]}"}
            else
                kept=${BASH_REMATCH[1]}[redacted:$1]
            fi
            out+=${rest%%"$match"*}$kept
            rest=${rest#*"$match"}
        done
        text=$out$rest
    }

    __memd_redact() {
        text=$1
        local folded=${1,,}
        case $folded in @CLUES@) ;; *) return 0 ;; esac
        local LC_ALL=C
@RULES@
    }

    # A session belongs to one project for good: each repository has its own.
    __memd_place() {
        __memd_pwd=$PWD __memd_root=$PWD
        while [[ -n $__memd_root && ! -e $__memd_root/.git && ! -e $__memd_root/.memd-id ]]; do
            __memd_root=${__memd_root%/*}
        done
        __memd_json "$PWD"
        __memd_cwd=$REPLY
        __memd_json "$__memd_shell${__memd_root:+:$__memd_root}"
        __memd_session=$REPLY
    }

    __memd_ignores() {
        if [[ ${MEMD_SHELL_IGNORE-} != "$__memd_ignored" ]]; then
            __memd_ignored=${MEMD_SHELL_IGNORE-}
            IFS=: read -r -a __memd_ignore <<<"$__memd_ignored"
        fi
        local pattern
        for pattern in "${__memd_ignore[@]}"; do
            [[ $1 == $pattern ]] && return 0
        done
        return 1
    }

    # The last line as it was typed, in `line`. Nothing where it can't be told from one that history was to leave out.
    __memd_typed() {
        if [[ -z $__memd_line ]]; then
            line=$(HISTTIMEFORMAT='' builtin history 1)
        else
            if [[ -v HISTTIMEFORMAT ]]; then
                HISTTIMEFORMAT='' builtin history 1 >|"$__memd_line"
            else
                builtin history 1 >|"$__memd_line"
            fi
            IFS= read -r -d '' line <"$__memd_line"
        fi
        if [[ $line == "${__memd_last-}" && (":${HISTCONTROL-}:" == *:ignore[sb]* || -n ${HISTIGNORE-}) ]]; then
            return 1
        fi
        __memd_last=$line
        line=${line#*[0-9][ *] }
        line=${line%$'\n'}
        [[ -n $line && $line != [[:space:]]* ]]
    }

    __memd_prompt() {
        local status=$? began=${__memd_began-} line
        __memd_began=
        [[ -v __memd_last ]] || __memd_typed # what stood there before this shell
        [[ -z $began ]] || __memd_tell "$status"
        [[ $PWD == "$__memd_pwd" ]] || __memd_place # where the next command begins
        return $status
    }

    __memd_tell() {
        local status=$1
        [[ -z ${MEMD_DISABLED-} || $MEMD_DISABLED == @(0|[Nn][Oo]|[Oo][Ff][Ff]|[Ff][Aa][Ll][Ss][Ee]) ]] || return
        local text at now=${EPOCHREALTIME/[.,]/}
        __memd_typed && [[ ! -e $__memd_off && $line != *'<'[Pp]rivate* ]] || return
        [[ -n ${MEMD_SHELL_IGNORE-} ]] && __memd_ignores "$line" && return
        if ((__memd_bytes > 4000000)); then # memd has been down for long: what is more than this is not kept
            [[ -s $__memd_spool ]] && return
            __memd_bytes=0
        fi
        __memd_redact "${line:0:10000}"
        __memd_json "$text"
        printf -v at '%(%Y-%m-%dT%H:%M:%S%z)T' $((began / 1000000))
        __memd_sessions[$__memd_session]=$__memd_cwd __memd_bytes=$((__memd_bytes + ${#REPLY} + 300))
        printf "$__memd_head"'"ran","turn":"%d","at":"%s","command":"%s","exit_status":%d,"duration_ms":%d}]}\n' \
            "$__memd_session" "$__memd_cwd" $((++__memd_turn)) "${at:0:-2}:${at: -2}" "$REPLY" "$status" \
            $(((now - began) / 1000)) 2>/dev/null >>"$__memd_spool"
    }

    __memd_head='{"request":"capture","origin":{"host":"bash","session":"%s","cwd":"%s"},"events":[{"event":'

    __memd_leave() {
        local at
        printf -v at '%(%Y-%m-%dT%H:%M:%S%z)T' -1
        for __memd_session in "${!__memd_sessions[@]}"; do
            printf "$__memd_head"'"session_ended","turn":"session-end","at":"%s","reason":"exit"}]}\n' \
                "$__memd_session" "${__memd_sessions[$__memd_session]}" "${at:0:-2}:${at: -2}"
        done 2>/dev/null >>"$__memd_spool"
        [[ -n $__memd_line ]] && rm -f "$__memd_line"
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
    # Evaluated in this shell just before a command runs; it expands to nothing.
    PS0=${PS0-}'${__memd_none[__memd_began=${EPOCHREALTIME/[.,]/},1]-}'
    PROMPT_COMMAND=(__memd_prompt "${PROMPT_COMMAND[@]}")
fi
