#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The command line itself: help, mistakes, engines, terminals, completion, bench.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
set -o pipefail

COMMANDS=(pack unpack cat test list index columns decode bench why rans run status stats top ping drain doctor cdi help version)

test_help_and_version() {
    "$WHARF" --version > out
    grep -qE '^wharf [0-9]+\.[0-9]+\.[0-9]+$' out
    "$WHARF" --help > out
    for command in "${COMMANDS[@]}"; do
        grep -q "^  wharf $command " out
        "$WHARF" "$command" --help > help
        head -n 1 help | has_line -E "^usage: wharf $command( |$)"
        "$WHARF" help "$command" | cmp - help
        "$WHARF" "$command" -h | cmp - help
        # Every line fits a terminal.
        expect_status 1 grep -E '.{81}' help
    done
    expect_status 1 grep -E '.{81}' out
    expect_status 4 "$WHARF" --help > /dev/full 2> message
    grep -q 'standard output: cannot write' message
}

# Help failed with a message, and bench measured to the end and then said "Input/output error".
test_text_that_nobody_reads_ends_it_quietly() {
    echo data > data
    mkfifo pipe
    exec 5<> pipe
    exec 6> pipe 5>&-
    while read -r arguments; do
        # shellcheck disable=SC2086 # words
        expect_status 141 "$WHARF" $arguments >&6 2> message
        test ! -s message
    done << 'EOS'
--help
--version
help pack
help help
version --help
rans --help
rans info --help
top --help
bench --seconds 0 -c stored data
EOS
    exec 6>&-
    for command in 'rans' 'pack'; do
        expect_status 4 "$WHARF" "$command" --help > /dev/full 2> message
        grep -q 'standard output: cannot write: No space left on device' message
    done
}

# They all listed --socket, which these refuse, and --threads.
test_help_of_commands_without_a_daemon_names_none() {
    for command in 'rans import' 'rans thin' 'rans info' 'rans encode'; do
        # shellcheck disable=SC2086 # a command of two words is two
        "$WHARF" $command --help > help
        expect_status 1 grep -E -- '--(socket|patience|embedded)|daemon' help
    done
    expect_status 1 grep -e --threads help
}

# Of commands about a daemon: they listed engines and progress.
test_help_of_commands_about_a_daemon_lists_what_they_use() {
    for command in status stats top ping drain; do
        "$WHARF" "$command" --help > help
        grep -q -e '--socket PATH' help
        expect_status 1 grep -E -e '--(engine|embedded|threads)|progress' help
    done
    grep -q -e '--quiet' help
    "$WHARF" ping --help > help
    expect_status 1 grep -e --quiet help
}

test_typos_are_told_what_was_meant() {
    while IFS='|' read -r arguments meant; do
        # shellcheck disable=SC2086 # words
        expect_status 2 "$WHARF" $arguments 2> message
        grep -qF -- "; did you mean '$meant'?" message
    done << 'EOS'
unpakc x|unpack
tst x|test
rans decod x|decode
help pakc|pack
pack --levle 3 x|--level
cat --embeded x|--embedded
pack -c deflat x|deflate
decode -c gzpi|gzip
EOS
    expect_status 2 "$WHARF" frobnicate 2> message
    expect_status 1 grep 'did you mean' message
}

# "there is no command 'notes.txt'" was all that those heard who know gzip.
test_file_in_place_of_a_command_is_told_apart() {
    touch notes.txt tset
    expect_status 2 "$WHARF" notes.txt 2> message
    grep -qF "'notes.txt' is a file and no command: \`wharf pack\` packs it" message
    expect_status 2 "$WHARF" tset 2> message
    grep -qF "there is no command 'tset'; did you mean 'test'?" message
}

