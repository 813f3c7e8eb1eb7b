/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h: packets of the control socket, for the daemon and for libwharf.
 *
 * PROTOCOL.md has the rules.  Everything that arrives here is hostile: nothing is believed about
 * a packet before it was unpacked, and unpacking takes no memory but what the caller gave.  All
 * functions are safe from any thread, each with its own arguments; none blocks unless its flags
 * let recvmsg or sendmsg do so.
 */
#ifndef WHARF_CONTROL_H
#define WHARF_CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "proto/control.pb-c.h"

#define WHARF_CONTROL_VERSION 1u
#define WHARF_CONTROL_MAX_NBYTES 4096u
#define WHARF_CONTROL_MAX_FDS 8u
/* Of client_name, without a terminator. */
#define WHARF_CONTROL_MAX_NAME_NBYTES 64u

/* ---- what a packet is ---------------------------------------------------------------------- */

enum wharf_packet {
    WHARF_PACKET_END,     /* nothing: the other side has closed */
    WHARF_PACKET_WAKE,    /* one byte of any value */
    WHARF_PACKET_MESSAGE, /* two bytes or more: no message is shorter, since it has a body */
};

static inline enum wharf_packet wharf_packet_kind(size_t nbytes)
{
    if (nbytes == 0)
        return WHARF_PACKET_END;
    return nbytes == 1 ? WHARF_PACKET_WAKE : WHARF_PACKET_MESSAGE;
}

/* ---- messages ------------------------------------------------------------------------------ */

/*
 * Where a message is unpacked.  Memory is handed out from the core and never given back, so that
 * what a packet can cost is bounded by this size, whatever is in it: a packet full of statistics
 * takes about a third of it.
 */
#define WHARF_CONTROL_MEMORY_NBYTES 65536u
struct wharf_control_memory {
    size_t n_used;
    _Alignas(16) uint8_t bytes[WHARF_CONTROL_MEMORY_NBYTES];
};

/*
 * wharf_control_unpack_request, wharf_control_unpack_reply: read one message.
 *   memory       the caller's; what was unpacked there before is gone.
 *   packet       nbytes bytes; not needed any more afterwards.
 *   ret_request, ret_reply   a message inside `memory`.  Strings end with a zero byte but may hold
 *                anything else; a body that this version does not know is body_case NOT_SET.
 * Returns 0 or -EBADMSG (not a message, longer than WHARF_CONTROL_MAX_NBYTES, or one that does not
 * fit into the memory).
 */
int wharf_control_unpack_request(struct wharf_control_memory *memory, const uint8_t *packet,
                                 size_t nbytes, const Wharf__Request **ret_request);
int wharf_control_unpack_reply(struct wharf_control_memory *memory, const uint8_t *packet,
                               size_t nbytes, const Wharf__Reply **ret_reply);

/*
 * wharf_control_pack_request, wharf_control_pack_reply: write one message.
 *   packet       room for WHARF_CONTROL_MAX_NBYTES bytes.
 *   ret_nbytes   how many of them are used; untouched on failure.
 * Returns 0 or -EMSGSIZE (the message is too long, or has no body).
 */
int wharf_control_pack_request(const Wharf__Request *request, uint8_t *packet, size_t *ret_nbytes);
int wharf_control_pack_reply(const Wharf__Reply *reply, uint8_t *packet, size_t *ret_nbytes);

/* The same for a Reply with that id whose body is a StatsReply that is packed already. */
int wharf_control_wrap_stats(uint32_t id, const uint8_t *stats, size_t stats_nbytes,
                             uint8_t *packet, size_t *ret_nbytes);

/* ---- the socket ---------------------------------------------------------------------------- */

/* Room for one packet with its descriptors; `header` points into it, so it must not move. */
struct wharf_control_receiver {
    struct msghdr header;
    struct iovec iov;
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(WHARF_CONTROL_MAX_FDS * sizeof(int))];
    uint8_t packet[WHARF_CONTROL_MAX_NBYTES];
    /* What came. */
    size_t nbytes;
    int fds[WHARF_CONTROL_MAX_FDS];
    size_t n_fds;
};

/*
 * wharf_control_receive: recvmsg with `flags`, again after EINTR.  Returns 0 with nbytes, packet,
 * fds and n_fds filled; -EBADMSG if data or descriptors were cut off; or what recvmsg failed with,
 * as -errno.  In every case the caller owns the n_fds descriptors, and they can be ones whose
 * close() hangs.
 */
int wharf_control_receive(int fd, struct wharf_control_receiver *receiver, int flags);

/*
 * wharf_control_send: sends one packet with n_fds descriptors, which stay the caller's.  Raises no
 * SIGPIPE.  Goes on after EINTR.  Returns 0 or -errno of sendmsg.
 */
int wharf_control_send(int fd, const uint8_t *packet, size_t nbytes, const int *fds, size_t n_fds,
                       int flags);

/*
 * wharf_control_wake: sends a wake-up, without waiting.  Returns 0 also if the socket is full: the
 * other side then has packets to read, and any packet wakes it.  Otherwise -errno.
 */
int wharf_control_wake(int fd);

#endif
