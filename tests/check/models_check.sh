#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# proto/models, kernels/models: wake-ups, replay and leaving, searched exhaustively by Spin, as they
# are and with one rule taken out at a time, which the model has to notice.
# shellcheck source=tests/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"

# search OPTIMISATION MODEL [-DNAME]: leaves Spin's report in `report`.
search() {
    local optimisation=$1 model=$2
    shift 2
    cp "$TOP"/proto/models/*.pml "$TOP"/kernels/models/*.pml .
    spin "$@" -a "$model.pml"
    "${CC:-gcc}" "$optimisation" -w -DSAFETY -o pan pan.c
    ./pan -m100000 > report
    expect_status 1 grep 'max search depth too small' report
}

# holds MODEL: no state breaks it, and every step of it was taken.
holds() {
    # More optimisation takes as long again to compile as it saves.
    search -O1 "$1"
    grep -q 'errors: 0$' report
    grep -A 1000 '^unreached' report | grep '\.pml:' | grep -v -e '-end-' > unreached || true
    expect_text '' "$(cat unreached)"
}

# fails_without RULE MODEL HOW: with -DRULE there is a state that breaks it, HOW.  Which is found at
# once: compiling takes the longest.
fails_without() {
    search -O0 "$2" "-D$1"
    grep -q "$3" report
    grep -q 'errors: 1$' report
}

test_sleeping_daemon_is_always_woken() {
    holds submission_wakeup
}
test_sleeping_daemon_needs_the_wakers_fence() {
    fails_without NO_FENCE_WAKER submission_wakeup 'invalid end state'
}
test_sleeping_daemon_needs_the_sleepers_fence() {
    fails_without NO_FENCE_SLEEPER submission_wakeup 'invalid end state'
}

test_sleeping_client_is_always_woken() {
    holds completion_wakeup
}
test_sleeping_client_needs_the_wakers_fence() {
    fails_without NO_FENCE_WAKER completion_wakeup 'invalid end state'
}
test_sleeping_client_needs_the_sleepers_fence() {
    fails_without NO_FENCE_SLEEPER completion_wakeup 'invalid end state'
}

test_replay_completes_every_job_once() {
    holds replay
}
test_replay_needs_what_the_dead_daemon_had_taken() {
    fails_without REPLAY_UNTAKEN_ONLY replay 'invalid end state'
}
test_replay_needs_a_hello_that_waits_for_old_workers() {
    fails_without HELLO_EARLY replay 'assertion violated'
}
test_replay_needs_segments_of_its_own() {
    fails_without OLD_RINGS replay 'assertion violated'
}
test_completions_need_outputs_that_are_done() {
    fails_without PUBLISH_EARLY replay 'assertion violated'
}

test_deaths_count_against_what_was_begun_alone() {
    holds marks
}
test_marks_need_to_be_there_before_the_daemon_looks() {
    fails_without LOOK_UNMARKED marks 'assertion violated'
}
test_marks_need_to_be_there_before_the_daemon_begins() {
    fails_without BEGIN_UNMARKED marks 'assertion violated'
}
test_marks_of_looks_need_an_end() {
    fails_without KEEP_LOOK marks 'assertion violated'
}
test_marks_need_indices() {
    fails_without MARK_PLACES marks 'assertion violated'
}
test_clients_need_marks_to_spare_what_waited() {
    fails_without COUNT_ALL marks 'assertion violated'
}

test_streams_that_wait_for_jobs_have_their_memory() {
    holds done_words
}
test_done_words_need_to_be_read() {
    fails_without WORD_UNREAD done_words 'assertion violated'
}
test_done_words_need_outputs_that_are_done() {
    fails_without WORD_EARLY done_words 'assertion violated'
}
test_done_words_need_to_be_there_before_completions() {
    fails_without WORD_LATE done_words 'assertion violated'
}

test_leaving_kernel_overlooks_nothing() {
    holds epoch
}
test_leaving_kernel_needs_the_cores_fence() {
    fails_without NO_FENCE_FRONT epoch 'invalid end state'
}
test_leaving_kernel_needs_its_own_fence() {
    fails_without NO_FENCE_KERNEL epoch 'invalid end state'
}
test_leaving_kernel_needs_its_second_look() {
    fails_without NO_SECOND_LOOK epoch 'invalid end state'
}
test_leaving_kernel_needs_a_wakeup_while_it_leaves() {
    fails_without WAKE_ONLY_WHEN_OUT epoch 'invalid end state'
}
test_kernel_that_left_work_needs_the_workers_look() {
    fails_without NO_LOOK_AFTER_MORE epoch 'invalid end state'
}

test_kernels_that_make_room_need_blocks_that_stop() {
    fails_without TAKE_ALL_BY_BLOCKS epoch 'assertion violated'
}
test_kernels_that_make_room_need_to_say_that_there_is_more() {
    fails_without MAKE_ROOM_AS_OUT epoch 'invalid end state'
}
test_kernels_that_make_room_need_an_end_of_that() {
    fails_without NO_END_OF_VAIN epoch 'assertion violated'
}

test_places_of_items_under_way_are_passed_by() {
    holds places
}
test_passing_by_needs_an_item_that_was_taken() {
    fails_without PASS_WHAT_WAS_NOT_TAKEN places 'assertion violated'
}
test_passing_by_needs_room() {
    fails_without NO_LOOK_AT_ROOM places 'assertion violated'
}
test_passing_by_needs_a_kernel_that_touches_no_slot() {
    fails_without PASS_INTO_A_SLOT places 'assertion violated'
}
test_passing_by_needs_a_kernel_that_counts() {
    fails_without PASS_WITHOUT_COUNTING places 'invalid end state'
}

# The models are the C code's steps: every function that they name is there.
test_models_name_the_codes_functions() {
    cat "$TOP"/proto/models/*.pml | grep -oE '\bwharf_ring_[a-z_]+' | sort -u > named
    test -s named
    while read -r name; do
        grep -qE "\b$name\(" "$TOP/proto/ring_ops.h" || echo "$name is not in ring_ops.h"
    done < named > missing
    expect_text '' "$(cat missing)"
    grep -oE '\bwharf_work_[a-z_]+|\bleave_if_[a-z_]+|\b(choose_kernel|compare_kernels|take_some|tell_kind|place_group)\b' \
        -h "$TOP"/kernels/models/*.pml | sort -u > named
    test -s named
    while read -r name; do
        cat "$TOP"/kernels/work_queue_ops.h "$TOP"/kernels/epoch_{poll,state}.cuh | has_line -E "\b$name\(" ||
            echo "$name is not in the kernel's sources"
    done < named > missing
    expect_text '' "$(cat missing)"
}

run_tests
