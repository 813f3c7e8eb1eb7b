/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans: every form of the decoder against the reference, and what thinning makes of the same bytes
 * must decode, or not, like they do; and so must the stream with its model registered.
 *
 * The first byte chooses the size of symbols and the room for the output, the second how many
 * splits thinning leaves; the rest is the source.
 */
#include <stdlib.h>
#include <string.h>

#include "encoders/little_endian.h"
#include "encoders/rans/rans_format.h"
#include "encoders/rans/rans_image.h"
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

/* Larger images are of shapes that streams cannot have. */
enum { MAX_IMAGE_NBYTES = 1 << 20 };

/* The image of a stream's model, or NULL. */
static void *register_model(const uint8_t *in, uint32_t model_nbytes)
{
    uint8_t *model = malloc(WHARF_RANS_HEADER_NBYTES + (size_t)model_nbytes);
    size_t nbytes = WHARF_RANS_HEADER_NBYTES + (size_t)model_nbytes;
    size_t image_nbytes;
    void *image = NULL;

    check(model != NULL);
    memcpy(model, in, nbytes);
    memset(model + 12, 0, 4); /* no indexes */
    if (wharf_rans_image_nbytes(model, nbytes, &image_nbytes) == WHARF_REASON_NONE &&
        image_nbytes <= MAX_IMAGE_NBYTES) {
        image = calloc(1, image_nbytes);
        check(image != NULL);
        if (wharf_rans_image_make(model, nbytes, image) != WHARF_REASON_NONE) {
            free(image);
            image = NULL;
        }
    }
    free(model);
    return image;
}

/* The same stream without its model. */
static void decode_registered(const uint8_t *in, size_t in_nbytes, size_t out_avail,
                              const uint8_t *want, const struct wharf_outcome *outcome)
{
    static uint8_t out[MAX_OUT_NBYTES];
    uint32_t model_nbytes = wharf_load_le32(in + 8);
    struct wharf_outcome other;

    if (model_nbytes == 0 || model_nbytes > in_nbytes - WHARF_RANS_HEADER_NBYTES)
        return;
    void *image = register_model(in, model_nbytes);
    if (!image)
        return;
    size_t nbytes = in_nbytes - model_nbytes;
    uint8_t *without = malloc(nbytes);
    check(without != NULL);
    memcpy(without, in, WHARF_RANS_HEADER_NBYTES);
    memset(without + 8, 0, 4);
    memcpy(without + WHARF_RANS_HEADER_NBYTES, in + WHARF_RANS_HEADER_NBYTES + model_nbytes,
           nbytes - WHARF_RANS_HEADER_NBYTES);
    check(!test_rans_decode_registered(without, nbytes, image, out, out_avail, &other));
    check(other.result == outcome->result && other.reason == outcome->reason);
    check(other.out_nbytes == outcome->out_nbytes);
    if (other.result == WHARF_OK)
        check(other.in_nbytes == nbytes && memcmp(out, want, other.out_nbytes) == 0);
    free(without);
    free(image);
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
    /* A header that is wrong may be right of a model alone. */
    if (nbytes >= WHARF_RANS_HEADER_NBYTES && outcome.reason != WHARF_REASON_RANS_HEADER)
        decode_registered(data, nbytes, out_avail, out, &outcome);
    return 0;
}
