/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/control.h"

#include <errno.h>
#include <string.h>

/* ---- messages ------------------------------------------------------------------------------ */

static void *memory_take(void *data, size_t nbytes)
{
    struct wharf_control_memory *memory = data;
    size_t n_free = sizeof(memory->bytes) - memory->n_used;

    if (nbytes > n_free)
        return NULL;
    void *taken = memory->bytes + memory->n_used;
    /* The next one is aligned too, and stays within the end, which is aligned. */
    memory->n_used += (nbytes + 15) & ~(size_t)15;
    return taken;
}

static void memory_give_back(void *data, void *pointer)
{
    (void)data;
    (void)pointer;
}

static int unpack(struct wharf_control_memory *memory, const ProtobufCMessageDescriptor *type,
                  const uint8_t *packet, size_t nbytes, ProtobufCMessage **ret_message)
{
    ProtobufCAllocator allocator = {memory_take, memory_give_back, memory};

    if (nbytes > WHARF_CONTROL_MAX_NBYTES || wharf_packet_kind(nbytes) != WHARF_PACKET_MESSAGE)
        return -EBADMSG;
    memory->n_used = 0;
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, nbytes, packet);
    if (!message)
        return -EBADMSG;
    *ret_message = message;
    return 0;
}

int wharf_control_unpack_request(struct wharf_control_memory *memory, const uint8_t *packet,
                                 size_t nbytes, const Wharf__Request **ret_request)
{
    ProtobufCMessage *message;
    int r = unpack(memory, &wharf__request__descriptor, packet, nbytes, &message);

    if (r == 0)
        *ret_request = (const Wharf__Request *)message;
    return r;
}

int wharf_control_unpack_reply(struct wharf_control_memory *memory, const uint8_t *packet,
                               size_t nbytes, const Wharf__Reply **ret_reply)
{
    ProtobufCMessage *message;
    int r = unpack(memory, &wharf__reply__descriptor, packet, nbytes, &message);

    if (r == 0)
        *ret_reply = (const Wharf__Reply *)message;
    return r;
}

static int pack(const ProtobufCMessage *message, uint8_t *packet, size_t *ret_nbytes)
{
    size_t nbytes = protobuf_c_message_get_packed_size(message);

    if (nbytes > WHARF_CONTROL_MAX_NBYTES || wharf_packet_kind(nbytes) != WHARF_PACKET_MESSAGE)
        return -EMSGSIZE;
    *ret_nbytes = protobuf_c_message_pack(message, packet);
    return 0;
}

int wharf_control_pack_request(const Wharf__Request *request, uint8_t *packet, size_t *ret_nbytes)
{
    if (request->body_case == WHARF__REQUEST__BODY__NOT_SET)
        return -EMSGSIZE;
    return pack(&request->base, packet, ret_nbytes);
}

int wharf_control_pack_reply(const Wharf__Reply *reply, uint8_t *packet, size_t *ret_nbytes)
{
    if (reply->body_case == WHARF__REPLY__BODY__NOT_SET)
        return -EMSGSIZE;
    return pack(&reply->base, packet, ret_nbytes);
}

/* Of base-128 digits, the lowest first. */
static size_t put_varint(uint8_t *at, uint64_t value)
{
    size_t n = 0;

    for (; value >= 0x80; value >>= 7)
        at[n++] = (uint8_t)(value | 0x80);
    at[n++] = (uint8_t)value;
    return n;
}

/* A field's tag is its number, and below it how it is written: 0 as a varint, 2 with a length. */
int wharf_control_wrap_stats(uint32_t id, const uint8_t *stats, size_t stats_nbytes,
                             uint8_t *packet, size_t *ret_nbytes)
{
    enum { ID = 1 << 3 | 0, STATS = 6 << 3 | 2, MOST_NBYTES = 1 + 5 + 1 + 2 };
    size_t n = 0;

    if (stats_nbytes > WHARF_CONTROL_MAX_NBYTES - MOST_NBYTES)
        return -EMSGSIZE;
    packet[n++] = ID;
    n += put_varint(packet + n, id);
    packet[n++] = STATS;
    n += put_varint(packet + n, stats_nbytes);
    memcpy(packet + n, stats, stats_nbytes);
    *ret_nbytes = n + stats_nbytes;
    return 0;
}

/* ---- the socket ---------------------------------------------------------------------------- */

static void receive_prepare(struct wharf_control_receiver *receiver)
{
    receiver->iov.iov_base = receiver->packet;
    receiver->iov.iov_len = sizeof(receiver->packet);
    memset(&receiver->header, 0, sizeof(receiver->header));
    receiver->header.msg_iov = &receiver->iov;
    receiver->header.msg_iovlen = 1;
    receiver->header.msg_control = receiver->control;
    receiver->header.msg_controllen = sizeof(receiver->control);
    receiver->nbytes = 0;
    receiver->n_fds = 0;
}

/* The kernel writes whole descriptors only, and never more than there was room for. */
static void collect_fds(struct wharf_control_receiver *receiver)
{
    struct msghdr *header = &receiver->header;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(receiver->fds + receiver->n_fds, CMSG_DATA(c), n * sizeof(int));
        receiver->n_fds += n;
    }
}

int wharf_control_receive(int fd, struct wharf_control_receiver *receiver, int flags)
{
    ssize_t received;

    do {
        receive_prepare(receiver);
        received = recvmsg(fd, &receiver->header, flags | MSG_CMSG_CLOEXEC);
    } while (received < 0 && errno == EINTR);
    if (received < 0)
        return -errno;
    collect_fds(receiver);
    if (receiver->header.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        return -EBADMSG;
    receiver->nbytes = (size_t)received;
    return 0;
}

int wharf_control_send(int fd, const uint8_t *packet, size_t nbytes, const int *fds, size_t n_fds,
                       int flags)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(WHARF_CONTROL_MAX_FDS * sizeof(int))] = {0};
    struct iovec iov = {(void *)packet, nbytes};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t sent;

    if (n_fds > WHARF_CONTROL_MAX_FDS)
        return -EINVAL;
    if (n_fds) {
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    do {
        sent = sendmsg(fd, &header, flags | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

int wharf_control_wake(int fd)
{
    static const uint8_t wake;
    int r = wharf_control_send(fd, &wake, 1, NULL, 0, MSG_DONTWAIT);

    return r == -EAGAIN ? 0 : r;
}
