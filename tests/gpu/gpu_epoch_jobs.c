/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/gpu/gpu_epoch.h"

enum { ALIGN_NBYTES = 256, PAGE = 4096, PUBLISH_EVERY = 16 };

double gpu_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

struct gpu_latency gpu_latency_of(double *us, size_t n)
{
    qsort(us, n, sizeof(us[0]), by_size);
    return (struct gpu_latency){us[0], us[n / 2], us[n * 99 / 100], us[n - 1], n};
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "wharf_gpu_epoch: %s: %s\n", what, why);
    exit(3);
}

void gpu_epoch_must(const struct gpu_epoch *e, const char *what, int rc)
{
    if (rc < 0)
        die(what, e->t.ops->error_text());
}

const char *gpu_epoch_facts(const struct gpu_epoch *e)
{
    static char facts[600];
    static const char *const outputs[] = {"host", "device"};
    snprintf(
        facts, sizeof(facts),
        "\"engine\":\"%s\",\"device\":\"%s\",\"warps\":%u,\"warps_per_sm\":%u,"
        "\"registers\":%u,\"local_nbytes\":%u,\"output\":\"%s\",\"depth\":%u,"
        "\"per_batch\":%s,\"idle_us\":%u,\"stay_us\":%u,\"few\":%u,\"most_out\":%u,\"share\":%u,"
        "\"share_by\":\"%s\"",
        e->t.ops->name, e->info.device_name, e->info.n_warps, e->info.n_warps_per_sm,
        e->info.n_registers, e->info.n_local_nbytes, outputs[e->output], e->depth,
        e->t.config.per_batch ? "true" : "false", e->t.config.idle_us, e->t.config.stay_us,
        e->t.config.few, e->t.config.most_out, e->t.config.share ? e->t.config.share : 100,
        e->info.share_text);
    return facts;
}

void gpu_epoch_add_times(struct gpu_epoch_times *times,
                         const struct wharf_work_completion *completion)
{
    times->wait += completion->wait_ns / 1e3;
    times->fetch += completion->fetch_ns / 1e3;
    times->decode += completion->decode_ns / 1e3;
    times->move += completion->move_ns / 1e3;
}

