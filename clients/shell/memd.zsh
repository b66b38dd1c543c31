# memd for zsh: writes each command with its exit status, duration and folder to a file that memd reads.
# Load it from ~/.zshrc: source <(memd shell init zsh). A prompt forks no process. memd does not capture a command that
# begins with a space, or matches a pattern of MEMD_SHELL_IGNORE (globs, separated by colons). Ctrl-X k asks memd about
# the typed words; MEMD_SHELL_KEY sets another key.
if [[ -o interactive && -z ${__memd_spool-} ]] && zmodload zsh/datetime zsh/regex zsh/system 2>/dev/null; then
    autoload -Uz add-zsh-hook
    typeset -g __memd_off=@OFF@ __memd_began= __memd_line= __memd_pwd= __memd_root= __memd_head= __memd_session=
    typeset -gi __memd_turn=0 __memd_bytes=0 __memd_fd=-1
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

    # Arguments: name, group of the secret (0: all but the first group), regex. Redacts `text`.
    __memd_rule() {
        local rest=$text out= found kept secret
        local -a match mbegin mend
        local MATCH MBEGIN MEND
        while [[ $rest =~ $3 ]]; do
            found=$MATCH
            if (($2)); then
                secret=$match[$2]
                kept=${found%${(b)secret}*}"[redacted:$1]"${found##*${(b)secret}}
            else
                kept=$match[1]"[redacted:$1]"
            fi
            out+=${rest[1,MBEGIN-1]}$kept
            rest=${rest[MEND+1,-1]}
        done
        text=$out$rest
    }

    __memd_redact() {
        local folded=${(L)text} LC_ALL=C
@RULES@
    }

    # Cuts the text to 10,000 characters, without a part of a secret at the end.
    __memd_cut() {
        text=${text[1,12000]}
        __memd_redact
        text=${text[1,10000]}
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
        __memd_line=$1 __memd_began=$EPOCHREALTIME
        [[ $PWD == $__memd_pwd ]] || __memd_place
    }

    # One function, because zsh maps memory for each call.
    __memd_precmd() {
        local -i exit_status=$?
        [[ -n $__memd_began ]] || return 0
        emulate -L zsh -o no_re_match_pcre
        local began=$__memd_began line=$__memd_line REPLY text at
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
        (($#text > 10000)) && __memd_cut
        case ${(L)text} in @CLUES@) __memd_redact ;; esac
        REPLY=$text
        [[ $text == *[\\\"[:cntrl:]]* ]] && __memd_json "$text"
        strftime -s at '%Y-%m-%dT%H:%M:%S%z' ${began%[.,]*}
        line="$__memd_head\"ran\",\"turn\":\"$((++__memd_turn))\",\"at\":\"${at[1,-3]}:${at[-2,-1]}\""
        line+=",\"command\":\"$REPLY\",\"exit_status\":$exit_status,\"duration_ms\":$ms}]}"$'\n'
        __memd_heads[$__memd_session]=$__memd_head
        ((__memd_bytes += $#line))
        if [[ $__memd_spool -ef /dev/fd/$__memd_fd ]]; then
            syswrite -o $__memd_fd -- $line
        else
            __memd_append $line
        fi
        return 0
    }

    __memd_leave() {
        emulate -L zsh
        ((ZSH_SUBSHELL == 0)) || return 0 # `(exit 1)` ends a subshell only
        local at head
        strftime -s at '%Y-%m-%dT%H:%M:%S%z' $EPOCHSECONDS
        for head in ${(v)__memd_heads}; do
            head+="\"session_ended\",\"turn\":\"session-end\",\"at\":\"${at[1,-3]}:${at[-2,-1]}\",\"reason\":\"exit\"}]}"
            __memd_append $head$'\n'
        done
    }

    __memd_recall() {
        emulate -L zsh
        if [[ -n $BUFFER ]]; then
            zle -M "$(@MEMD@ recall --limit 5 -- $BUFFER 2>&1)"
        else
            zle -M 'memd: type a few words first'
        fi
    }

    add-zsh-hook preexec __memd_preexec
    add-zsh-hook precmd __memd_precmd
    add-zsh-hook zshexit __memd_leave
    zle -N __memd_recall
    bindkey -- "${MEMD_SHELL_KEY:-^Xk}" __memd_recall
fi
