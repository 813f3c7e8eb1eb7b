# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Completion of wharf(1) for bash.  Commands, options, codecs and what options may be are read from the
# command's own help and messages, so there is no list here that could differ from it.

# What stands in `wharf --help` behind the heading $2: the first word of each line up to an empty
# one.  The commands' lines begin with the program's name, which is left out.
_wharf_words() {
    "$1" --help 2> /dev/null |
        awk -v heading="$2" '
            $0 ~ heading { inside = 1; next }
            inside && NF == 0 { exit }
            inside { print $1 == "wharf" ? $2 : $1 }'
}

# What an option may be, if that is one of some words: what wharf says when it is given none of them.
_wharf_values() {
    "$@" '' 2>&1 < /dev/null | awk '
        sub(/.* is not (one of )?/, "") && /^[a-z0-9]+((, [a-z0-9]+)* (or|and) [a-z0-9]+)?$/ {
            gsub(/, | or | and /, "\n")
            print
        }
        sub(/.*; it has /, "") {
            gsub(/ \([^)]*\)/, "")
            gsub(/, /, "\n")
            print
        }'
}

_wharf_files() {
    case $1 in
        unpack | test | list) _filedir '@(whr|gz|bgz|bgzf|tgz|taz|zz|zst|tzst|lz4|sz|br)' ;;
        columns) _filedir orc ;;
        status | stats | top | ping | drain | doctor | cdi | version) ;;
        *) _filedir ;;
    esac
}

_wharf() {
    # shellcheck disable=SC2034 # set by _init_completion
    local cur prev words cword split
    _init_completion -s || return

    local program=${words[0]} command=${words[1]}
    if ((cword == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "--help --version $(_wharf_words "$program" '^Commands:')" -- "$cur")
        return
    fi
    if [[ $command == help ]] && ((cword == 2)); then
        mapfile -t COMPREPLY < <(compgen -W "$(_wharf_words "$program" '^Commands:')" -- "$cur")
        return
    fi
    if [[ $command == rans ]]; then
        if ((cword == 2)); then
            mapfile -t COMPREPLY < <(compgen -W "$("$program" rans --help 2> /dev/null |
                awk '$1 == "wharf" { print $3 }')" -- "$cur")
            return
        fi
        command=rans\ ${words[2]}
    fi
    # As a filter; and c is a codec only to who makes data.
    case $command in
        -[!-]*d* | -d | --decompress | --uncompress) command=unpack ;;
        -*) command=pack ;;
    esac
    [[ $command == @(unpack|cat|test) && $prev == @(-c|-[!-]*c) ]] && prev=
    case $prev in
        -c | --codec)
            if [[ $command == @(unpack|cat|test) ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$(_wharf_values "$program" "$command" --codec)" -- "$cur")
                return
            fi
            mapfile -t COMPREPLY < <(compgen -W "$(_wharf_words "$program" '^Codecs:')" -- "$cur")
            return
            ;;
        --engine | --type | --symbols | --encoder | --format)
            # shellcheck disable=SC2086 # a command of two words is two
            mapfile -t COMPREPLY < <(compgen -W "$(_wharf_values "$program" $command "$prev")" -- "$cur")
            return
            ;;
        -o | --output | --socket | --cdf | --index | --indexes | --model | --root | --target | --library)
            _filedir
            return
            ;;
        -b | --chunk | -l | --level | -r | --range | -T | --threads | --clients | --depth | -n | --count | -i | --interval | --bits | --splits | --max-output | --patience | --seconds | --spacing)
            return
            ;;
    esac
    if [[ $cur == -* ]]; then
        # shellcheck disable=SC2086 # a command of two words is two
        mapfile -t COMPREPLY < <(compgen -W "$("$program" $command --help 2> /dev/null |
            grep -oE -- '--[a-z][a-z-]*' | sort -u)" -- "$cur")
        return
    fi
    _wharf_files "$command"
}

complete -F _wharf wharf
