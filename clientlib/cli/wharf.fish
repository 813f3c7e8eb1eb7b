# SPDX-License-Identifier: Apache-2.0
#
# Completion of wharf(1) for fish.  Commands, options, codecs and what options may be are read from
# the command's own help and messages, so there is no list here that could differ from it.

# What stands in `wharf --help` behind the heading: the first word of each line up to an empty one, and
# what is said of it.
function __wharf_words --argument-names program heading
    $program --help 2>/dev/null | awk -v heading="$heading" '
        $0 ~ heading { inside = 1; next }
        inside && NF == 0 { exit }
        inside {
            sub(/^ *(wharf )? */, "")
            word = $1
            sub(/^[^ ]+ */, "")
            print word "\t" $0
        }'
end

function __wharf_options
    $argv --help 2>/dev/null | awk '
        match($0, /^ +(-[A-Za-z], )?--[a-z][a-z-]*/) {
            text = $0
            sub(/^ +(-[A-Za-z], )?--[a-z][a-z-]*( [^ ]+)? */, "", text)
            sub(/^ +(-[A-Za-z], )?/, "")
            sub(/[^a-z-].*/, "")
            print $0 "\t" text
        }'
end

# What an option may be, if that is one of some words: what wharf says when it is given none of them.
function __wharf_values
    $argv '' 2>&1 </dev/null | awk '
        sub(/.* is not (one of )?/, "") && /^[a-z0-9]+((, [a-z0-9]+)* (or|and) [a-z0-9]+)?$/ {
            gsub(/, | or | and /, "\n")
            print
        }
        sub(/.*; it has /, "") {
            gsub(/ \([^)]*\)/, "")
            gsub(/, /, "\n")
            print
        }'
end

# What follows an option that takes something.  Fails for an option that takes nothing.
function __wharf_argument --argument-names previous
    switch $previous
        case --codec
            if contains -- "$argv[3]" unpack cat test
                __wharf_values $argv[2..] $previous
            else
                __wharf_words $argv[2] '^Codecs:'
            end
        case -c
            __wharf_words $argv[2] '^Codecs:'
        case --engine --type --symbols --encoder --format
            __wharf_values $argv[2..] $previous
        case -o --output --socket --cdf --index --indexes --model --root --target --library
            __fish_complete_path (commandline -ct)
        case -b --chunk -l --level -r --range -T --threads --clients --depth -n --count -i --interval \
                --bits --splits --max-output --patience --seconds --spacing
            true
        case '*'
            return 1
    end
end

function __wharf_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -l command $words[2]

    if test (count $words) -eq 1
        __wharf_words $program '^Commands:'
        printf '%s\n' --help --version
        return
    end
    if test "$command" = rans
        if test (count $words) -eq 2
            $program rans --help 2>/dev/null | awk '$1 == "wharf" { print $3 }'
            return
        end
        set command rans $words[3]
    end
    # As a filter; and c is a codec only to who makes data.
    if string match -qr -- '^-[^-]*d|^--(decompress|uncompress)$' "$command[1]"
        set command unpack
    else if string match -q -- '-*' "$command[1]"
        set command pack
    end
    if not begin
            contains -- "$command[1]" unpack cat test; and test "$words[-1]" = -c
        end
        __wharf_argument $words[-1] $program $command
        and return
    end
    if string match -q -- '-*' $current
        __wharf_options $program $command
        return
    end
    switch "$command[1]"
        case help
            __wharf_words $program '^Commands:'
        case status stats top ping drain doctor cdi version
        case '*'
            __fish_complete_path $current
    end
end

complete -c wharf -f -a '(__wharf_complete)'
