/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control messages: packing, unpacking hostile bytes, packets with descriptors.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "proto/control.h"
#include "tests/lib/test_random.h"

static struct wharf_control_memory memory;
static uint8_t packet[WHARF_CONTROL_MAX_NBYTES];

static size_t pack_hello(void)
{
    Wharf__HelloRequest hello = WHARF__HELLO_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    size_t nbytes = 0;

    hello.version = WHARF_CONTROL_VERSION;
    hello.min_version = 1;
    hello.optional_features = (uint64_t)1 << WHARF__FEATURE__FEATURE_GPU_MEMORY;
    hello.client_name = (char *)"control_test";
    request.id = 300;
    request.body_case = WHARF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    cr_assert_eq(wharf_control_pack_request(&request, packet, &nbytes), 0);
    return nbytes;
}

Test(control, request_survives_packing)
{
    const Wharf__Request *request;
    size_t nbytes = pack_hello();

    cr_assert_eq(wharf_control_unpack_request(&memory, packet, nbytes, &request), 0);
    cr_assert_eq(request->id, 300);
    cr_assert_eq(request->body_case, WHARF__REQUEST__BODY_HELLO);
    cr_assert_eq(request->hello->version, WHARF_CONTROL_VERSION);
    cr_assert_eq(request->hello->optional_features, 1);
    cr_assert_str_eq(request->hello->client_name, "control_test");
}

/* The bytes themselves, so that nobody renumbers a field and only changes both ends. */
Test(control, hello_has_these_bytes)
{
    static const uint8_t expected[] = {
        0x08, 0xac, 0x02,                               /* id = 300 */
        0x12, 0x1b,                                     /* hello, 27 bytes */
        0x08, 0x01,                                     /* version */
        0x10, 0x01,                                     /* min_version */
        0x21, 1,    0,    0,   0,   0,   0,   0,   0,   /* optional_features */
        0x2a, 0x0c, 'c',  'o', 'n', 't', 'r', 'o', 'l', /* client_name */
        '_',  't',  'e',  's', 't',
    };

    cr_assert_eq(pack_hello(), sizeof(expected));
    cr_assert_arr_eq(packet, expected, sizeof(expected));
}

/* A shortest message is an empty body: two bytes. */
Test(control, no_message_is_as_short_as_a_wakeup)
{
    Wharf__PingRequest ping = WHARF__PING_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    size_t nbytes = 0;

    request.body_case = WHARF__REQUEST__BODY_PING;
    request.ping = &ping;
    cr_assert_eq(wharf_control_pack_request(&request, packet, &nbytes), 0);
    cr_assert_eq(nbytes, 2);
    cr_assert_eq(wharf_packet_kind(2), WHARF_PACKET_MESSAGE);
    cr_assert_eq(wharf_packet_kind(1), WHARF_PACKET_WAKE);
    cr_assert_eq(wharf_packet_kind(0), WHARF_PACKET_END);
    for (unsigned byte = 0; byte < 256; byte++) {
        const Wharf__Request *unpacked;
        packet[0] = (uint8_t)byte;
        cr_assert_eq(wharf_control_unpack_request(&memory, packet, 1, &unpacked), -EBADMSG);
    }
    cr_assert_eq(wharf_control_unpack_reply(&memory, packet, 0, &(const Wharf__Reply *){0}),
                 -EBADMSG);
}

Test(control, message_without_body_is_not_sent)
{
    Wharf__Request request = WHARF__REQUEST__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;
    size_t nbytes = 77;

    request.id = reply.id = 1;
    cr_assert_eq(wharf_control_pack_request(&request, packet, &nbytes), -EMSGSIZE);
    cr_assert_eq(wharf_control_pack_reply(&reply, packet, &nbytes), -EMSGSIZE);
    cr_assert_eq(nbytes, 77);
}

Test(control, message_over_the_limit_is_not_sent)
{
    static char text[WHARF_CONTROL_MAX_NBYTES];
    Wharf__Error error = WHARF__ERROR__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;
    const Wharf__Reply *unpacked;
    size_t nbytes = 0, longest = 0;

    reply.body_case = WHARF__REPLY__BODY_ERROR;
    reply.error = &error;
    error.text = text;
    for (size_t n = sizeof(text) - 20; n < sizeof(text); n++) {
        memset(text, 'x', n);
        if (wharf_control_pack_reply(&reply, packet, &nbytes) == 0)
            longest = nbytes;
    }
    cr_assert_eq(longest, WHARF_CONTROL_MAX_NBYTES);
    cr_assert_eq(wharf_control_unpack_reply(&memory, packet, longest, &unpacked), 0);
}

