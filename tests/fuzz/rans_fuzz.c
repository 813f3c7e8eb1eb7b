/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans: every form of the decoder against the reference, and what thinning makes of the same bytes
 * must decode, or not, like they do.
 *
 * The first byte chooses the size of symbols and the room for the output, the second how many
 * splits thinning leaves; the rest is the source.
 */
#include <stdlib.h>
#include <string.h>

#include "encoders/rans/rans_thin.h"
#include "tests/lib/test_rans.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum { HEAD_NBYTES = 2, MAX_OUT_NBYTES = 1 << 16 };

static const size_t rooms[] = {0, 1, 64, 1000, 4099, 6000, 20000, MAX_OUT_NBYTES};

static void check(int good)
{
    if (!good)
        abort();
}

/* Fewer splits can only hide lies: what was good stays good, with the same output. */
static void thin(const uint8_t *in, size_t in_nbytes, uint32_t max_splits, uint32_t parameter,
                 const uint8_t *want, const struct wharf_outcome *outcome)
{
    static uint8_t out[MAX_OUT_NBYTES];
    struct wharf_rans_stream stream;
    struct wharf_outcome other;
    size_t bound, nbytes;
    uint8_t *thinned;

    if (!wharf_rans_stream_parse(in, in_nbytes, &stream, &other))
        return;
    bound = wharf_rans_thin_bound(&stream, max_splits);
    thinned = malloc(bound);
    check(thinned && wharf_rans_thin(&stream, in, max_splits, thinned, bound, &nbytes) == 0);
    check(nbytes <= bound);
    check(!test_rans_decode_all(thinned, nbytes, parameter, out, outcome->out_nbytes, &other));
    check(outcome->result != WHARF_OK || (other.result == WHARF_OK && other.in_nbytes == nbytes));
    if (outcome->result == WHARF_OK && outcome->out_nbytes)
        check(memcmp(out, want, outcome->out_nbytes) == 0);
    free(thinned);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static uint8_t out[MAX_OUT_NBYTES];
    struct wharf_outcome outcome;

    if (nbytes < HEAD_NBYTES)
        return 0;
    uint32_t parameter = data[0] & 1;
    size_t out_avail = rooms[data[0] >> 1 & 7];
    uint32_t max_splits = 1 + data[1];
    data += HEAD_NBYTES;
    nbytes -= HEAD_NBYTES;
    check(!test_rans_decode_all(data, nbytes, parameter, out, out_avail, &outcome));
    thin(data, nbytes, max_splits, parameter, out, &outcome);
    return 0;
}
