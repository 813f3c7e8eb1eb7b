/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handshake.c: the steps from Hello to the last registration.
 *
 * Each reply leads to the next request, so a new daemon gets everything that the last one had.  A
 * daemon's answers are checked: descriptors, sizes and seals, before memory is mapped.
 */
#include "clientlib/handshake.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "clientlib/link.h"
#include "clientlib/now.h"
#include "clientlib/rings.h"
#include "clientlib/sealed_memory.h"

/* Those that this library can use. */
#define COMPRESS ((uint64_t)1 << WHARF__FEATURE__FEATURE_COMPRESS)
#define DONE_WORDS ((uint64_t)1 << WHARF__FEATURE__FEATURE_DONE_WORDS)
#define START_WORDS ((uint64_t)1 << WHARF__FEATURE__FEATURE_START_WORDS)
#define MARKS ((uint64_t)1 << WHARF__FEATURE__FEATURE_MARKS)
#define FEATURES                                                                                   \
    ((uint64_t)1 << WHARF__FEATURE__FEATURE_GPU_MEMORY |                                           \
     (uint64_t)1 << WHARF__FEATURE__FEATURE_GPU_SOURCES |                                          \
     (uint64_t)1 << WHARF__FEATURE__FEATURE_FILES |                                                \
     (uint64_t)1 << WHARF__FEATURE__FEATURE_MODELS | MARKS | COMPRESS | DONE_WORDS | START_WORDS)

/* Takes the result of sending a request of the handshake; the link goes DOWN if that failed.  A
 * daemon that has closed may have said why: that is found where its answer would be. */
static int check_sent(struct wharf *wharf, int r)
{
    if (r == -EPIPE || r == -ECONNRESET)
        return 0;
    if (r < 0)
        wharf_client_link_lost(wharf, r, "cannot send to the daemon: %s", strerror(-r));
    return r;
}

static int send_request(struct wharf *wharf, Wharf__Request *request, const int *fds, size_t n_fds)
{
    return check_sent(wharf, wharf_client_link_send(&wharf->link, request, fds, n_fds));
}

/* ---- Hello --------------------------------------------------------------------------------- */

void wharf_client_handshake_begin(struct wharf *wharf)
{
    Wharf__HelloRequest hello = WHARF__HELLO_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    hello.version = hello.min_version = WHARF_CONTROL_VERSION;
    hello.optional_features = FEATURES;
    hello.client_name = wharf->link.client_name;
    request.body_case = WHARF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    if (send_request(wharf, &request, NULL, 0) == 0)
        wharf->link.state = WHARF_CLIENT_LINK_GREETING;
}

static uint64_t bits_of(const uint32_t *numbers, size_t n_numbers)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < n_numbers; i++)
        if (numbers[i] < 64)
            bits |= (uint64_t)1 << numbers[i];
    return bits;
}

static void note_facts(struct wharf_client_facts *facts, const Wharf__HelloReply *hello)
{
    facts->generation = hello->generation;
    facts->features = hello->features;
    facts->codecs = bits_of(hello->codecs, hello->n_codecs);
    facts->engines = (uint32_t)bits_of(hello->engines, hello->n_engines);
    facts->max_entries = hello->limits->max_entries;
    facts->max_jobs = hello->limits->max_jobs;
    facts->max_batch_chunks = hello->limits->max_batch_chunks;
    facts->max_gpu_chunk_nbytes = hello->limits->max_gpu_chunk_nbytes;
    facts->max_gpu_large_nbytes = hello->limits->max_gpu_large_nbytes;
    facts->max_gpu_large_ns = hello->limits->max_gpu_large_ns;
    facts->max_compress_nbytes =
        hello->features & COMPRESS ? hello->limits->max_compress_nbytes : 0;
    facts->max_start_ns = hello->features & START_WORDS ? hello->limits->max_start_ns : 0;
    facts->max_arena_nbytes = hello->limits->max_arena_nbytes;
    facts->max_job_nbytes = hello->limits->max_job_nbytes;
    wharf_client_copy_printable(facts->version, sizeof(facts->version), hello->daemon_version);
}

/* What the program left to the daemon is settled by the first one, for good: tables are made and
 * memory is mapped by it. */
static void settle_sizes(struct wharf_client_link *link, const struct wharf_client_facts *facts)
{

    if (link->n_entries == 0) {
        uint32_t most = facts->max_entries < facts->max_jobs ? facts->max_entries : facts->max_jobs;
        link->n_entries = WHARF_RING_DEFAULT_ENTRIES;
        while (link->n_entries > most && link->n_entries > WHARF_RING_MIN_ENTRIES)
            link->n_entries /= 2;
    }
    if (link->arena_nbytes == 0) {
        link->arena_nbytes = WHARF_DEFAULT_ARENA_NBYTES;
        if (link->arena_nbytes > facts->max_arena_nbytes)
            link->arena_nbytes = facts->max_arena_nbytes & ~(uint64_t)4095;
    }
}