Test(control, unknown_body_is_no_error)
{
    /* id = 1, field 99 of type bytes. */
    static const uint8_t unknown[] = {0x08, 0x01, 0x9a, 0x06, 0x02, 'h', 'i'};
    const Wharf__Request *request;

    cr_assert_eq(wharf_control_unpack_request(&memory, unknown, sizeof(unknown), &request), 0);
    cr_assert_eq(request->id, 1);
    cr_assert_eq(request->body_case, WHARF__REQUEST__BODY__NOT_SET);
}

Test(control, unknown_fields_are_no_error)
{
    const Wharf__Request *request;
    size_t nbytes = pack_hello();

    /* Field 20, a number, and field 1500, eight bytes. */
    static const uint8_t more[] = {0xa0, 0x01, 0x05, 0xe1, 0x5d, 1, 2, 3, 4, 5, 6, 7, 8};
    memcpy(packet + nbytes, more, sizeof(more));
    nbytes += sizeof(more);
    cr_assert_eq(wharf_control_unpack_request(&memory, packet, nbytes, &request), 0);
    cr_assert_eq(request->body_case, WHARF__REQUEST__BODY_HELLO);
    cr_assert_str_eq(request->hello->client_name, "control_test");
}

/* A packet full of statistics, as the daemon fills it. */
Test(control, full_page_of_statistics_fits_into_the_memory)
{
    enum { MOST = 300 };
    static Wharf__Sample samples[MOST], *sample_list[MOST];
    static Wharf__Label labels[MOST], *label_list[MOST];
    Wharf__MetricFamily family = WHARF__METRIC_FAMILY__INIT, *family_list[] = {&family};
    Wharf__StatsReply stats = WHARF__STATS_REPLY__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;
    const Wharf__Reply *unpacked;
    size_t nbytes = 0, n = 0;

    reply.id = 1;
    reply.body_case = WHARF__REPLY__BODY_STATS;
    reply.stats = &stats;
    stats.n_families = 1;
    stats.families = family_list;
    family.name = (char *)"wharf_jobs_total";
    family.samples = sample_list;
    for (; n < MOST; n++) {
        wharf__sample__init(&samples[n]);
        wharf__label__init(&labels[n]);
        sample_list[n] = &samples[n];
        label_list[n] = &labels[n];
        labels[n].name = (char *)"t";
        labels[n].value = (char *)"1";
        samples[n].n_labels = 1;
        samples[n].labels = &label_list[n];
        samples[n].value = 1;
        family.n_samples = n + 1;
        if (wharf_control_pack_reply(&reply, packet, &nbytes) < 0)
            break;
    }
    cr_assert_gt(n, 100);
    cr_assert_gt(nbytes, WHARF_CONTROL_MAX_NBYTES - 100);
    cr_assert_eq(wharf_control_unpack_reply(&memory, packet, nbytes, &unpacked), 0);
    cr_assert_eq(unpacked->stats->families[0]->n_samples, n);
}

/* Two bytes a field, and each costs the reader a hundred: memory bounds that. */
Test(control, packet_that_needs_too_much_memory_is_refused)
{
    const Wharf__Request *request;

    for (size_t i = 0; i < sizeof(packet); i += 2) {
        packet[i] = 15 << 3;
        packet[i + 1] = 1;
    }
    cr_assert_eq(wharf_control_unpack_request(&memory, packet, sizeof(packet), &request), -EBADMSG);
    cr_assert_leq(memory.n_used, sizeof(memory.bytes));
}

