/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_check.h: jobs on a device, each compared with what the CPU engine says of it.
 */
#ifndef WHARF_TESTS_GPU_CHECK_H
#define WHARF_TESTS_GPU_CHECK_H

#include <stdbool.h>

#include "encoders/decode_job.h"
#include "tests/gpu/gpu_device.h"

/* One job; the output goes to memory of the checker's own. */
struct gpu_case {
    const char *name; /* for messages */
    uint64_t number;  /* likewise */
    uint32_t codec;
    uint32_t parameter;
    uint32_t flags;
    uint32_t checksum;
    const uint8_t *in;
    size_t in_nbytes;
    size_t out_avail;
    const void *model; /* the image of a registered one, or NULL */
    size_t model_nbytes;
    bool failed; /* filled by gpu_checker_run */
};

struct gpu_check_options {
    const struct gpu_device_ops *device;
    /* Gives each job's input and output memory of its own, for a memory checker; otherwise all
     * lie in two pieces, with canaries around each output. */
    bool own_memory;
    /* Runs the kernel that has all decoders instead of the codec's own. */
    bool any_codec;
    /* WHARF_DEVICE_SERIAL, _REGISTERS, _BLOCK or _INDEXED: the codec's kernel; or 0. */
    uint32_t serial;
    /* A folder for the inputs of jobs that fail, or NULL. */
    const char *save_folder;
};

/* Keeps the memory of its batches from one call to the next.  The options must stay. */
struct gpu_checker;
struct gpu_checker *gpu_checker_new(const struct gpu_check_options *options);
void gpu_checker_free(struct gpu_checker *checker);

/*
 * Runs the jobs on the device and on the CPU and compares: the outcome in every member, on success
 * the output, and that no byte around it has changed.  Says on standard output, in lines that
 * begin with "#", what differs; sets `failed` and returns how many did.
 */
size_t gpu_checker_run(struct gpu_checker *checker, struct gpu_case *cases, size_t n_cases);

#endif
