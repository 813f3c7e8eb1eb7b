/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls, on the embedded engine. */
#include "clientlib/wharf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "encoders/decode_job.h"

struct wharf {
    uint32_t engine; /* CPU or REFERENCE */
};

const char *wharf_version(void)
{
    return WHARF_VERSION;
}

const char *wharf_codec_name(uint32_t codec)
{
    const struct wharf_codec_row *row = wharf_codec_find(codec);

    return row ? row->name : NULL;
}

const char *wharf_codec_summary(uint32_t codec)
{
    const struct wharf_codec_row *row = wharf_codec_find(codec);

    return row ? row->summary : NULL;
}

/*
 * Copies a struct of the caller's, which begins with its size, into ours of `nbytes`, of which
 * the first version had `min_nbytes`.  Members that the caller did not have become zero;
 * members that we do not have must be zero.  A size over a page is a struct that nobody
 * initialised: it is refused before memory that may not be there is read.
 */
enum { MAX_STRUCT_NBYTES = 4096 };
static int copy_sized_struct(void *to, size_t nbytes, size_t min_nbytes, const void *from)
{
    const unsigned char *bytes = (const unsigned char *)from;
    uint32_t from_nbytes;

    memcpy(&from_nbytes, from, sizeof(from_nbytes));
    if (from_nbytes < min_nbytes)
        return -EINVAL;
    if (from_nbytes > MAX_STRUCT_NBYTES)
        return -E2BIG;
    for (size_t i = nbytes; i < from_nbytes; i++)
        if (bytes[i])
            return -E2BIG;
    memset(to, 0, nbytes);
    memcpy(to, from, from_nbytes < nbytes ? from_nbytes : nbytes);
    return 0;
}

/* The sizes of the first version's structs.  They never change, whatever is added later. */
enum {
    OPTIONS_NBYTES_0_1 = offsetof(struct wharf_options, reserved) + sizeof(uint32_t),
    JOB_NBYTES_0_1 = offsetof(struct wharf_job, out_avail) + sizeof(size_t),
};

static int choose_engine(uint32_t engine, uint32_t *ret_engine)
{
    switch (engine) {
    case WHARF_ENGINE_AUTO:
    case WHARF_ENGINE_CPU:
        *ret_engine = WHARF_ENGINE_CPU;
        return 0;
    case WHARF_ENGINE_REFERENCE:
        *ret_engine = WHARF_ENGINE_REFERENCE;
        return 0;
    case WHARF_ENGINE_GPU:
    case WHARF_ENGINE_SIMT:
        return -EOPNOTSUPP;
    default:
        return -EINVAL;
    }
}

int wharf_open(const struct wharf_options *options, struct wharf **ret_wharf)
{
    struct wharf_options own = WHARF_OPTIONS_INIT;
    struct wharf *wharf;
    uint32_t engine;
    int r;

    if (!ret_wharf)
        return -EINVAL;
    if (options) {
        r = copy_sized_struct(&own, sizeof(own), OPTIONS_NBYTES_0_1, options);
        if (r < 0)
            return r;
    }
    if ((own.flags & ~(uint32_t)WHARF_OPEN_EMBEDDED) || own.reserved)
        return -EINVAL;
    r = choose_engine(own.engine, &engine);
    if (r < 0)
        return r;
    wharf = malloc(sizeof(*wharf));
    if (!wharf)
        return -ENOMEM;
    wharf->engine = engine;
    *ret_wharf = wharf;
    return 0;
}

void wharf_close(struct wharf *wharf)
{
    free(wharf);
}

uint32_t wharf_engine(const struct wharf *wharf)
{
    return wharf->engine;
}

int wharf_decompress(struct wharf *wharf, const struct wharf_job *job,
                     struct wharf_outcome *ret_outcome)
{
    struct wharf_job own;
    struct wharf_decode_job decode_job;
    int r;

    if (!wharf || !job || !ret_outcome)
        return -EINVAL;
    r = copy_sized_struct(&own, sizeof(own), JOB_NBYTES_0_1, job);
    if (r < 0)
        return r;
    decode_job = (struct wharf_decode_job){
        .codec = own.codec,
        .flags = own.flags,
        .checksum = own.checksum,
        .in = own.in,
        .in_nbytes = own.in_nbytes,
        .out = own.out,
        .out_avail = own.out_avail,
    };
    wharf_decode_job_run(&decode_job, wharf->engine == WHARF_ENGINE_REFERENCE, ret_outcome);
    return 0;
}
