/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_memory_share.c: bytes a second of several processes, each with its sources and outputs in its
 * own GPU memory, of which each has one small batch in flight.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/gpu/gpu_memory_parts.h"
#include "tests/gpu/gpu_pack.h"

enum { MOST_PROCESSES = 64, MOST_CHUNKS = 1024, N_WARM_UP = 50 };

/* What a process says when it is done. */
struct share {
    uint64_t n_batches, elapsed_ns;
    unsigned n_wrong;
};

struct client {
    const struct gpu_source *source;
    struct wharf *wharf;
    struct gpu_client_memory sources, outputs;
    struct wharf_batch_chunk chunks[MOST_CHUNKS];
    struct wharf_batch batch;
};

static size_t stride(const struct client *client)
{
    return (gpu_chunk_nbytes(client->source) + 255) & ~(size_t)255;
}

static void set_up(struct client *client, uint32_t n_chunks)
{
    const struct gpu_source *source = client->source;
    size_t in_nbytes = 0, at = 0;

    for (uint32_t i = 0; i < n_chunks; i++)
        in_nbytes += source->packed[i % source->n_chunks].nbytes + 64;
    client->wharf = gpu_memory_open(WHARF_ENGINE_GPU, 4, 4 << 20);
    client->sources = gpu_memory_register(client->wharf, in_nbytes);
    client->outputs = gpu_memory_register(client->wharf, n_chunks * stride(client));
    for (uint32_t i = 0; i < n_chunks; i++) {
        const struct gpu_packed *packed = &source->packed[i % source->n_chunks];
        gpu_memory_must_cuda("copying",
                             gpu_client_put(client->sources.at + at, packed->data, packed->nbytes));
        client->chunks[i] = (struct wharf_batch_chunk){
            .in = client->sources.at + at,
            .in_nbytes = (uint32_t)packed->nbytes,
            .out = client->outputs.at + i * stride(client),
            .out_avail = (uint32_t)gpu_chunk_nbytes(source),
        };
        at += packed->nbytes + 64;
    }
    client->batch = (struct wharf_batch)WHARF_BATCH_INIT;
    client->batch.codec = source->codec_number;
    client->batch.parameter = source->parameter;
    client->batch.chunks = client->chunks;
    client->batch.n_chunks = n_chunks;
}

static void run_batch(struct client *client)
{
    struct wharf_completion completion;

    gpu_memory_must("submitting", wharf_submit_batch(client->wharf, &client->batch));
    gpu_memory_must("waiting", wharf_wait(client->wharf, &completion, 1, 1, -1));
    if (completion.result != WHARF_OK) {
        printf("# %s\n", wharf_result_name(completion.result));
        exit(1);
    }
}

static unsigned count_wrong(const struct client *client)
{
    const struct gpu_source *source = client->source;
    size_t nbytes = gpu_chunk_nbytes(source);
    uint8_t *own = malloc(nbytes);
    unsigned n_wrong = 0;

    for (uint32_t i = 0; i < client->batch.n_chunks; i++) {
        const uint8_t *plain = source->file + i % source->n_chunks * source->chunk_nbytes;
        gpu_memory_must_cuda("copying", gpu_client_get(own, client->chunks[i].out, nbytes));
        n_wrong += memcmp(own, plain, nbytes) != 0;
    }
    free(own);
    return n_wrong;
}

/* One process: says that it is ready, waits until all are, runs, and says what it did. */
_Noreturn static void run_client(const struct gpu_source *source, uint32_t n_chunks, double seconds,
                                 int go, int said)
{
    struct client *client = calloc(1, sizeof(*client));
    struct share share = {0};
    char byte = 0;

    client->source = source;
    set_up(client, n_chunks);
    for (unsigned i = 0; i < N_WARM_UP; i++)
        run_batch(client);
    if (write(said, &share, sizeof(share)) != sizeof(share) || read(go, &byte, 1) != 0)
        _exit(3);
    uint64_t begun_ns = wharf_now_ns();
    for (; (double)share.elapsed_ns < 1e9 * seconds; share.n_batches++) {
        run_batch(client);
        share.elapsed_ns = wharf_now_ns() - begun_ns;
    }
    share.n_wrong = count_wrong(client);
    _exit(write(said, &share, sizeof(share)) == sizeof(share) ? 0 : 3);
}

static struct share hear(int from)
{
    struct share share;

    if (read(from, &share, sizeof(share)) != sizeof(share)) {
        printf("# a process has ended too soon\n");
        exit(1);
    }
    return share;
}

void gpu_memory_share(const struct gpu_source *source, const char *name, unsigned n_processes,
                      uint32_t n_chunks, double seconds)
{
    int go[2], said[2];
    double rate = 0, batches = 0;
    unsigned n_wrong = 0;

    if (n_processes > MOST_PROCESSES || n_chunks > MOST_CHUNKS || pipe(go) < 0 || pipe(said) < 0) {
        printf("# too many processes or chunks, or no pipes\n");
        exit(1);
    }
    fflush(stdout);
    for (unsigned i = 0; i < n_processes; i++) {
        if (fork() == 0) {
            close(go[1]);
            close(said[0]);
            run_client(source, n_chunks, seconds, go[0], said[1]);
        }
    }
    close(said[1]);
    for (unsigned i = 0; i < n_processes; i++)
        hear(said[0]);
    close(go[1]); /* all of them read its end */
    for (unsigned i = 0; i < n_processes; i++) {
        struct share share = hear(said[0]);
        batches += (double)share.n_batches * 1e9 / (double)share.elapsed_ns;
        n_wrong += share.n_wrong;
    }
    rate = 1e-9 * batches * n_chunks * (double)gpu_chunk_nbytes(source);
    close(go[0]);
    close(said[0]);
    while (wait(NULL) > 0)
        ;
    printf("{\"what\":\"gpu_memory_share\",\"codec\":\"%s\",\"data\":\"%s\",\"chunk_nbytes\":%zu,"
           "\"n_processes\":%u,\"n_chunks\":%u,\"seconds\":%.2f,\"GBps\":%.2f,"
           "\"us_a_batch\":%.1f,\"wrong\":%u}\n",
           source->codec->name, name, source->chunk_nbytes, n_processes, n_chunks, seconds, rate,
           1e6 * n_processes / batches, n_wrong);
    fflush(stdout);
}