Test(control, damaged_packets_end_in_an_answer)
{
    struct test_random random = {5};
    unsigned n_good = 0, n_bad = 0;

    for (int i = 0; i < 50000; i++) {
        const Wharf__Request *request;
        const Wharf__Reply *reply;
        size_t nbytes = pack_hello();
        for (uint64_t n = 1 + test_random_below(&random, 4); n; n--)
            packet[test_random_below(&random, nbytes)] = (uint8_t)test_random_next(&random);
        if (test_random_one_in(&random, 3))
            nbytes = test_random_below(&random, nbytes);
        int r = wharf_control_unpack_request(&memory, packet, nbytes, &request);
        n_good += r == 0;
        n_bad += r == -EBADMSG;
        (void)wharf_control_unpack_reply(&memory, packet, nbytes, &reply);
    }
    cr_assert_gt(n_good, 1000);
    cr_assert_eq(n_good + n_bad, 50000);
}

/* ---- packets ------------------------------------------------------------------------------- */

static void make_pair(int ret_fds[2])
{
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fds), 0);
}

static struct wharf_control_receiver receiver;

Test(control, descriptors_arrive_and_are_closed_on_exec)
{
    int pair[2], fds[WHARF_CONTROL_MAX_FDS];

    make_pair(pair);
    for (unsigned i = 0; i < WHARF_CONTROL_MAX_FDS; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (size_t n = 0; n <= WHARF_CONTROL_MAX_FDS; n++) {
        cr_assert_eq(wharf_control_send(pair[0], packet, 10 + n, fds, n, 0), 0);
        cr_assert_eq(wharf_control_receive(pair[1], &receiver, 0), 0);
        cr_assert_eq(receiver.nbytes, 10 + n);
        cr_assert_eq(receiver.n_fds, n);
        for (size_t i = 0; i < n; i++) {
            cr_assert_eq(fcntl(receiver.fds[i], F_GETFD), FD_CLOEXEC);
            close(receiver.fds[i]);
        }
    }
    cr_assert_eq(wharf_control_send(pair[0], packet, 1, fds, WHARF_CONTROL_MAX_FDS + 1, 0),
                 -EINVAL);
}

/* By hand, since wharf_control_send refuses to. */
static void send_many_fds(int fd, size_t n_fds)
{
    uint8_t control[CMSG_SPACE(64 * sizeof(int))] = {0};
    struct iovec iov = {packet, 10};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = CMSG_SPACE(n_fds * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
    for (size_t i = 0; i < n_fds; i++)
        memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
    cr_assert_eq(sendmsg(fd, &header, 0), 10);
}

Test(control, too_many_descriptors_are_refused_and_none_leaks)
{
    int pair[2];

    make_pair(pair);
    int lowest = dup(0);
    close(lowest);
    send_many_fds(pair[0], 64);
    cr_assert_eq(wharf_control_receive(pair[1], &receiver, 0), -EBADMSG);
    cr_assert_leq(receiver.n_fds, WHARF_CONTROL_MAX_FDS);
    for (size_t i = 0; i < receiver.n_fds; i++)
        cr_assert_eq(close(receiver.fds[i]), 0);
    /* All numbers are free again: the next one is as low as before. */
    cr_assert_eq(dup(0), lowest);
}

Test(control, packet_over_the_limit_is_refused)
{
    static uint8_t longer[WHARF_CONTROL_MAX_NBYTES + 1];
    int pair[2];

    make_pair(pair);
    cr_assert_eq(wharf_control_send(pair[0], longer, sizeof(longer), NULL, 0, 0), 0);
    cr_assert_eq(wharf_control_receive(pair[1], &receiver, 0), -EBADMSG);
    cr_assert_eq(wharf_control_send(pair[0], longer, sizeof(longer) - 1, NULL, 0, 0), 0);
    cr_assert_eq(wharf_control_receive(pair[1], &receiver, 0), 0);
}

/* A peer that reads nothing must neither block the waker nor look like an error. */
Test(control, wakeup_on_a_full_socket_is_no_error)
{
    int pair[2];

    make_pair(pair);
    for (int i = 0; i < 20000; i++)
        cr_assert_eq(wharf_control_wake(pair[0]), 0);
    cr_assert_eq(wharf_control_send(pair[0], packet, 1, NULL, 0, MSG_DONTWAIT), -EAGAIN);
    cr_assert_eq(wharf_control_receive(pair[1], &receiver, 0), 0);
    cr_assert_eq(wharf_packet_kind(receiver.nbytes), WHARF_PACKET_WAKE);
    close(pair[1]);
    cr_assert_lt(wharf_control_wake(pair[0]), 0, "without a signal");
}
