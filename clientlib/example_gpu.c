/* SPDX-License-Identifier: Apache-2.0 */
/*
 * example_gpu.c: a program that uses CUDA itself, and has the daemon decode straight into its own
 * GPU memory.  It decodes one stream from standard input there, and a kernel of its own compares
 * the bytes with what the library decodes in this process:
 *
 *     cc example_gpu.c $(pkg-config --cflags --libs wharf) -lcuda -o example_gpu
 *     ./example_gpu gzip < file.gz
 *
 * The stream and what it decodes to are at most what the daemon takes for the GPU in one chunk,
 * 256 KiB if nobody changed it.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>
#include <wharf.h>

/* Counts the bytes in which a and b differ. */
static const char compare_ptx[] = ".version 7.0\n"
                                  ".target sm_80\n"
                                  ".address_size 64\n"
                                  ".visible .entry compare(.param .u64 a, .param .u64 b,\n"
                                  "                        .param .u64 nbytes, .param .u64 count)\n"
                                  "{\n"
                                  "    .reg .pred %p;\n"
                                  "    .reg .b32 %r<6>;\n"
                                  "    .reg .b64 %a, %b, %n, %c, %i, %step, %at;\n"
                                  "    ld.param.u64 %a, [a];\n"
                                  "    ld.param.u64 %b, [b];\n"
                                  "    ld.param.u64 %n, [nbytes];\n"
                                  "    ld.param.u64 %c, [count];\n"
                                  "    mov.u32 %r0, %ctaid.x;\n"
                                  "    mov.u32 %r1, %ntid.x;\n"
                                  "    mov.u32 %r2, %tid.x;\n"
                                  "    mov.u32 %r3, %nctaid.x;\n"
                                  "    mad.lo.u32 %r0, %r0, %r1, %r2;\n"
                                  "    mul.lo.u32 %r3, %r3, %r1;\n"
                                  "    cvt.u64.u32 %i, %r0;\n"
                                  "    cvt.u64.u32 %step, %r3;\n"
                                  "NEXT:\n"
                                  "    setp.ge.u64 %p, %i, %n;\n"
                                  "    @%p bra DONE;\n"
                                  "    add.u64 %at, %a, %i;\n"
                                  "    ld.global.u8 %r4, [%at];\n"
                                  "    add.u64 %at, %b, %i;\n"
                                  "    ld.global.u8 %r5, [%at];\n"
                                  "    add.u64 %i, %i, %step;\n"
                                  "    setp.eq.u32 %p, %r4, %r5;\n"
                                  "    @%p bra NEXT;\n"
                                  "    red.global.add.u32 [%c], 1;\n"
                                  "    bra NEXT;\n"
                                  "DONE:\n"
                                  "    ret;\n"
                                  "}\n";

static void must_cuda(CUresult result, const char *what)
{
    const char *name = NULL;

    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "%s: %s\n", what, name ? name : "unknown error");
    exit(EXIT_FAILURE);
}

static void must(int err, const char *what)
{
    if (err >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, wharf_error_message());
    exit(EXIT_FAILURE);
}

