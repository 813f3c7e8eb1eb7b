/* SPDX-License-Identifier: Apache-2.0 */
/* damage_make.c: good streams of all kinds of data and encoders, and what is done to them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "tests/bench/damage.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_random.h"

enum { N_STREAMS = 96 };

struct stream {
    uint8_t *bytes;
    size_t nbytes, out_nbytes;
};

static uint32_t parameter_of(uint32_t codec)
{
    return codec == WHARF_CODEC_RLE1 || codec == WHARF_CODEC_RLE2 ? WHARF_RLE_I32 : 0;
}

static const struct wharf_encoder_row *encoder_of(uint32_t codec, unsigned number)
{
    const struct wharf_encoder_row *rows = wharf_codec_find(codec)->ops->encoder_rows;
    unsigned n = 0;

    while (rows[n].name)
        n++;
    return &rows[number % n];
}

static struct stream make_stream(uint32_t codec, unsigned number, size_t nbytes)
{
    const struct wharf_encoder_row *row = encoder_of(codec, number / (unsigned)test_data_n_kinds);
    const struct wharf_encoder_options options = {
        .name = row->name,
        .level = number % 3 == 0   ? row->level_min
                 : number % 3 == 1 ? row->level_default
                                   : row->level_max,
        .parameter = parameter_of(codec),
    };
    uint8_t *plain = test_data_new(&test_data_kinds[number % test_data_n_kinds], number, nbytes);
    struct stream stream = {.out_nbytes = test_data_fit(codec, options.parameter, plain, nbytes)};

    stream.bytes = test_pack(codec, &options, plain, stream.out_nbytes, &stream.nbytes);
    free(plain);
    return stream;
}

/* One to four bits, half of them in the first 64 bytes, where headers and tables are; of an eighth
 * a part is other bytes, and an eighth is cut off. */
static size_t damage_stream_bytes(struct test_random *random, uint8_t *bytes, size_t nbytes)
{
    uint64_t how = test_random_below(random, 8);

    if (nbytes == 0)
        return 0;
    if (how == 0)
        return test_random_below(random, nbytes);
    if (how == 1) {
        size_t at = test_random_below(random, nbytes);
        size_t n = 1 + test_random_below(random, nbytes - at < 64 ? nbytes - at : 64);
        test_random_fill(random, bytes + at, n);
        return nbytes;
    }
    for (uint64_t n = 1 + test_random_below(random, 4); n > 0; n--) {
        uint64_t limit = test_random_one_in(random, 2) && nbytes > 64 ? 64 : nbytes;
        bytes[test_random_below(random, limit)] ^= (uint8_t)(1 << test_random_below(random, 8));
    }
    return nbytes;
}

static void must_write(FILE *file, const void *bytes, size_t nbytes)
{
    if (nbytes && fwrite(bytes, 1, nbytes, file) != nbytes) {
        perror("damage: cannot write");
        exit(4);
    }
}

void damage_make(const char *path, uint32_t codec, uint64_t n, size_t chunk_nbytes, uint64_t seed)
{
    struct damage_corpus head = {"whdamage", codec, parameter_of(codec), n};
    struct damage_chunk *chunks = calloc(n, sizeof(*chunks));
    struct stream streams[N_STREAMS];
    struct test_random random = {seed};
    FILE *file = fopen(path, "wb");
    uint64_t offset = sizeof(head) + n * sizeof(*chunks);

    if (!file || !chunks) {
        perror(path);
        exit(4);
    }
    for (unsigned i = 0; i < N_STREAMS; i++)
        streams[i] = make_stream(codec, i, chunk_nbytes);
    must_write(file, &head, sizeof(head));
    must_write(file, chunks, n * sizeof(*chunks)); /* once more when they are known */
    for (uint64_t i = 0; i < n; i++) {
        const struct stream *stream = &streams[i % N_STREAMS];
        uint8_t *copy = malloc(stream->nbytes + 1);

        memcpy(copy, stream->bytes, stream->nbytes);
        size_t nbytes = damage_stream_bytes(&random, copy, stream->nbytes);
        chunks[i] = (struct damage_chunk){offset, nbytes, stream->out_nbytes};
        must_write(file, copy, nbytes);
        offset += nbytes;
        free(copy);
    }
    if (fseek(file, sizeof(head), SEEK_SET) != 0)
        perror(path);
    must_write(file, chunks, n * sizeof(*chunks));
    if (fclose(file) != 0) {
        perror(path);
        exit(4);
    }
    for (unsigned i = 0; i < N_STREAMS; i++)
        free(streams[i].bytes);
    free(chunks);
}
