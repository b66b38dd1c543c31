# memd for zsh: writes each command with its exit status, duration and folder to a file that memd reads.
# Load it from ~/.zshrc: source <(memd shell init zsh). A prompt forks no process, except behind a command with a word
# that can announce a secret, or in such a folder: `memd spool` then stores it in the background, without the secret.
# memd does not capture a command that begins with a space, or matches a glob of MEMD_SHELL_IGNORE, separated by colons.
# Ctrl-X k asks memd about the typed words; MEMD_SHELL_KEY sets another key.
if [[ -o interactive && -z ${__memd_spool-} ]] && zmodload zsh/datetime zsh/system 2>/dev/null; then
    autoload -Uz add-zsh-hook
    typeset -g __memd_off=@OFF@ __memd_began= __memd_line= __memd_pwd= __memd_root= __memd_head= __memd_session= __memd_pending=
    typeset -gi __memd_turn=0 __memd_bytes=0 __memd_fd=-1 __memd_place_announces=0
    typeset -gF __memd_handed_over=0
    typeset -gA __memd_heads=()
    typeset -g __memd_shell
    strftime -s __memd_shell '%Y%m%dT%H%M%S' $EPOCHSECONDS
    __memd_shell+=-$$
    typeset -g __memd_spool=@SPOOL@/zsh-$$-$EPOCHSECONDS.lines
    (umask 077; command mkdir -p @SPOOL@)

    __memd_json() {
        local slash='\\' quote='\"' newline='\n' tab='\t'
        REPLY=${1//\\/$slash}
        REPLY=${REPLY//\"/$quote}
        REPLY=${REPLY//$'\n'/$newline}
        REPLY=${REPLY//$'\t'/$tab}
        REPLY=${REPLY//[[:cntrl:]]/ }
    }

    # Whether a text has a word that can announce a secret.
    __memd_announces() {
        case ${(L)1} in @CLUES@) return 0 ;; esac
        return 1
    }

    # Pipes lines that may hold a secret to memd, which appends them without it: they are in no other file, and in no
    # argument or environment of a process. The outer subshell leaves jobs and `$!` alone. Argument: seconds to wait.
    __memd_hand_over() {
        __memd_handed_over=$EPOCHREALTIME
        (
            trap '' HUP INT QUIT
            typeset -g +x __memd_pending # after `set -a`
            {
                [[ -z $1 ]] || sleep $1
                print -rn -- $__memd_pending
            } | @MEMD@ spool --command-limit 10000 $__memd_spool &!
        ) </dev/null &>/dev/null
        __memd_pending=
    }

    # A session belongs to one project for good, so each repository has its own.
    __memd_place() {
        emulate -L zsh
        local REPLY
        __memd_pwd=$PWD __memd_root=$PWD
        while [[ -n $__memd_root && ! -e $__memd_root/.git && ! -e $__memd_root/.memd-id ]]; do
            __memd_root=${__memd_root%/*}
        done
        __memd_json "$__memd_shell${__memd_root:+:$__memd_root}"
        __memd_session=$REPLY
        __memd_json "$PWD"
        __memd_head='{"request":"capture","origin":{"host":"zsh","session":"'
        __memd_head+="$__memd_session\",\"cwd\":\"$REPLY\"},\"events\":[{\"event\":"
        __memd_announces $PWD
        __memd_place_announces=$((!$?))
    }

    __memd_ignores() {
        local pattern
        for pattern in ${(s.:.)MEMD_SHELL_IGNORE}; do
            [[ $1 == ${~pattern} ]] && return 0
        done
        return 1
    }

    # memd sometimes removes the file; child processes do not inherit the descriptor.
    __memd_append() {
        if [[ ! $__memd_spool -ef /dev/fd/$__memd_fd ]]; then
            ((__memd_fd < 0)) || exec {__memd_fd}>&-
            sysopen -a -o creat,cloexec -m 600 -u __memd_fd -- $__memd_spool || __memd_fd=-1
        fi 2>/dev/null
        ((__memd_fd < 0)) || syswrite -o $__memd_fd -- $1
    }

    __memd_preexec() {
        emulate -L zsh # without `set -a`, which would give the command to its programs
        __memd_line=$1 __memd_began=$EPOCHREALTIME
        [[ $PWD == $__memd_pwd ]] || __memd_place
    }

    # One function, because zsh maps memory for each call.
    __memd_precmd() {
        local -i exit_status=$?
        [[ -n $__memd_began ]] || return 0
        emulate -L zsh
        local began=$__memd_began line=$__memd_line REPLY text at
        local -i announces=$__memd_place_announces
        local -i ms=$(((EPOCHREALTIME - began) * 1000))
        __memd_began= __memd_line=
        [[ -z ${MEMD_DISABLED-} || ${(L)MEMD_DISABLED} == (0|no|off|false) ]] || return 0
        [[ -n $line && $line != [[:space:]]* && $line != *'<'[Pp]rivate* && ! -e $__memd_off ]] || return 0
        [[ -n ${MEMD_SHELL_IGNORE-} ]] && __memd_ignores $line && return 0
        if ((__memd_bytes > 4000000)); then # memd has been down for long: further commands are not written
            [[ -s $__memd_spool ]] && return 0
            __memd_bytes=0
        fi
        text=$line
        (($#text > 10000)) && text=${text[1,100000]}
        case ${(L)text} in
            @CLUES@) announces=1 ;;
            *) text=${text[1,10000]} ;;
        esac
        REPLY=$text
        [[ $text == *[\\\"[:cntrl:]]* ]] && __memd_json "$text"
        strftime -s at '%Y-%m-%dT%H:%M:%S%z' ${began%[.,]*}
        line="$__memd_head\"ran\",\"turn\":\"$((++__memd_turn))\",\"at\":\"${at[1,-3]}:${at[-2,-1]}\""
        line+=",\"command\":\"$REPLY\",\"exit_status\":$exit_status,\"duration_ms\":$ms}]}"$'\n'
        __memd_heads[$__memd_session]=$__memd_head
        ((__memd_bytes += $#line))
        if ((announces)); then
            __memd_pending+=$line
        elif [[ $__memd_spool -ef /dev/fd/$__memd_fd ]]; then
            syswrite -o $__memd_fd -- $line
        else
            __memd_append $line
        fi
        # Pasted commands share a process: one begins in a second.
        [[ -z $__memd_pending ]] || ((EPOCHREALTIME - __memd_handed_over < 1)) || __memd_hand_over ''
        return 0
    }

    # The end of a session comes behind its last command, which memd may still have to write.
    __memd_leave() {
        emulate -L zsh
        ((ZSH_SUBSHELL == 0)) || return 0 # `(exit 1)` ends a subshell only
        local at head lines
        strftime -s at '%Y-%m-%dT%H:%M:%S%z' $EPOCHSECONDS
        for head in ${(v)__memd_heads}; do
            head+="\"session_ended\",\"turn\":\"session-end\",\"at\":\"${at[1,-3]}:${at[-2,-1]}\""
            lines+=$head',"reason":"exit"}]}'$'\n'
        done
        if [[ -n $__memd_pending ]] || ((__memd_handed_over)); then
            __memd_pending+=$lines
            __memd_hand_over 5
        elif [[ -n $lines ]]; then
            __memd_append $lines
        fi
    }

    __memd_recall() {
        emulate -L zsh
        if [[ -n $BUFFER ]]; then
            zle -M "$(@MEMD@ recall --limit 5 -- $BUFFER 2>&1)"
        else
            zle -M 'memd: type a few words first'
        fi
    }

    typeset -g +x -m '__memd_*'
    add-zsh-hook preexec __memd_preexec
    add-zsh-hook precmd __memd_precmd
    add-zsh-hook zshexit __memd_leave
    zle -N __memd_recall
    bindkey -- "${MEMD_SHELL_KEY:-^Xk}" __memd_recall
fi
