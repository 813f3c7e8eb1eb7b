/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_export.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "kernels/cuda_error.h"
#include "tests/gpu/gpu_client.h"

namespace
{

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

int send_contents(int socket, const uint8_t *at)
{
    std::vector<uint8_t> contents(GPU_EXPORT_NBYTES);
    if (gpu_client_get(contents.data(), at, GPU_EXPORT_NBYTES))
        return -1;
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
    struct gpu_client_memory memory;
    char byte;
    if (gpu_client_make(GPU_EXPORT_NBYTES, &memory) || send_fd(socket, memory.fd) ||
        read(socket, &byte, 1) != 1 || send_contents(socket, memory.at)) {
        fprintf(stderr, "gpu_export: %s\n", wharf_cuda_error_text());
        return 1;
    }
    return 0;
}