static void begin_cuda(void)
{
    CUdevice device;
    CUcontext context;

    must_cuda(cuInit(0), "cuInit");
    must_cuda(cuDeviceGet(&device, 0), "cuDeviceGet");
    must_cuda(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must_cuda(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

/* GPU memory of at least nbytes that can be offered to another process; *ret_fd is for that. */
static CUdeviceptr make_memory(size_t *nbytes, int *ret_fd)
{
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
    };
    CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    CUmemGenericAllocationHandle memory;
    size_t granularity;
    CUdeviceptr at;

    must_cuda(
        cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        "cuMemGetAllocationGranularity");
    *nbytes = (*nbytes + granularity - 1) / granularity * granularity;
    must_cuda(cuMemCreate(&memory, *nbytes, &properties, 0), "cuMemCreate");
    must_cuda(
        cuMemExportToShareableHandle(ret_fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "cuMemExportToShareableHandle");
    must_cuda(cuMemAddressReserve(&at, *nbytes, 0, 0, 0), "cuMemAddressReserve");
    must_cuda(cuMemMap(at, *nbytes, 0, memory, 0), "cuMemMap");
    must_cuda(cuMemSetAccess(at, *nbytes, &access, 1), "cuMemSetAccess");
    /* The mapping keeps it, as does the descriptor. */
    must_cuda(cuMemRelease(memory), "cuMemRelease");
    return at;
}

/* Compares GPU memory with host memory, on the GPU. */
static unsigned count_differences(CUdeviceptr at, const void *expected, size_t nbytes)
{
    CUdeviceptr copy, count;
    CUmodule module;
    CUfunction compare;
    uint64_t n = nbytes;
    unsigned n_different = 0;
    void *arguments[] = {&at, &copy, &n, &count};

    must_cuda(cuModuleLoadData(&module, compare_ptx), "cuModuleLoadData");
    must_cuda(cuModuleGetFunction(&compare, module, "compare"), "cuModuleGetFunction");
    must_cuda(cuMemAlloc(&copy, nbytes + 1), "cuMemAlloc");
    must_cuda(cuMemAlloc(&count, sizeof(n_different)), "cuMemAlloc");
    must_cuda(cuMemcpyHtoD(copy, expected, nbytes), "cuMemcpyHtoD");
    must_cuda(cuMemsetD8(count, 0, sizeof(n_different)), "cuMemsetD8");
    must_cuda(cuLaunchKernel(compare, 64, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL),
              "cuLaunchKernel");
    must_cuda(cuMemcpyDtoH(&n_different, count, sizeof(n_different)), "cuMemcpyDtoH");
    must_cuda(cuMemFree(copy), "cuMemFree");
    must_cuda(cuMemFree(count), "cuMemFree");
    must_cuda(cuModuleUnload(module), "cuModuleUnload");
    return n_different;
}

static int report(const struct wharf_outcome *outcome)
{
    fprintf(stderr, "%s: %s, at bit %" PRIu64 "\n", wharf_result_string(outcome->result),
            wharf_reason_string(outcome->reason), outcome->bit_offset);
    return EXIT_FAILURE;
}

/* Decodes the same in this process, on the CPU, and compares. */
static int check(const struct wharf_job *job, CUdeviceptr at, uint64_t out_nbytes)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf_job again = *job;
    struct wharf_outcome outcome;
    struct wharf *embedded;

    options.flags = WHARF_OPEN_EMBEDDED;
    must(wharf_open(&options, &embedded), "cannot open");
    again.out = malloc(job->out_avail);
    if (!again.out)
        return EXIT_FAILURE;
    must(wharf_decompress(embedded, &again, &outcome), "cannot decode here");
    unsigned n_different = count_differences(at, again.out, outcome.out_nbytes);
    printf("%" PRIu64 " bytes in GPU memory, %u of them wrong\n", out_nbytes, n_different);
    free(again.out);
    wharf_close(embedded);
    return n_different == 0 && out_nbytes == outcome.out_nbytes ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int decode_stdin(struct wharf *handle, int codec, size_t most_nbytes)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    size_t nbytes = most_nbytes;
    void *in;
    int fd;

    CUdeviceptr at = make_memory(&nbytes, &fd);
    must(wharf_register_gpu(handle, fd, at, nbytes), "the daemon does not take GPU memory");
    close(fd);
    must(wharf_alloc(handle, most_nbytes, &in), "no memory for the input");
    job.codec = (uint32_t)codec;
    job.in = in;
    job.in_nbytes = fread(in, 1, most_nbytes, stdin);
    job.out = (void *)(uintptr_t)at;
    job.out_avail = most_nbytes;
    must(wharf_decompress(handle, &job, &outcome), "cannot decode");
    int status =
        outcome.result == WHARF_OK ? check(&job, at, outcome.out_nbytes) : report(&outcome);
    must(wharf_unregister(handle, job.out), "cannot unregister");
    must_cuda(cuMemUnmap(at, nbytes), "cuMemUnmap");
    must_cuda(cuMemAddressFree(at, nbytes), "cuMemAddressFree");
    return status;
}

int main(int argc, char **argv)
{
    int codec = argc == 2 ? wharf_codec_from_name(argv[1]) : -1;
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    struct wharf *handle;

    if (codec < 0) {
        fprintf(stderr, "usage: example_gpu CODEC < IN\n");
        return EXIT_FAILURE;
    }
    options.flags = WHARF_OPEN_DAEMON;
    must(wharf_open(&options, &handle), "no daemon");
    must(wharf_get_info(handle, &info), "cannot ask");
    if (info.max_gpu_chunk_nbytes == 0) {
        fprintf(stderr, "the daemon has no GPU\n");
        return EXIT_FAILURE;
    }
    begin_cuda();
    int status = decode_stdin(handle, codec, info.max_gpu_chunk_nbytes);
    wharf_close(handle);
    return status;
}
