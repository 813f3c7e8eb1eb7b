/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_epoch_check.c: many items of all kinds under way at once, each held against the CPU engine's
 * outcome and bytes, with a margin around its destination that must stay as it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "encoders/decode_job.h"
#include "tests/gpu/gpu_epoch.h"
#include "tests/lib/test_random.h"

enum {
    N_PLACES = 128,
    MAX_DATA = 100000,
    PLACE_NBYTES = 160 << 10, /* source or destination with its margins */
    MARGIN = 32,
    FILLER = 0xa5,
    N_STREAMS = 64,
};

static const uint32_t codecs[] = {WHARF_CODEC_STORED, WHARF_CODEC_DEFLATE, WHARF_CODEC_ZLIB,
                                  WHARF_CODEC_GZIP};
enum { N_CODECS = sizeof(codecs) / sizeof(codecs[0]) };

struct check_place {
    struct wharf_outcome expected;
    uint8_t *bytes; /* expected */
    bool cancelled, busy;
    struct wharf_work_item item;
};

struct check {
    struct gpu_epoch *e;
    struct test_random random;
    struct gpu_packed streams[N_CODECS][N_STREAMS];
    uint8_t *in, *out;
    struct check_place places[N_PLACES];
    /* Of items under way by the queue's places. */
    uint32_t place_of[1 << 16];
    size_t n_wrong, n_cancelled, n_good;
};

static uint64_t below(struct check *check, uint64_t limit)
{
    return test_random_below(&check->random, limit);
}

static void *map_places(struct check *check)
{
    size_t nbytes = (size_t)N_PLACES * PLACE_NBYTES;
    uint64_t address;
    void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("wharf_gpu_epoch: memory");
        exit(3);
    }
    gpu_epoch_must(check->e, "map_host",
                   check->e->t.ops->map_host(check->e->t.epoch, p, nbytes, 0, &address));
    return p;
}

/* Text-like and random pieces, in sizes around 0, a warp and the largest. */
static void make_streams(struct check *check)
{
    static uint8_t data[MAX_DATA];
    uint32_t most = check->e->t.config.chunk_nbytes;
    most = most < MAX_DATA ? most : MAX_DATA;
    for (unsigned k = 0; k < N_STREAMS; k++) {
        size_t nbytes = k % 4 == 0 ? below(check, 64) : below(check, most);
        unsigned odd = 1 + (unsigned)below(check, 40);
        for (size_t i = 0; i < nbytes; i++)
            data[i] = (uint8_t)(below(check, odd) == 0 ? test_random_next(&check->random) : i / 9);
        for (unsigned c = 0; c < N_CODECS; c++) {
            struct gpu_source source = {
                .codec = wharf_codec_find(codecs[c]), .codec_number = codecs[c], .file = data};
            gpu_pack(&source, nbytes, nbytes ? nbytes : 1, 1);
            check->streams[c][k] = source.packed[0];
            free(source.packed);
        }
    }
}

static void expect_of_cpu(struct check_place *place)
{
    struct wharf_decode_job job = {
        .codec = place->item.codec,
        .flags = place->item.flags,
        .checksum = place->item.checksum,
        .in = (const uint8_t *)(uintptr_t)place->item.src,
        .in_nbytes = place->item.src_nbytes,
        .out = place->bytes,
        .out_avail = place->item.dst_nbytes,
    };
    wharf_decode_job_run(&job, 0, &place->expected);
}

/* A stream, as it is, cut or damaged, to a destination that fits or not, of any alignment. */
static void make_item(struct check *check, unsigned i)
{
    struct check_place *place = &check->places[i];
    unsigned c = (unsigned)below(check, N_CODECS);
    const struct gpu_packed *stream = &check->streams[c][below(check, N_STREAMS)];
    uint8_t *src = check->in + (size_t)i * PLACE_NBYTES + below(check, 300);
    uint8_t *dst = check->out + (size_t)i * PLACE_NBYTES + MARGIN + below(check, 300);
    size_t nbytes = stream->nbytes;
    uint32_t most = check->e->t.config.chunk_nbytes;

    memcpy(src, stream->data, nbytes);
    if (below(check, 4) == 0)
        nbytes = below(check, nbytes + 1);
    if (below(check, 4) == 0 && nbytes)
        src[below(check, nbytes)] ^= (uint8_t)(1 + below(check, 255));
    memset(check->out + (size_t)i * PLACE_NBYTES, FILLER, PLACE_NBYTES);
    place->item = (struct wharf_work_item){
        .src = (uintptr_t)src,
        .dst = (uintptr_t)dst,
        .src_nbytes = (uint32_t)(nbytes < most ? nbytes : most),
        .dst_nbytes = (uint32_t)(below(check, 3) ? (most < MAX_DATA ? most : MAX_DATA)
                                                 : below(check, most < MAX_DATA ? most : MAX_DATA)),
        .codec = (uint16_t)codecs[c],
        .flags = (uint16_t)(below(check, 4) ? 0 : below(check, 8)),
        .opcode = WHARF_WORK_DECODE,
        .output = WHARF_WORK_TO_HOST,
    };
    expect_of_cpu(place);
    place->cancelled = false;
    place->busy = true;
}