static int sizes_are_allowed(struct wharf *wharf)
{
    struct wharf_client_link *link = &wharf->link;
    const struct wharf_client_facts *facts = &link->facts;

    if (link->n_entries <= facts->max_entries && link->arena_nbytes > 0 &&
        link->arena_nbytes <= facts->max_arena_nbytes)
        return 1;
    wharf_client_link_lost(
        wharf, -EDQUOT,
        "the daemon allows %u jobs in flight and an arena of %llu bytes, and not "
        "%u and %llu: max_entries and max_arena, [quota] of its wharfd.conf",
        facts->max_entries ? facts->max_entries - 1 : 0,
        (unsigned long long)facts->max_arena_nbytes, link->n_entries - 1,
        (unsigned long long)link->arena_nbytes);
    link->is_refused = 1;
    return 0;
}

static void open_queue(struct wharf *wharf)
{
    struct wharf_client_link *link = &wharf->link;
    Wharf__OpenQueueRequest open = WHARF__OPEN_QUEUE_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    int brings_arena = wharf->arena.address != NULL;

    settle_sizes(link, &link->facts);
    if (!sizes_are_allowed(wharf))
        return;
    open.n_entries = link->n_entries;
    open.arena_nbytes = link->arena_nbytes;
    open.bring_arena = brings_arena;
    open.default_class = wharf->default_class;
    open.engine = wharf->engine;
    request.body_case = WHARF__REQUEST__BODY_OPEN_QUEUE;
    request.open_queue = &open;
    if (send_request(wharf, &request, &wharf->arena.fd, brings_arena) == 0)
        link->state = WHARF_CLIENT_LINK_OPENING;
}

static void take_hello(struct wharf *wharf, const Wharf__HelloReply *hello)
{
    struct wharf_client_link *link = &wharf->link;

    if (hello->version != WHARF_CONTROL_VERSION) {
        wharf_client_link_break(wharf, "it chose version %u", hello->version);
        return;
    }
    if (hello->features & ~FEATURES) {
        wharf_client_link_break(wharf, "it chose features that were not offered");
        return;
    }
    if (!hello->limits) {
        wharf_client_link_break(wharf, "its Hello has no limits");
        return;
    }
    note_facts(&link->facts, hello);
    wharf_client_regions_drop_unknown(&wharf->regions);
    wharf_client_models_drop_unknown(&wharf->models);
    open_queue(wharf);
}

/* ---- the queue ----------------------------------------------------------------------------- */

/* Takes the arena over: its descriptor is not the receiver's any more. */
static int adopt_arena(struct wharf *wharf, struct wharf_control_receiver *receiver)
{
    uint64_t nbytes = wharf->link.arena_nbytes;
    int fd = receiver->fds[2];
    int seals;

    int r = wharf_client_memfd_check(fd, nbytes, 0, "the daemon's arena", &seals);
    if (r < 0)
        return r;
    r = wharf_client_arena_adopt(&wharf->arena, &wharf->regions, fd, nbytes);
    if (r < 0)
        return wharf_client_fail(r, "cannot map the daemon's arena: %s", strerror(-r));
    receiver->n_fds--;
    return 0;
}

static void come_up(struct wharf *wharf)
{
    struct wharf_client_link *link = &wharf->link;

    link->state = WHARF_CLIENT_LINK_UP;
    link->up_ns = link->checked_ns = wharf_client_now_ns();
    link->n_ups++;
    wharf_client_has_changed(wharf);
}

/* The models from `parameter` on that the last session had; UP when there is none left. */
static void register_models_from(struct wharf *wharf, uint32_t parameter)
{
    struct wharf_client_link *link = &wharf->link;

    for (; parameter - WHARF_FIRST_MODEL < WHARF_CLIENT_MAX_MODELS; parameter++) {
        struct wharf_client_model *model = wharf_client_models_find(&wharf->models, parameter);
        if (!model || model->state != WHARF_CLIENT_MODEL_READY)
            continue;
        int r = wharf_client_send_model(wharf, model);
        if (r == -EOPNOTSUPP) {
            wharf_client_link_lost(wharf, r, "%s: the daemon is too old for models",
                                   link->address.sun_path);
            link->is_refused = 1;
        } else if (check_sent(wharf, r) == 0) {
            link->state = WHARF_CLIENT_LINK_MODELLING;
        }
        link->registering_number = parameter;
        return;
    }
    come_up(wharf);
}

/* The regions from `number` on that the last session had; then its models. */
static void register_from(struct wharf *wharf, uint32_t number)
{
    struct wharf_client_link *link = &wharf->link;

    for (; number < wharf->regions.n_numbers; number++) {
        const struct wharf_client_region *region = wharf->regions.by_number[number];
        if (!region || region->state != WHARF_CLIENT_REGION_READY)
            continue;
        if (check_sent(wharf, wharf_client_send_register(wharf, region)) == 0)
            link->state = WHARF_CLIENT_LINK_REGISTERING;
        link->registering_number = number;
        return;
    }
    register_models_from(wharf, WHARF_FIRST_MODEL);
}