# tar and many scripts start a compressor so.
# shellcheck disable=SC2094 # nothing reads what it writes
test_without_a_command_it_is_a_filter() {
    mkdir folder
    seq 100000 > folder/data
    tar -I "$WHARF" -cf a.whr folder
    "$WHARF" test a.whr
    expect_text "$(printf 'folder/\nfolder/data')" "$(tar -I "$WHARF" -tf a.whr)"
    tar -I "$WHARF -9 -T0" -cf b.whr folder
    test "$(stat -c %s b.whr)" -lt "$(stat -c %s a.whr)"
    expect_text "$(printf 'folder/\nfolder/data')" "$(tar -I "$WHARF -9 -T0" -tf b.whr)"
    tar -czf c.tar.gz folder
    for program in "$WHARF" "$WHARF cat" "$WHARF unpack"; do
        expect_text "$(printf 'folder/\nfolder/data')" "$(tar -I "$program" -tf c.tar.gz)"
    done
    "$WHARF" < folder/data | "$WHARF" --decompress | cmp - folder/data
    gzip -k folder/data
    "$WHARF" -dc folder/data.gz | cmp - folder/data
    cp folder/data.gz .
    "$WHARF" -dkv data.gz 2> message
    grep -q '^wharf: data.gz -> data: ' message
    cmp data folder/data
    test -e data.gz
    # With nothing at either end it shows what there is.
    python3 - "$WHARF" << 'EOS'
import os, pty, subprocess, sys
ours, theirs = pty.openpty()
done = subprocess.run([sys.argv[1]], stdin=theirs, stdout=subprocess.PIPE, timeout=600)
assert done.returncode == 0 and done.stdout.startswith(b'usage: wharf COMMAND'), done
EOS
}

# tar adds -d to the words that it packs with.
test_options_of_packing_are_passed_over_by_a_filter_that_unpacks() {
    mkdir folder
    seq 1000 > folder/data
    while read -r words; do
        rm -f x
        tar -I "$WHARF $words" -cf x folder
        expect_text "$(printf 'folder/\nfolder/data')" "$(tar -I "$WHARF $words" -tf x)"
    done << 'EOS'
-c lz4
-clz4 -q
-cdeflate
--codec lz4 --level 3
--codec=gzip --level=9 -b 64K
-c deflate --encoder zlib -l 9 -T 1
-q -c rans --type u8 --chunk=1M
EOS
    # To gzip's users c is standard output.
    gzip -k folder/data
    for words in '-cd' '-dc' '-c -d' '-d -c' '--stdout -d'; do
        # shellcheck disable=SC2086 # words
        "$WHARF" $words folder/data.gz | cmp - folder/data
    done
    expect_status 2 "$WHARF" unpack --codec lz4 folder/data.gz 2> message
    grep -q -- "--codec: 'lz4' is not brotli" message
}

# -12 was -1 and -2, and 2 was the level.
test_level_of_two_digits_is_a_mistake() {
    seq 10 > data
    for words in -12 -v12 -12v -11 '-1 -12' 'data -9 -12' '-q9v12'; do
        # shellcheck disable=SC2086 # words
        expect_status 2 "$WHARF" pack -f $words data 2> message
        grep -q -- '-1 to -9 are levels; --level N is any other' message
        test ! -e data.whr
    done
    for words in -9v '-1 -9' -v9 '--quiet -1 -9' '-T1 -2' '-b 12 -2' '-b12 -1' '--level=12'; do
        # shellcheck disable=SC2086 # words
        "$WHARF" pack -f $words data 2> message
    done
    expect_status 2 "$WHARF" cat -12 data.whr 2> message
}

test_levels_have_letters() {
    seq 50000 > data
    for level in 1 9; do
        "$WHARF" pack -"$level" -o "$level.whr" data
        "$WHARF" pack -l "$level" -o other.whr -f data
        cmp "$level.whr" other.whr
    done
    expect_status 2 "$WHARF" pack -c snappy -3 data 2> message
    grep -q 'it has snappy (without levels)' message
}

# Options in the help, in the manual page and in the command are the same.
test_manual_page_has_every_option() {
    for command in "${COMMANDS[@]}"; do
        "$WHARF" "$command" --help | { grep -oE -- '--[a-z][a-z-]*' || true; }
    done | sort -u > options
    test "$(wc -l < options)" -ge 15
    MANWIDTH=200 mandoc -Tascii "$TOP/clientlib/cli/wharf.1" | sed 's/.\x08//g' > page
    while read -r option; do
        grep -q -- "$option" page || echo "$option"
    done < options > missing
    expect_text '' "$(cat missing)"
}

