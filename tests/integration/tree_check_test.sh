#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The check of the tree finds what it is there to find: each test breaks one rule of a small tree.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

SPDX='/* SPDX-License-Identifier: Apache-2.0 */'

make_tree() {
    mkdir tree
    cd tree
    mkdir -p proto encoders/demo tests/vectors/demo/{ok,bad}
    touch Makefile LICENSE tests/vectors/demo/{ok,bad}/one
    echo '# SPDX-License-Identifier: Apache-2.0' > Makefile
    echo "$SPDX" > proto/low.h
    printf '%s\n    X(DEMO, demo, 0, "a codec")\n' "$SPDX" > encoders/wharf_codec.h
    printf '%s\n#include "proto/low.h"\n' "$SPDX" > encoders/demo/demo_format.h
}

# expect_broken RULE TEXT: exactly this rule is broken, and the report says where.
expect_broken() {
    expect_status 1 "$TOP/tests/check/tree_check.py" . > ../report
    expect_text "$1" "$(sed -n 's/^not ok [0-9]* - //p' ../report)"
    grep -q "^# .*$2" ../report
}

test_good_tree_passes() {
    make_tree
    "$TOP/tests/check/tree_check.py" .
}

test_finds_upward_include() {
    make_tree
    printf '%s\n#include "encoders/wharf_codec.h"\n' "$SPDX" > proto/high.h
    expect_broken includes_go_downwards 'proto/high.h:2'
}

test_finds_upward_include_by_plain_name() {
    make_tree
    printf '%s\n#include "wharf_codec.h"\n' "$SPDX" > proto/high.h
    expect_broken includes_go_downwards 'proto/high.h:2'
}

test_finds_two_files_of_one_name() {
    make_tree
    cp proto/low.h encoders/low.h
    expect_broken file_names_are_unique 'low.h'
}

test_finds_missing_licence() {
    make_tree
    echo 'int x;' > proto/x.c
    expect_broken files_name_their_licence 'proto/x.c'
}

test_finds_long_file() {
    make_tree
    { echo "$SPDX"; seq 1000; } > proto/x.c
    expect_broken files_are_short 'proto/x.c'
}

test_finds_what_is_left_to_do() {
    make_tree
    printf '%s\n/* %s: everything */\n' "$SPDX" 'TO''DO' > proto/x.c
    expect_broken nothing_is_left_to_do 'proto/x.c:2'
}

test_finds_trailing_blanks_and_tabs() {
    make_tree
    printf '%s\nint x; \n' "$SPDX" > proto/x.c
    printf '%s\n\tint y;\n' "$SPDX" > proto/y.c
    expect_broken text_is_clean 'proto/x.c:2'
    grep -q 'proto/y.c:2' ../report
}

test_finds_script_that_cannot_run() {
    make_tree
    printf '#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n' > tests/x.sh
    expect_broken scripts_are_executable 'tests/x.sh'
}

test_finds_dead_link() {
    make_tree
    echo 'See [the format](encoders/FORMAT.md#layout).' > README.md
    expect_broken links_in_documents_lead_somewhere 'encoders/FORMAT.md'
}

test_finds_codec_without_vectors() {
    make_tree
    rm tests/vectors/demo/bad/one
    expect_broken codecs_have_their_folders 'tests/vectors/demo/bad'
}

test_finds_stray_top_level_file() {
    make_tree
    echo '# SPDX-License-Identifier: Apache-2.0' > notes.txt
    expect_broken top_level_is_fixed 'notes.txt'
}

test_finds_history_in_a_page() {
    make_tree
    echo 'Faster since then.' > proto/PAGE.md
    expect_broken reference_pages_tell_no_history 'proto/PAGE.md:1'
}

test_finds_pipe_whose_reader_ends_early() {
    make_tree
    mkdir tests/lib
    { echo "# ${SPDX:3:35}"; echo 'a || grep -q x y'; echo 'a |'; echo '    grep -xq x'; } > tests/lib/x.sh
    expect_broken scripts_read_pipes_to_their_end 'tests/lib/x.sh:4'
}

run_tests
