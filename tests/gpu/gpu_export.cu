/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_export.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "kernels/cuda_error.h"

namespace
{

template <typename F>
int find(const char *name, F *ret_function)
{
    cudaDriverEntryPointQueryResult found;
    void *function = nullptr;
    WHARF_CUDA_TRY(
        cudaGetDriverEntryPointByVersion(name, &function, 11020, cudaEnableDefault, &found));
    *ret_function = reinterpret_cast<F>(function);
    return function ? 0 : -1;
}

int try_driver(CUresult result, const char *call)
{
    return result == CUDA_SUCCESS ? 0 : wharf_cuda_fail(static_cast<cudaError_t>(result), call);
}

#define DRIVER(function, ...)                                                                      \
    do {                                                                                           \
        decltype(&function) call_ = nullptr;                                                       \
        int rc_ = find(#function, &call_);                                                         \
        if (rc_ || (rc_ = try_driver(call_(__VA_ARGS__), #function)))                              \
            return rc_;                                                                            \
    } while (0)

int make_memory(CUdeviceptr *ret_at, int *ret_fd)
{
    CUmemGenericAllocationHandle memory;
    CUmemAllocationProp properties = {};
    CUmemAccessDesc access = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    WHARF_CUDA_TRY(cudaSetDevice(0));
    DRIVER(cuMemCreate, &memory, GPU_EXPORT_NBYTES, &properties, 0);
    DRIVER(cuMemExportToShareableHandle, ret_fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
           0);
    DRIVER(cuMemAddressReserve, ret_at, GPU_EXPORT_NBYTES, 0, 0, 0);
    DRIVER(cuMemMap, *ret_at, GPU_EXPORT_NBYTES, 0, memory, 0);
    DRIVER(cuMemSetAccess, *ret_at, GPU_EXPORT_NBYTES, &access, 1);
    WHARF_CUDA_TRY(cudaMemset(reinterpret_cast<void *>(*ret_at), 0xa5, GPU_EXPORT_NBYTES));
    WHARF_CUDA_TRY(cudaDeviceSynchronize());
    return 0;
}

int send_fd(int socket, int fd)
{
    char byte = 1;
    struct iovec part = {&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    struct msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    return sendmsg(socket, &message, 0) == 1 ? 0 : -1;
}

int send_contents(int socket, CUdeviceptr at)
{
    std::vector<uint8_t> contents(GPU_EXPORT_NBYTES);
    WHARF_CUDA_TRY(cudaMemcpy(contents.data(), reinterpret_cast<void *>(at), GPU_EXPORT_NBYTES,
                              cudaMemcpyDeviceToHost));
    for (size_t done = 0; done < contents.size();) {
        ssize_t n = write(socket, contents.data() + done, contents.size() - done);
        if (n <= 0)
            return -1;
        done += (size_t)n;
    }
    return 0;
}

} // namespace

int gpu_export_serve(int socket)
{
    CUdeviceptr at;
    int fd;
    char byte;
    if (make_memory(&at, &fd) || send_fd(socket, fd) || read(socket, &byte, 1) != 1 ||
        send_contents(socket, at)) {
        fprintf(stderr, "gpu_export: %s\n", wharf_cuda_error_text());
        return 1;
    }
    return 0;
}
