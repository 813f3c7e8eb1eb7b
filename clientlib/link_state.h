/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_state.h: the state of a handle's connection, and of its next one.
 *
 *     DOWN -> GREETING -> OPENING -> REGISTERING -> MODELLING -> UP
 *      ^---------'-----------'------------'------------'---------'    the connection ends
 *     BROKEN: the daemon violated the protocol; the final state
 */
#ifndef WHARF_CLIENT_LINK_STATE_H
#define WHARF_CLIENT_LINK_STATE_H

#include <stdint.h>
#include <sys/un.h>

#include "proto/control.h"

struct wharf_client_packets;
struct wharf_client_rings;

/* A dead daemon wakes nobody: how long its end may go unnoticed at first. */
#define WHARF_CLIENT_FIRST_CHECK_NS 5000000u

enum wharf_client_link_state {
    WHARF_CLIENT_LINK_DOWN,        /* no connection; the next try is at next_try_ns */
    WHARF_CLIENT_LINK_GREETING,    /* Hello is sent */
    WHARF_CLIENT_LINK_OPENING,     /* OpenQueue is sent */
    WHARF_CLIENT_LINK_REGISTERING, /* the region of registering_number is sent */
    WHARF_CLIENT_LINK_MODELLING,   /* the model of registering_number is sent */
    WHARF_CLIENT_LINK_UP,
    WHARF_CLIENT_LINK_BROKEN,
};

/* The running daemon's facts about itself. */
struct wharf_client_facts {
    uint64_t generation;
    uint64_t features;
    uint64_t codecs;  /* bits 1 << number */
    uint32_t engines; /* likewise */
    uint32_t max_entries;
    uint32_t max_jobs; /* of all the user's queues */
    uint32_t max_batch_chunks;
    uint64_t max_gpu_chunk_nbytes;
    uint64_t max_gpu_large_nbytes;
    uint64_t max_gpu_large_ns;
    uint64_t max_compress_nbytes; /* 0: it does not compress */
    uint64_t max_start_ns;        /* 0: no job waits for a start word */
    uint64_t max_arena_nbytes;
    uint64_t max_job_nbytes;
    char version[32];
};

/* The reply to a waiting call. */
struct wharf_client_reply {
    uint8_t packet[WHARF_CONTROL_MAX_NBYTES];
    size_t nbytes; /* 0 until it is there */
};

struct wharf_client_link {
    enum wharf_client_link_state state;
    int socket; /* -1 when DOWN */

    /* Of this connection: requests are numbered from 1, and answered in order. */
    uint32_t last_request;
    uint32_t last_reply;
    uint32_t wanted_reply;            /* goes to `reply`; 0 for none */
    struct wharf_client_reply *reply; /* the waiting call's */
    uint32_t registering_number;
    int is_cancelling; /* a CANCEL is in the ring */
    int has_progress;  /* it has completed a job */
    uint64_t up_ns;    /* since when it is UP */
    struct wharf_client_rings *rings;
    struct wharf_client_facts facts;

    /* These persist from one connection to the next. */
    struct sockaddr_un address;
    char client_name[WHARF_CONTROL_MAX_NAME_NBYTES + 1];
    uint32_t n_entries;    /* requested; 0 before the first Hello if the daemon decides */
    uint64_t arena_nbytes; /* likewise */
    uint64_t patience_ns;
    uint64_t away_since_ns; /* when the daemon was lost */
    uint64_t next_try_ns;
    uint64_t pause_ns;   /* between tries */
    uint64_t checked_ns; /* when the socket was last read */
    uint64_t check_ns;   /* how long to wait for a completion before the socket is read again */
    uint64_t n_ups;
    uint64_t n_queues; /* opened queues; the daemon knows all later registrations */
    uint64_t n_resubmitted;
    int is_refused; /* the daemon refused, so retrying at once is useless */
    int error;      /* why it is not UP */
    char text[320];
    char farewell[160]; /* the daemon's text before it closed the connection */
    int farewell_error; /* and the error that it named, -errno */

    struct wharf_client_packets *packets;
};

/* Buffers for received packets. */
struct wharf_client_packets {
    struct wharf_control_receiver receiver;
    struct wharf_control_memory memory;
};

/* A completion arrived, so the daemon is alive. */
static inline void wharf_client_link_heard(struct wharf_client_link *link)
{
    link->has_progress = 1;
    link->check_ns = WHARF_CLIENT_FIRST_CHECK_NS;
}

#endif