static bool margins_stand(const struct check *check, unsigned i)
{
    const uint8_t *begin = check->out + (size_t)i * PLACE_NBYTES;
    const uint8_t *dst = (const uint8_t *)(uintptr_t)check->places[i].item.dst;
    const uint8_t *behind = dst + check->places[i].item.dst_nbytes;
    for (const uint8_t *p = begin; p < begin + PLACE_NBYTES; p++) {
        if (p == dst)
            p = behind;
        if (*p != FILLER)
            return false;
    }
    return true;
}

static void complain(const struct check_place *place, const struct wharf_work_completion *c)
{
    fprintf(stderr,
            "codec %u, %u bytes to %u, flags %u, output %u: result %u, reason %u, bit %u, in %u, "
            "out %u; expected %u, %u, %llu, %llu, %llu\n",
            place->item.codec, place->item.src_nbytes, place->item.dst_nbytes, place->item.flags,
            place->item.output, c->result, c->reason, c->bit_offset, c->in_nbytes, c->out_nbytes,
            place->expected.result, place->expected.reason,
            (unsigned long long)place->expected.bit_offset,
            (unsigned long long)place->expected.in_nbytes,
            (unsigned long long)place->expected.out_nbytes);
}

static void check_completion(struct check *check, const struct wharf_work_completion *c)
{
    unsigned i = check->place_of[c->item & (check->e->t.config.n_entries - 1)];
    struct check_place *place = &check->places[i];
    const struct wharf_outcome *expected = &place->expected;
    bool right = c->result == expected->result && c->reason == expected->reason &&
                 c->bit_offset == expected->bit_offset && c->in_nbytes == expected->in_nbytes &&
                 c->out_nbytes == expected->out_nbytes &&
                 memcmp((void *)(uintptr_t)place->item.dst, place->bytes, c->out_nbytes) == 0;
    bool was_cancelled = place->cancelled && c->result == WHARF_CANCELLED;
    check->n_cancelled += was_cancelled;
    check->n_good += c->result == WHARF_OK;
    if ((!right && !was_cancelled) || !margins_stand(check, i)) {
        check->n_wrong++;
        if (check->n_wrong < 20)
            complain(place, c);
    }
    place->busy = false;
}

static void reap_all(struct check *check)
{
    struct wharf_work_completion completion;
    while (test_epoch_reap(&check->e->t, &completion))
        check_completion(check, &completion);
}

static void submit_place(struct check *check, unsigned i)
{
    struct test_epoch *t = &check->e->t;
    make_item(check, i);
    uint32_t index = test_epoch_submit(t, &check->places[i].item);
    check->place_of[index & (t->config.n_entries - 1)] = i;
    if (below(check, 3))
        test_epoch_publish(t);
    if (below(check, 20) == 0)
        check->places[i].cancelled = test_epoch_cancel(t, index);
}

void gpu_epoch_check(struct gpu_epoch *e, size_t n)
{
    static struct check check;
    check.e = e;
    check.random.state = 6;
    check.in = map_places(&check);
    check.out = map_places(&check);
    make_streams(&check);
    for (unsigned i = 0; i < N_PLACES; i++)
        if (!(check.places[i].bytes = malloc(PLACE_NBYTES)))
            exit(3);
    size_t n_parks = 0;
    for (size_t n_submitted = 0; n_submitted < n;) {
        unsigned i = (unsigned)below(&check, N_PLACES);
        if (!check.places[i].busy && test_epoch_has_room(&e->t)) {
            submit_place(&check, i);
            n_submitted++;
        }
        if (below(&check, 2000) == 0) {
            test_epoch_publish(&e->t);
            test_epoch_park(&e->t);
            test_epoch_unpark(&e->t);
            n_parks++;
        }
        test_epoch_publish(&e->t);
        reap_all(&check);
    }
    while (e->t.n_under_way) {
        struct wharf_work_completion completion = test_epoch_await(&e->t);
        check_completion(&check, &completion);
    }
    e->wrong |= check.n_wrong > 0;
    printf("{\"peer\":\"wharf\",\"mode\":\"epoch-check\",\"n\":%zu,\"good\":%zu,\"cancelled\":%zu,"
           "\"wrong\":%zu,\"parks\":%zu,\"kernels\":%llu,%s}\n",
           n, check.n_good, check.n_cancelled, check.n_wrong, n_parks,
           (unsigned long long)e->t.n_started, gpu_epoch_facts(e));
}