static void take_queue(struct wharf *wharf, const Wharf__OpenQueueReply *opened)
{
    struct wharf_client_link *link = &wharf->link;
    struct wharf_control_receiver *receiver = &link->packets->receiver;
    size_t n_expected = wharf->arena.address ? 2 : 3;
    int r = 0;

    if (receiver->n_fds != n_expected) {
        wharf_client_link_break(wharf, "its queue came with %zu descriptors instead of %zu",
                                receiver->n_fds, n_expected);
        return;
    }
    if (opened->n_entries != link->n_entries || opened->arena_nbytes < link->arena_nbytes) {
        wharf_client_link_break(wharf, "its queue has %u entries and an arena of %llu bytes",
                                opened->n_entries, (unsigned long long)opened->arena_nbytes);
        return;
    }
    r = wharf_client_rings_new(receiver->fds[0], receiver->fds[1], link->n_entries,
                               (link->facts.features & MARKS) != 0,
                               (link->facts.features & DONE_WORDS) != 0, &link->rings);
    if (r == 0 && n_expected == 3)
        r = adopt_arena(wharf, receiver);
    if (r < 0) {
        wharf_client_link_break(wharf, "%s", wharf_error_message());
        return;
    }
    link->n_queues++;
    register_from(wharf, 1);
}

int wharf_client_send_model(struct wharf *wharf, const struct wharf_client_model *model)
{
    Wharf__RegisterModelRequest own = WHARF__REGISTER_MODEL_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    if (!(wharf->link.facts.features & (uint64_t)1 << WHARF__FEATURE__FEATURE_MODELS))
        return wharf_client_fail(-EOPNOTSUPP, "the daemon is too old for models");
    own.model = wharf_client_model_parameter(&wharf->models, model);
    own.codec = model->codec;
    own.nbytes = model->nbytes;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MODEL;
    request.register_model = &own;
    return wharf_client_link_send(&wharf->link, &request, &model->fd, 1);
}

static Wharf__MemoryKind kind_of(const struct wharf_client_region *region)
{
    switch (region->kind) {
    case WHARF_MEMORY_GPU:
        return WHARF__MEMORY_KIND__MEMORY_KIND_GPU;
    case WHARF_CLIENT_FILE:
        return WHARF__MEMORY_KIND__MEMORY_KIND_FILE;
    default:
        return WHARF__MEMORY_KIND__MEMORY_KIND_MEMFD;
    }
}

int wharf_client_send_register(struct wharf *wharf, const struct wharf_client_region *region)
{
    Wharf__RegisterMemoryRequest memory = WHARF__REGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    memory.region = region->number;
    memory.kind = kind_of(region);
    memory.nbytes = region->nbytes;
    memory.read_only = region->is_read_only;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MEMORY;
    request.register_memory = &memory;
    return wharf_client_link_send(&wharf->link, &request, &region->fd, 1);
}

/* ---- any reply ----------------------------------------------------------------------------- */

static const char *name_of(enum wharf_client_link_state state)
{
    switch (state) {
    case WHARF_CLIENT_LINK_GREETING:
        return "the connection";
    case WHARF_CLIENT_LINK_OPENING:
        return "a queue";
    case WHARF_CLIENT_LINK_REGISTERING:
        return "registered memory";
    default:
        return "a registered model";
    }
}

static void take_refusal(struct wharf *wharf, const Wharf__Error *error)
{
    struct wharf_client_link *link = &wharf->link;
    char text[sizeof(link->text) / 2];
    int code = wharf_client_error_code(error);

    wharf_client_copy_printable(text, sizeof(text), error->text);
    wharf_client_link_lost(wharf, code, "%s: the daemon refused %s: %s", link->address.sun_path,
                           name_of(link->state), text[0] ? text : strerror(-code));
    /* A daemon that is going down has a successor, perhaps. */
    link->is_refused = code != -ESHUTDOWN;
}

void wharf_client_handshake_take(struct wharf *wharf, const Wharf__Reply *reply)
{
    struct wharf_client_link *link = &wharf->link;

    if (reply->body_case == WHARF__REPLY__BODY_ERROR)
        take_refusal(wharf, reply->error);
    else if (link->state == WHARF_CLIENT_LINK_GREETING &&
             reply->body_case == WHARF__REPLY__BODY_HELLO)
        take_hello(wharf, reply->hello);
    else if (link->state == WHARF_CLIENT_LINK_OPENING &&
             reply->body_case == WHARF__REPLY__BODY_OPEN_QUEUE)
        take_queue(wharf, reply->open_queue);
    else if (link->state == WHARF_CLIENT_LINK_REGISTERING &&
             reply->body_case == WHARF__REPLY__BODY_DONE)
        register_from(wharf, link->registering_number + 1);
    else if (link->state == WHARF_CLIENT_LINK_MODELLING &&
             reply->body_case == WHARF__REPLY__BODY_DONE)
        register_models_from(wharf, link->registering_number + 1);
    else
        wharf_client_link_break(wharf, "its reply is not to what was asked");
}
