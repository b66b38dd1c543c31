# memd for zsh: each command with its exit status, duration and folder, left for memd in a file of its own.
# Load it from ~/.zshrc: source <(memd shell init zsh). Nothing is forked by a prompt. A command that begins with a space,
# or matches a pattern of MEMD_SHELL_IGNORE (globs, separated by colons), stays with you. Ctrl-X k asks memd about what
# is typed; MEMD_SHELL_KEY is another key.
if [[ -o interactive && -z ${__memd_spool-} ]] && zmodload zsh/datetime zsh/regex 2>/dev/null; then
    autoload -Uz add-zsh-hook
    typeset -g __memd_off=@OFF@ __memd_began= __memd_line= __memd_pwd= __memd_root= __memd_cwd= __memd_session=
    typeset -gi __memd_turn=0 __memd_bytes=0
    typeset -gA __memd_sessions=()
    typeset -g __memd_shell
    strftime -s __memd_shell '%Y%m%dT%H%M%S' $EPOCHSECONDS
    __memd_shell+=-$$
    typeset -g __memd_spool=@SPOOL@/zsh-$$-$EPOCHSECONDS.lines
    (umask 077; command mkdir -p @SPOOL@; : >>$__memd_spool)

    __memd_json() {
        REPLY=$1
        [[ $REPLY == *[\\\"[:cntrl:]]* ]] || return 0
        local slash='\\' quote='\"' newline='\n' tab='\t'
        REPLY=${REPLY//\\/$slash}
        REPLY=${REPLY//\"/$quote}
        REPLY=${REPLY//$'\n'/$newline}
        REPLY=${REPLY//$'\t'/$tab}
        REPLY=${REPLY//[[:cntrl:]]/ }
    }

    # name, group of the secret (0: all but the first group), regex; works on `text`.
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
        text=$1
        local folded=${(L)1}
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

    __memd_preexec() {
        __memd_line=$1 __memd_began=$EPOCHREALTIME
    }

    __memd_precmd() {
        local -i exit_status=$?
        [[ -z $__memd_began ]] || __memd_tell $exit_status
        [[ $PWD == $__memd_pwd ]] || __memd_place # where the next command begins
    }

    __memd_tell() {
        emulate -L zsh -o no_re_match_pcre
        local -i exit_status=$1
        local began=$__memd_began line=$__memd_line now=$EPOCHREALTIME REPLY text at pattern
        __memd_began= __memd_line=
        [[ -z ${MEMD_DISABLED-} || ${(L)MEMD_DISABLED} == (0|no|off|false) ]] || return 0
        [[ ! -e $__memd_off ]] || return 0
        [[ -n $line && $line != [[:space:]]* && $line != *'<'[Pp]rivate* ]] || return 0
        for pattern in ${(s.:.)MEMD_SHELL_IGNORE-}; do
            [[ $line == ${~pattern} ]] && return 0
        done
        if ((__memd_bytes > 4000000)); then # memd has been down for long: what is more than this is not kept
            [[ -s $__memd_spool ]] && return 0
            __memd_bytes=0
        fi
        __memd_redact "${line[1,10000]}"
        __memd_json "$text"
        strftime -s at '%Y-%m-%dT%H:%M:%S%z' ${began%[.,]*}
        local -i duration_ms=$(((now - began) * 1000))
        __memd_append '"ran"' "${at[1,-3]}:${at[-2,-1]}" \
            "\"command\":\"$REPLY\",\"exit_status\":$exit_status,\"duration_ms\":$duration_ms" \
            $((++__memd_turn))
    }

    # kind of event, time, its fields, its turn
    __memd_append() {
        local line='{"request":"capture","origin":{"host":"zsh","session":"'
        line+="$__memd_session\",\"cwd\":\"$__memd_cwd\"},\"events\":[{\"event\":$1,\"turn\":\"$4\""
        line+=",\"at\":\"$2\",$3}]}"
        __memd_sessions[$__memd_session]=$__memd_cwd
        ((__memd_bytes += $#line))
        { print -r -- $line >>$__memd_spool } 2>/dev/null
    }

    __memd_leave() {
        emulate -L zsh
        ((ZSH_SUBSHELL == 0)) || return 0 # `(exit 1)` ends a subshell only
        local at
        strftime -s at '%Y-%m-%dT%H:%M:%S%z' $EPOCHSECONDS
        for __memd_session __memd_cwd in ${(kv)__memd_sessions}; do
            __memd_append '"session_ended"' "${at[1,-3]}:${at[-2,-1]}" '"reason":"exit"' session-end
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