test_mistakes_are_exit_2_with_a_way_on() {
    seq 10 > data
    while read -r arguments; do
        # shellcheck disable=SC2086 # words
        expect_status 2 "$WHARF" $arguments < /dev/null > out 2> message
        test ! -s out
        grep -qE '^wharf: .wharf .*--help. ' message
    done << 'EOS'
frobnicate
help frobnicate
version now
pack --no-such-option data
pack -Z data
pack -o one data more
unpack -o one data.whr more.whr
unpack -c -o one data.whr
unpack a.gz a.whr
unpack data
pack -c nonsense data
pack -l 13 data
pack -l x data
pack --encoder gzip data
pack -c stored -l 3 data
pack -b 0 data
pack -b 17M data
pack -b
pack --codec
pack -T -1 data
pack -T 99999 data
pack -T 1x data
pack --quiet=yes data
pack -o
unpack --range
cat --engine turbo data
cat --embedded --socket /run/x data
cat --embedded --engine gpu data
cat --patience 0 data
pack --embedded --engine simt data
status --embedded
status -T 2
stats --json=yes
stats data
top -i 0
ping -n 0
cat -o
decode
decode -c zlib data more
decode -c zlib --max-output -1
decode -c zlib --max-output 99999999999T
bench
bench --clients 0 data
bench data more
bench -c rle1 data
bench --gpu --engine cpu data
why
why data more
why --seconds -1 data
EOS
    expect_text 'data message out' "$(echo *)"
}

# Each message names what may stand there.
test_bad_arguments_are_told_what_is_allowed() {
    while IFS='|' read -r arguments allowed; do
        # shellcheck disable=SC2086 # words
        expect_status 2 "$WHARF" $arguments 2> message
        grep -qF -- "is not $allowed" message
    done << 'EOS'
pack -T 1025|a number from 0 to 1024
pack -b 17M|a size from 1 to 16M
pack -c lzma|a codec that `wharf --help` lists
pack -l x|a number from 0 to 99
cat --engine turbo|auto, cpu, gpu, simt or reference
unpack -r 5|OFFSET:LENGTH or OFFSET:, each a number of bytes, or of units K, M, G or T
decode --max-output many|a number of bytes, or of units K, M, G or T
bench --clients 0|a number from 1 to 1024
bench --depth 256|a number from 1 to 255
bench --seconds -1|a whole number from 0 to 3600
bench -c rle1 --type f32 data|one of u8
EOS
}

test_levels_are_explained() {
    seq 10 > data
    expect_status 2 "$WHARF" pack -l 99 data 2> message
    grep -q 'libdeflate (levels 1 to 12, default 6), zlib (levels 0 to 9, default 6)' message
    expect_status 2 "$WHARF" pack -c stored -l 3 data 2> message
    grep -q 'it has stored (without levels)' message
}

test_daemons_engines_and_sockets_are_exit_3() {
    seq 10 > data
    "$WHARF" pack data
    for engine in gpu simt; do
        expect_status 3 "$WHARF" unpack --engine "$engine" -f data.whr 2> message
        grep -qE 'no daemon: .*: start (the|a) daemon with ' message
        grep -q -- "--embedded in place of --engine $engine does the work in this process, on the CPU" message
        expect_status 3 "$WHARF" pack --engine "$engine" -o none.whr data
    done
    expect_status 3 "$WHARF" cat --socket /run/wharf/x data.whr 2> message
    # shellcheck disable=SC2016 # the message has these quotes
    grep -q 'no daemon: /run/wharf/x: no such socket: start a daemon with `wharfd --socket /run/wharf/x`' message
    grep -q -- '--embedded in place of --socket does the work in this process' message
    expect_status 3 "$WHARF" cat --engine simt --socket /run/wharf/x data.whr 2> message
    grep -q -- '--embedded in place of --socket and --engine simt does the work' message
    "$WHARF" cat --embedded data.whr | cmp - data
}

test_report_names_are_json_whatever_the_bytes() {
    name=$(printf 'a"\\\n\t\377\303\251.gz')
    echo nonsense > "$name"
    expect_status 1 "$WHARF" cat --report "$name" 2> message
    tail -n 1 message | python3 -c 'import json, sys
name = json.loads(sys.stdin.buffer.read().decode("utf-8"))["input"]
assert name == "a\"\\\n\t\ufffd\u00e9.gz", repr(name)'
    # What people read has no control characters in it.
    head -n 1 message | has_line 'a"\\??'
}

# The line had room for 16 KiB, and what lay behind that on the stack was printed.
test_report_holds_names_of_any_length() {
    name=$(printf '%050000d' 0 | tr 0 '\001')
    expect_status 4 "$WHARF" cat --report "$name" 2> message
    tail -n 1 message | python3 -c 'import json, sys
assert json.load(sys.stdin)["input"] == "\x01" * 50000'
}

