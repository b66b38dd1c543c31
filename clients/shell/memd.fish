# memd for fish 3.6 or later: writes each command with its exit status, duration and folder to a file that memd reads.
# Load it from ~/.config/fish/config.fish: memd shell init fish | source. A prompt forks no process, except behind a
# command with a word that can announce a secret, or in such a folder: `memd spool` then stores it in the background,
# without the secret. memd does not capture a command that begins with a space, that fish keeps out of its history, or
# that matches a glob of MEMD_SHELL_IGNORE, separated by colons; nor anything in a private session.
# Ctrl-X k asks memd about the typed words; MEMD_SHELL_KEY sets another key.
if status is-interactive
    and not set -q __memd_spool
    and string match -rq '^(3\.[6-9]|3\.\d\d|[4-9]|\d\d)' -- $version
    set -g __memd_off @OFF@
    set -g __memd_shell (date +%Y%m%dT%H%M%S)-$fish_pid
    set -g __memd_spool @SPOOL@/fish-$fish_pid-(date +%s).lines
    set -g __memd_line ''
    set -g __memd_pwd ''
    set -g __memd_pending
    set -g __memd_heads
    set -g __memd_turn 0
    set -g __memd_bytes 0
    set -g __memd_length 0
    set -g __memd_handed_over ''
    command sh -c 'umask 077; mkdir -p "${1%/*}"; : >>"$1"' sh $__memd_spool

    # Whether a text has a word that can announce a secret.
    function __memd_announces
        string match -rq -- @CLUES@ "$argv[1]"
    end

    # Prints a text as the inside of a JSON string. `string` takes each line of its input as a text.
    function __memd_json
        string replace -ar '["\\\\]' '\\\\$0' -- "$argv[1]" | string replace -a \t '\\t' |
            string replace -ar '[\x00-\x1f\x7f]' ' ' | string join '\\n'
    end

    # Pipes lines that may hold a secret to memd, which appends them without it: they are in no other file, and in no
    # argument or environment of a process. `sh` leaves jobs and `$last_pid` alone. Argument: seconds to wait.
    function __memd_hand_over
        string join \n -- $__memd_pending | command sh -c 'trap "" HUP INT QUIT; exec 3<&0; wait=$1; shift
            { [ -z "$wait" ] || sleep "$wait"; exec "$@" <&3 3<&-; } </dev/null &' \
            sh "$argv[1]" @MEMD@ spool --command-limit 10000 $__memd_spool >/dev/null 2>/dev/null
        set -g __memd_pending
    end

    # A session belongs to one project for good, so each repository has its own.
    function __memd_place
        set -l root $PWD
        set -g __memd_pwd $PWD
        while test -n "$root" -a ! -e "$root/.git" -a ! -e "$root/.memd-id"
            set root (string replace -r '/[^/]*$' '' -- $root)
        end
        set -l session $__memd_shell
        test -z "$root"; or set session $session:$root
        set -l origin '{"request":"capture","origin":{"host":"fish","session":"'(__memd_json $session)
        set -g __memd_head $origin'","cwd":"'(__memd_json $PWD)'"},"events":[{"event":'
        __memd_announces $PWD
        and set -g __memd_place_announces 1
        or set -g __memd_place_announces
    end

    # fish reports a missing folder and a full disk by itself: only the first can be seen before.
    function __memd_append
        test -d (string replace -r '/[^/]*$' '' -- $__memd_spool)
        and printf '%s\n' $argv 2>/dev/null >>$__memd_spool
    end

    # Whether memd is disabled, or the line matches MEMD_SHELL_IGNORE.
    function __memd_withholds
        test -z "$MEMD_DISABLED"
        or string match -qir '^(0|no|off|false)$' -- "$MEMD_DISABLED"
        or return 0
        for pattern in (string split : -- "$MEMD_SHELL_IGNORE")
            string match -q -- $pattern $argv[1]
            and return 0
        end
        return 1
    end

    # Whether memd has been down for long: further commands are not written.
    function __memd_is_full
        test -s $__memd_spool
        or set -g __memd_bytes 0
        test $__memd_bytes -gt 0
    end

    function __memd_began --on-event fish_preexec
        set -g __memd_line $argv[1]
        test "$PWD" = "$__memd_pwd"
        or __memd_place
    end

    # fish has no clock, but its history knows when a command began. A command substitution costs twice what a pipe does.
    function __memd_ended --on-event fish_prompt
        set -l exit_status $status
        set -l text $__memd_line
        set -g __memd_line ''
        test -n "$text" -a ! -e $__memd_off
        and not set -q fish_private_mode
        # What begins with a space is not captured; the history has no white space at an end.
        and string match -rq '(?s)^(?!.*<[Pp]rivate)(?<text>\S.*?)(?<!\\\\)\s*\z' -- $text
        or return 0
        test -n "$MEMD_DISABLED$MEMD_SHELL_IGNORE"
        and __memd_withholds $text
        and return 0
        begin
            math $__memd_turn + 1
            math $__memd_bytes + $__memd_length + 300
            string length -- $text
            builtin history search --exact --case-sensitive --max=1 --show-time='%Y-%m-%dT%H:%M:%S%z' -- $text
        end | read --line -g __memd_turn __memd_bytes __memd_length __memd_at
        string match -rq '^(?<second>\d.{18})(?<hours>.\d\d)(?<minutes>\d\d)' -- "$__memd_at"
        and begin
            test $__memd_bytes -lt 4000000
            or not __memd_is_full
        end
        or return 0
        set -l announces $__memd_place_announces
        __memd_announces $text
        and set announces 1
        if test $__memd_length -gt 10000
            set -l length 10000
            test -z "$announces"
            or set length 100000
            set text (string sub -l $length -- $text | string collect)
        end
        string match -rq '["\\\\\x00-\x1f\x7f]' -- $text
        and set text (__memd_json $text)
        set -l line $__memd_head"\"ran\",\"turn\":\"$__memd_turn\",\"at\":\"$second$hours:$minutes\",\"command\":\""
        set line $line$text"\",\"exit_status\":$exit_status,\"duration_ms\":$CMD_DURATION}]}"
        contains -- $__memd_head $__memd_heads
        or set -ga __memd_heads $__memd_head
        if test -z "$announces"
            __memd_append $line
        else
            set -ga __memd_pending $line
        end
        # Pasted commands share a process: one begins in a second.
        set -q __memd_pending[1]
        and test $second != "$__memd_handed_over"
        or return 0
        set -g __memd_handed_over $second
        __memd_hand_over ''
    end

    # The end of a session comes behind its last command, which memd may still have to write.
    function __memd_left --on-event fish_exit
        set -l at (date +%Y-%m-%dT%H:%M:%S%z | string replace -r '(..)$' ':$1')
        set -l ends $__memd_heads"\"session_ended\",\"turn\":\"session-end\",\"at\":\"$at\",\"reason\":\"exit\"}]}"
        if test -n "$__memd_handed_over" -o -n "$__memd_pending"
            set -ga __memd_pending $ends
            __memd_hand_over 5
        else if set -q ends[1]
            __memd_append $ends
        end
    end

    function __memd_recall
        set -l words (commandline | string collect)
        echo
        if test -n "$words"
            @MEMD@ recall --limit 5 -- $words
        else
            echo 'memd: type a few words first'
        end
        commandline -f repaint
    end

    set -q MEMD_SHELL_KEY[1]
    or set -l MEMD_SHELL_KEY \cxk
    bind $MEMD_SHELL_KEY __memd_recall
    bind -M insert $MEMD_SHELL_KEY __memd_recall
end