const char *gpu_epoch_times_text(const struct gpu_epoch_times *times, size_t n)
{
    static char text[200];
    double each = 1.0 / (double)n;
    snprintf(text, sizeof(text),
             "\"wait_us\":%.2f,\"fetch_us\":%.2f,\"decode_us\":%.2f,\"move_us\":%.2f,",
             times->wait * each, times->fetch * each, times->decode * each, times->move * each);
    return text;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static size_t aligned(size_t nbytes)
{
    return (nbytes + ALIGN_NBYTES - 1) / ALIGN_NBYTES * ALIGN_NBYTES;
}

static uint8_t *map_pages(struct gpu_epoch *e, size_t nbytes, size_t *ret_nbytes)
{
    uint64_t address;
    *ret_nbytes = (nbytes + PAGE - 1) / PAGE * PAGE + PAGE;
    uint8_t *p = mmap(NULL, *ret_nbytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (p == MAP_FAILED)
        die("memory", strerror(errno));
    gpu_epoch_must(e, "map_host", e->t.ops->map_host(e->t.epoch, p, *ret_nbytes, 0, &address));
    if (address != (uintptr_t)p)
        die("map_host", "the device has another address for it");
    return p;
}

static struct wharf_work_item item_of(const struct gpu_epoch *e, const struct gpu_jobs *jobs,
                                      const struct gpu_source *source, size_t i, uint64_t src)
{
    const struct gpu_packed *packed = &source->packed[i % source->n_chunks];
    uint64_t on_device = jobs->d_out + i * jobs->stride;
    bool to_device = e->output == WHARF_WORK_TO_DEVICE;
    return (struct wharf_work_item){
        .src = src,
        .dst = to_device ? on_device : (uintptr_t)jobs->out + i * jobs->stride,
        .src_nbytes = (uint32_t)packed->nbytes,
        .dst_nbytes = (uint32_t)gpu_chunk_nbytes(source),
        .codec = (uint16_t)source->codec_number,
        .parameter = (uint16_t)source->parameter,
        .opcode = WHARF_WORK_DECODE,
        .output = (uint8_t)e->output,
    };
}

void gpu_jobs_new(struct gpu_epoch *e, struct gpu_jobs *jobs, const struct gpu_source *source,
                  size_t n_jobs)
{
    size_t image_nbytes = 0;
    memset(jobs, 0, sizeof(*jobs));
    for (size_t i = 0; i < n_jobs; i++)
        image_nbytes += aligned(source->packed[i % source->n_chunks].nbytes);
    jobs->n_jobs = n_jobs;
    jobs->stride = aligned(gpu_chunk_nbytes(source));
    jobs->items = calloc(n_jobs, sizeof(*jobs->items));
    if (!jobs->items)
        die("memory", strerror(ENOMEM));
    jobs->in = map_pages(e, image_nbytes, &jobs->in_mapped_nbytes);
    jobs->out = map_pages(e, n_jobs * jobs->stride, &jobs->out_mapped_nbytes);
    if (e->output != WHARF_WORK_TO_HOST)
        gpu_epoch_must(e, "alloc",
                       e->t.ops->alloc(e->t.epoch, n_jobs * jobs->stride, &jobs->d_out));
    size_t at = 0;
    for (size_t i = 0; i < n_jobs; i++) {
        const struct gpu_packed *packed = &source->packed[i % source->n_chunks];
        memcpy(jobs->in + at, packed->data, packed->nbytes);
        jobs->items[i] = item_of(e, jobs, source, i, (uintptr_t)(jobs->in + at));
        jobs->in_nbytes += packed->nbytes;
        at += aligned(packed->nbytes);
    }
}

void gpu_jobs_free(struct gpu_epoch *e, struct gpu_jobs *jobs)
{
    const struct wharf_epoch_ops *ops = e->t.ops;
    test_epoch_park(&e->t);
    gpu_epoch_must(e, "unmap", ops->unmap_host(e->t.epoch, jobs->in, jobs->in_mapped_nbytes));
    gpu_epoch_must(e, "unmap", ops->unmap_host(e->t.epoch, jobs->out, jobs->out_mapped_nbytes));
    if (jobs->d_out)
        gpu_epoch_must(e, "free", ops->free(e->t.epoch, jobs->d_out));
    test_epoch_unpark(&e->t);
    munmap(jobs->in, jobs->in_mapped_nbytes);
    munmap(jobs->out, jobs->out_mapped_nbytes);
    free(jobs->items);
}

size_t gpu_jobs_count_wrong(const struct gpu_epoch *e, const struct gpu_jobs *jobs,
                            const struct gpu_source *source)
{
    size_t n_wrong = 0;
    size_t nbytes = gpu_chunk_nbytes(source);
    for (size_t i = 0; i < jobs->n_jobs && e->output != WHARF_WORK_TO_DEVICE; i++)
        n_wrong += memcmp(jobs->out + i * jobs->stride,
                          source->file + i % source->n_chunks * source->chunk_nbytes, nbytes) != 0;
    return n_wrong;
}

size_t gpu_jobs_run(struct gpu_epoch *e, const struct gpu_jobs *jobs, size_t n_passes,
                    double *ret_us, struct gpu_epoch_times *times)
{
    struct test_epoch *t = &e->t;
    struct wharf_work_completion completion;
    size_t n_submitted = 0, n_reaped = 0, n_bad = 0;
    double start = gpu_now_us();
    while (n_reaped < n_passes * jobs->n_jobs) {
        unsigned n = 0;
        while (n_submitted < n_passes * jobs->n_jobs && t->n_under_way < e->depth &&
               test_epoch_has_room(t) && n++ < PUBLISH_EVERY)
            test_epoch_submit(t, &jobs->items[n_submitted++ % jobs->n_jobs]);
        test_epoch_publish(t);
        while (test_epoch_reap(t, &completion)) {
            n_bad += completion.result != WHARF_OK;
            if (times)
                gpu_epoch_add_times(times, &completion);
            if (++n_reaped % jobs->n_jobs == 0 && ret_us) {
                double now = gpu_now_us();
                ret_us[n_reaped / jobs->n_jobs - 1] = now - start;
                start = now;
            }
        }
    }
    return n_bad;
}