# on_terminal COMMAND...: runs it with a terminal in the place of standard error; what it wrote
# there goes to standard output.  It takes more than a second over its input, and more of that until it
# writes there.
on_terminal() {
    python3 - "$@" << 'EOS'
import os, pty, select, subprocess, sys
ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                           stderr=theirs)
os.close(theirs)
shown = False
with process.stdin as pipe:
    data = open('input', 'rb').read()
    pipe.write(data[:len(data) // 2])
    for at in range(len(data) // 2, len(data), 500000):
        pipe.flush()
        if not shown:
            shown = select.select([ours], [], [], 1.3)[0] or '-q' in sys.argv
        pipe.write(data[at:at + 500000])
text = b''
while True:
    try:
        piece = os.read(ours, 4096)
    except OSError:
        break
    if not piece:
        break
    text += piece
process.wait()
sys.stdout.buffer.write(text)
sys.exit(process.returncode)
EOS
}

test_progress_is_for_terminals_and_long_work() {
    head -c 8000000 /dev/urandom > data
    "$WHARF" pack -o input data
    on_terminal "$WHARF" cat > shown
    grep -aq 'standard input:.*MB/s' shown
    # It is wiped at the end.
    tail -c 4 shown | cmp - <(printf '\r\033[K')
    on_terminal "$WHARF" cat -q > shown
    test ! -s shown
    "$WHARF" cat < input 2> shown > /dev/null
    test ! -s shown
    "$WHARF" test --progress < <(cat input; sleep 1.2; cat input) 2> shown
    grep -aq 'standard input:.*MB/s' shown
    # Behind a pipe somebody else draws on the terminal.
    # shellcheck disable=SC2016 # for the shell inside
    on_terminal bash -c '"$0" cat | cat' "$WHARF" -q > shown
    test ! -s shown
    # shellcheck disable=SC2016
    on_terminal bash -c '"$0" unpack | cat' "$WHARF" -q > shown
    test ! -s shown
    # shellcheck disable=SC2016
    on_terminal bash -c '"$0" list --exact | cat' "$WHARF" -q > shown
    test ! -s shown
    # What was done is told where progress is.
    on_terminal "$WHARF" unpack > shown
    grep -aq '^wharf: standard input -> standard output: ' <(tr '\r' '\n' < shown | sed 's/\x1b\[K//g')
}

# shown_sizes NAME: the sizes that progress showed of NAME, in bytes.
shown_sizes() {
    tr '\r' '\n' | sed -n "s/.*$1:[ 0-9%]*  \([0-9.]* [KMG]\?i\?B\|[0-9]* bytes\)  .*/\1/p" |
        sed 's/ bytes//; s/ KiB/K/; s/ MiB/M/' | numfmt --from=iec
}

# The rate counted what the files before had given, and packing's what became of the data.
# shellcheck disable=SC2016 # awk's
test_progress_is_of_this_file_and_of_what_is_not_compressed() {
    head -c 3000000 /dev/zero > zeros
    "$WHARF" pack -o first zeros
    head -c 100000 /dev/urandom | "$WHARF" pack -o second -
    mkfifo slow
    { cat second; sleep 1.2; cat second; } > slow &
    "$WHARF" cat --progress first slow 2> shown > /dev/null
    shown_sizes slow < shown > sizes
    test -s sizes
    expect_status 1 awk '$1 > 300000 { print; large = 1 } END { exit !large }' sizes
    { cat zeros; sleep 1.2; cat zeros; } > slow &
    "$WHARF" pack --progress -o packed slow 2> shown
    shown_sizes slow < shown > sizes
    awk '$1 >= 3000000 { large = 1 } END { exit !large }' sizes
}

# A ratio of a file to its index says nothing.
test_index_is_told_without_a_ratio() {
    seq 1 100000 | gzip > data.gz
    "$WHARF" index data.gz 2> message
    expect_text '' "$(cat message)"
    script -qec "$WHARF index -f data.gz" /dev/null > shown < /dev/null
    grep -aq '^wharf: data.gz -> data.gz.whi: [0-9.]* KiB -> [0-9]* bytes, [0-9.]* s, [0-9]* MB/s' shown
}

test_packed_data_does_not_go_to_or_come_from_a_terminal() {
    seq 10 > data
    python3 - "$WHARF" << 'EOS'
import os, pty, subprocess, sys
ours, theirs = pty.openpty()
for command, status in (['pack', '-o', '-', 'data'], 2), (['cat'], 4), (['unpack'], 4), \
        (['decode', '-c', 'gzip'], 4):
    done = subprocess.run([sys.argv[1], *command], stdin=theirs, stdout=theirs,
                          stderr=subprocess.PIPE, timeout=600)
    assert done.returncode == status, (command, done)
    assert b'terminal' in done.stderr, done
EOS
}

test_completion_knows_commands_options_codecs_and_files() {
    # shellcheck disable=SC1091
    . /usr/share/bash-completion/bash_completion
    # shellcheck source=clientlib/cli/wharf.bash
    . "$TOP/clientlib/cli/wharf.bash"
    touch a.whr b.gz
    # complete_line WORD...: what is offered for the last word.
    complete_line() {
        COMP_WORDS=("$WHARF" "$@") COMP_CWORD=$# COMP_LINE="$WHARF $*" COMPREPLY=()
        COMP_POINT=${#COMP_LINE}
        _wharf
        printf '%s\n' "${COMPREPLY[@]}" | sort > offered
    }
    set +e
    complete_line ''
    expect_text "$(printf '%s\n' --help --version "${COMMANDS[@]}" | sort)" "$(cat offered)" || exit 1
    complete_line un
    expect_text unpack "$(cat offered)" || exit 1
    complete_line pack --co
    expect_text --codec "$(cat offered)" || exit 1
    complete_line pack --codec z
    expect_text "$(printf 'zlib\nzstd')" "$(cat offered)" || exit 1
    complete_line unpack ''
    expect_text "$(printf 'a.whr\nb.gz')" "$(cat offered)" || exit 1
    # -c has a codec behind it where data is made.
    complete_line unpack -c ''
    expect_text "$(printf 'a.whr\nb.gz')" "$(cat offered)" || exit 1
    complete_line pack -c z
    expect_text "$(printf 'zlib\nzstd')" "$(cat offered)" || exit 1
    complete_line -d ''
    expect_text "$(printf 'a.whr\nb.gz')" "$(cat offered)" || exit 1
    complete_line help lis
    expect_text list "$(cat offered)" || exit 1
    complete_line cat b
    expect_text b.gz "$(cat offered)" || exit 1
    set -e
}

test_bench_prints_a_table_and_json() {
    seq 1 20000 > data
    "$WHARF" bench --seconds 0 -c zlib -l 6 data > table
    expect_text 4 "$(wc -l < table)"
    grep -qE '^zlib +libdeflate +6 +[0-9.]+ ' table
    "$WHARF" bench --seconds 0 --json --clients 3 -b 64K data > json
    python3 - << 'EOS'
import json
bench = json.load(open('json'))
assert bench['threads'] == 3 and bench['chunk_nbytes'] == 65536, bench
assert {row['codec'] for row in bench['rows']} >= {'stored', 'deflate', 'zlib', 'gzip'}
assert {row['level'] for row in bench['rows'] if row['codec'] == 'gzip'} == {1, 6, 9}
for row in bench['rows']:
    for what in 'compress_gb_s', 'decode_cpu_gb_s', 'decode_reference_gb_s':
        speed = row[what]
        assert 0 < speed['min'] <= speed['median'] <= speed['max'], row
        assert speed['repetitions'] >= 5, row
    assert row['ratio'] > (2 if row['codec'] in ('deflate', 'zlib', 'gzip') else 0.9), row
EOS
    "$WHARF" bench --seconds 0 --json --type u16 -c rle1 -c rle2 -c stored data > json
    python3 - << 'EOS'
import json
rows = json.load(open('json'))['rows']
assert [(row['codec'], row.get('type')) for row in rows] == \
    [('rle1', 'u16'), ('rle2', 'u16'), ('stored', None)], rows
EOS
    "$WHARF" bench --report --seconds 0 -c stored data 2> report > table
    grep -q '^{"result":"ok",.*"in_nbytes":108894,.*"chunks":1,' report
    : > empty
    expect_status 4 "$WHARF" bench empty 2> message
    grep -q 'empty: is empty' message
    expect_status 4 "$WHARF" bench --seconds 0 -c stored data > /dev/full 2> message
}

run_tests
