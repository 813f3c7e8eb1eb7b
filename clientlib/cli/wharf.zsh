#compdef wharf
# SPDX-License-Identifier: Apache-2.0
#
# Completion of wharf(1) for zsh.  Commands, options, codecs and what options may be are read from the
# command's own help and messages, so there is no list here that could differ from it.

# What stands in `wharf --help` behind the heading $2: the first word of each line up to an empty one, and
# behind a colon what is said of it.
_wharf_words() {
    "$1" --help 2> /dev/null | awk -v heading="$2" '
        $0 ~ heading { inside = 1; next }
        inside && NF == 0 { exit }
        inside {
            sub(/^ *(wharf )? */, "")
            word = $1
            sub(/^[^ ]+ */, "")
            print word ":" $0
        }'
}

_wharf_options() {
    "$@" --help 2> /dev/null | awk '
        match($0, /^ +(-[A-Za-z], )?--[a-z][a-z-]*/) {
            text = $0
            sub(/^ +(-[A-Za-z], )?--[a-z][a-z-]*( [^ ]+)? */, "", text)
            sub(/^ +(-[A-Za-z], )?/, "")
            sub(/[^a-z-].*/, "")
            print $0 ":" text
        }'
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

_wharf_describe() {
    local -a found
    found=("${(@f)$(shift; "$@")}")
    _describe "$1" found
}

# What follows option $1, which may take something.  Fails for an option that takes nothing.
_wharf_argument() {
    case $1 in
        --codec)
            case $3 in
                unpack | cat | test) _wharf_describe codec _wharf_values "${@[2,-1]}" --codec ;;
                *) _wharf_describe codec _wharf_words "$2" '^Codecs:' ;;
            esac
            ;;
        -c) _wharf_describe codec _wharf_words "$2" '^Codecs:' ;;
        --engine | --type | --symbols | --encoder | --format)
            _wharf_describe "${1#--}" _wharf_values "${@[2,-1]}" "$1"
            ;;
        -o | --output | --socket | --cdf | --index | --indexes | --model | --root | --target | --library) _files ;;
        -b | --chunk | -l | --level | -r | --range | -T | --threads | --clients | --depth | -n | --count | \
            -i | --interval | --bits | --splits | --max-output | --patience | --seconds | --spacing)
            _message 'a number'
            ;;
        *) return 1 ;;
    esac
}

_wharf() {
    local program=$words[1]
    local -a command=("$words[2]")

    if ((CURRENT == 2)); then
        _wharf_describe command _wharf_words "$program" '^Commands:'
        [[ $PREFIX == -* ]] && compadd -- --help --version
        return
    fi
    if [[ $words[2] == rans ]]; then
        if ((CURRENT == 3)); then
            compadd -- $("$program" rans --help 2> /dev/null | awk '$1 == "wharf" { print $3 }')
            return
        fi
        command=(rans "$words[3]")
    fi
    # As a filter; and c is a codec only to who makes data.
    case $command[1] in
        -[^-]*d* | -d* | --decompress | --uncompress) command=(unpack) ;;
        -*) command=(pack) ;;
    esac
    if [[ $words[CURRENT-1] != -c || $command[1] != (unpack|cat|test) ]]; then
        _wharf_argument "$words[CURRENT-1]" "$program" "${command[@]}" && return
    fi
    if [[ $PREFIX == -* ]]; then
        _wharf_describe option _wharf_options "$program" "${command[@]}"
        return
    fi
    case $command[1] in
        help) _wharf_describe command _wharf_words "$program" '^Commands:' ;;
        unpack | test | list) _files -g '*.(whr|gz|bgz|bgzf|tgz|taz|zz|zst|tzst|lz4|sz|br)(-.)' ;;
        columns) _files -g '*.orc(-.)' ;;
        status | stats | top | ping | drain | doctor | cdi | version) ;;
        *) _files ;;
    esac
}

_wharf "$@"
