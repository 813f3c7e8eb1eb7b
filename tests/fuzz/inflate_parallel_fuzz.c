/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_parallel_fuzz.c: streams of many parts, with any changes, by several threads.
 *
 * The outcome, the bytes and what was verified must be the serial decoder's.  The input says which
 * of a few streams is taken and how, in three bytes, and then how it is changed
 * (test_changed_stream).
 */
#include <stdlib.h>

#include "tests/lib/test_changed_stream.h"
#include "tests/lib/test_parallel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { RAW_NBYTES = 60000 };

static void check(int good)
{
    if (!good)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static uint8_t bytes[2 * RAW_NBYTES];
    struct test_parallel_setting setting = {0};
    struct test_parallel parallel;
    unsigned format;
    size_t n;

    if (nbytes < 3)
        return 0;
    format = data[0] / TEST_STREAM_SHAPES % TEST_STREAM_FORMATS;
    n = test_changed_stream(data[0] % TEST_STREAM_SHAPES, format, RAW_NBYTES, data + 3, nbytes - 3,
                            bytes);
    setting.n_workers = 1 + data[1] % 2;
    setting.part_nbytes = 500 + 40 * (size_t)data[2];
    setting.max_queued = data[1] / 2 % 2;
    parallel = test_parallel_decode((enum wharf_inflate_format)format, bytes, n, &setting);
    check(parallel.error == 0);
    check(test_parallel_differs((enum wharf_inflate_format)format, bytes, n, &parallel) == NULL);
    test_parallel_free(&parallel);
    return 0;
}
