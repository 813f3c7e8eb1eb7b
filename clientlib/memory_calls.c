/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls about memory: the arena's, and the program's own. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clientlib/error_text.h"
#include "clientlib/handle.h"
#include "clientlib/handshake.h"
#include "clientlib/request.h"
#include "clientlib/sealed_memory.h"
#include "clientlib/sized_struct.h"
#include "proto/wharf_ring.h"

_Static_assert((int)WHARF_CLIENT_MAX_REGIONS == WHARF_MAX_MEMORIES + 1, "the arena is one too");

int wharf_alloc(struct wharf *wharf, size_t nbytes, void **ret_memory)
{
    int r = wharf_client_enter(wharf);

    if (r < 0)
        return r;
    if (!ret_memory)
        r = wharf_client_fail(-EINVAL, "the place for the memory's address is NULL");
    else
        r = wharf_client_arena_take(&wharf->arena, nbytes, ret_memory);
    if (r == -ENOBUFS)
        wharf_client_set_message(
            "no %zu bytes of the arena are free in one piece: %llu of %llu are taken", nbytes,
            (unsigned long long)wharf->arena.extents.taken_nbytes,
            (unsigned long long)wharf->arena.nbytes);
    else if (r == -ENOMEM)
        wharf_client_set_message("out of memory");
    wharf_client_leave(wharf);
    return r;
}

int wharf_free(struct wharf *wharf, void *memory)
{
    int r = wharf_client_enter(wharf);

    if (r < 0)
        return r;
    if (memory && wharf_client_arena_give_back(&wharf->arena, memory) < 0)
        r = wharf_client_fail(-EINVAL, "%p is not from wharf_alloc, or was freed before", memory);
    wharf_client_has_changed(wharf);
    wharf_client_leave(wharf);
    return r;
}

/* ---- registration -------------------------------------------------------------------------- */

enum { MEMORY_NBYTES_0_1 = offsetof(struct wharf_memory, nbytes) + sizeof(size_t) };

static int check_memfd(const struct wharf_memory *own)
{
    int seals;
    int r = wharf_client_memfd_check(own->fd, own->nbytes, F_SEAL_GROW, "the memory", &seals);

    if (r < 0)
        return r;
    if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) && !(own->flags & WHARF_MEMORY_READ_ONLY))
        return wharf_client_fail(-EPERM, "the memory is sealed against writing: register it with "
                                         "WHARF_MEMORY_READ_ONLY");
    return 0;
}

static int copy_memory(struct wharf_memory *own, const struct wharf_memory *memory)
{
    if (!memory)
        return wharf_client_fail(-EINVAL, "the memory is NULL");
    int r = wharf_client_copy_struct(own, sizeof(*own), MEMORY_NBYTES_0_1, memory, "the memory");
    if (r < 0)
        return r;
    if (!own->address || own->nbytes == 0 || (own->flags & ~(uint32_t)WHARF_MEMORY_READ_ONLY))
        return wharf_client_fail(-EINVAL, "the memory has no address, no size or unknown flags");
    if (own->kind != WHARF_MEMORY_MEMFD && own->kind != WHARF_MEMORY_GPU)
        return wharf_client_fail(-EINVAL, "%u is no kind of memory", own->kind);
    return own->kind == WHARF_MEMORY_MEMFD ? check_memfd(own) : 0;
}

static int send_register(struct wharf *wharf, void *data)
{
    return wharf_client_send_register(wharf, data);
}

static const char *why_not_added(int r)
{
    switch (r) {
    case -EEXIST:
        return "some of them are registered";
    case -EINVAL:
        return "they reach around the end of the address space";
    case -ENOSPC:
        return "no more can be registered: unregister others first";
    default:
        return "out of memory";
    }
}

#define FEATURE(name) ((uint64_t)1 << WHARF__FEATURE__FEATURE_##name)

/* A region that may not be used yet.  With the lock. */
static int add_region(struct wharf *wharf, const struct wharf_memory *own,
                      struct wharf_client_region **ret_region)
{
    uint64_t features = wharf->link.facts.features;
    int is_gpu = own->kind == WHARF_MEMORY_GPU;
    int has_sources = !is_gpu || (features & FEATURE(GPU_SOURCES));

    if (is_gpu && !(features & FEATURE(GPU_MEMORY)))
        return wharf_client_fail(-EOPNOTSUPP, "GPU memory needs a daemon with a GPU, and not "
                                              "the engine CPU");
    if (!has_sources && (own->flags & WHARF_MEMORY_READ_ONLY))
        return wharf_client_fail(-EOPNOTSUPP, "the daemon is too old for sources in GPU memory");
    int fd = fcntl(own->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return wharf_client_fail(-errno, "cannot keep the memory's descriptor: %s",
                                 strerror(errno));
    int r = wharf_client_regions_add(&wharf->regions, own->address, own->nbytes, fd, ret_region);
    if (r < 0) {
        close(fd);
        return wharf_client_fail(r, "cannot register %zu bytes at %p: %s", own->nbytes,
                                 own->address, why_not_added(r));
    }
    (*ret_region)->kind = own->kind;
    (*ret_region)->is_read_only = own->flags & WHARF_MEMORY_READ_ONLY;
    (*ret_region)->is_write_only = !has_sources;
    return 0;
}

/* After the daemon's answer, or none: the region stays if that is `stays_at`.  Returns it. */
static int settle_region(struct wharf *wharf, struct wharf_client_region *region, int answer,
                         int stays_at)
{
    if (answer == stays_at)
        region->state = WHARF_CLIENT_REGION_READY;
    else if (answer == -ETIMEDOUT)
        wharf_client_regions_forget(&wharf->regions, region);
    else
        wharf_client_regions_remove(&wharf->regions, region);
    return answer;
}

static int register_memory(struct wharf *wharf, void *data, struct wharf_client_answer *answer)
{
    const struct wharf_memory *own = data;
    struct wharf_client_region *region;
    int r = add_region(wharf, own, &region);

    if (r < 0)
        return r;
    r = wharf_client_request_done(wharf, send_register, region, answer);
    return settle_region(wharf, region, r, 0);
}

int wharf_register(struct wharf *wharf, const struct wharf_memory *memory)
{
    struct wharf_memory own;
    int r = wharf_client_check(wharf);

    if (r == 0)
        r = copy_memory(&own, memory);
    return r < 0 ? r : wharf_client_with_answer(wharf, register_memory, &own);
}

int wharf_register_gpu(struct wharf *wharf, int fd, uint64_t address, size_t nbytes)
{
    struct wharf_memory memory = WHARF_MEMORY_INIT;

    memory.kind = WHARF_MEMORY_GPU;
    memory.fd = fd;
    memory.address = (void *)(uintptr_t)address;
    memory.nbytes = nbytes;
    return wharf_register(wharf, &memory);
}

/* ---- files --------------------------------------------------------------------------------- */

struct file_call {
    int fd;
    int is_read_only;
    int is_write_only;
    void *address;
};

static int check_file(struct file_call *call, uint32_t flags)
{
    int mode = fcntl(call->fd, F_GETFL);

    if (mode < 0 || mode & O_PATH)
        return wharf_client_fail(-EBADF, "%d is no descriptor of a file that is open", call->fd);
    call->is_read_only = flags & WHARF_MEMORY_READ_ONLY || (mode & O_ACCMODE) == O_RDONLY;
    call->is_write_only = (mode & O_ACCMODE) == O_WRONLY;
    if (call->is_read_only && call->is_write_only)
        return wharf_client_fail(-EACCES, "the file is open for writing alone");
    if (!call->is_read_only && mode & O_APPEND)
        return wharf_client_fail(-EINVAL, "the file is open with O_APPEND, which overrides "
                                          "offsets: open it again, or register it with "
                                          "WHARF_MEMORY_READ_ONLY");
    return 0;
}

/* As add_region. */
static int add_file(struct wharf *wharf, const struct file_call *call,
                    struct wharf_client_region **ret_region)
{
    if (!(wharf->link.facts.features & FEATURE(FILES)))
        return wharf_client_fail(-EOPNOTSUPP, "files need a daemon that reads them");
    int fd = fcntl(call->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return wharf_client_fail(-errno, "cannot keep the file's descriptor: %s", strerror(errno));
    int r = wharf_client_regions_add_file(&wharf->regions, fd, ret_region);
    if (r < 0) {
        close(fd);
        return wharf_client_fail(r, "cannot register the file: %s", why_not_added(r));
    }
    (*ret_region)->is_read_only = (uint32_t)call->is_read_only;
    (*ret_region)->is_write_only = (uint32_t)call->is_write_only;
    return 0;
}

static int register_file(struct wharf *wharf, void *data, struct wharf_client_answer *answer)
{
    struct file_call *call = data;
    struct wharf_client_region *region;
    int r = add_file(wharf, call, &region);

    if (r < 0)
        return r;
    call->address = (void *)region->address;
    r = wharf_client_request_done(wharf, send_register, region, answer);
    return settle_region(wharf, region, r, 0);
}

int wharf_register_file(struct wharf *wharf, int fd, uint32_t flags, void **ret_address)
{
    struct file_call call = {.fd = fd};
    int r = wharf_client_check(wharf);

    if (r == 0 && (!ret_address || flags & ~(uint32_t)WHARF_MEMORY_READ_ONLY))
        r = wharf_client_fail(-EINVAL, "the place for the address is NULL, or a flag unknown");
    if (r == 0)
        r = check_file(&call, flags);
    if (r == 0)
        r = wharf_client_with_answer(wharf, register_file, &call);
    if (r == 0)
        *ret_address = call.address;
    return r;
}

/* ---- start words --------------------------------------------------------------------------- */

/* As the daemon wants it: nobody can punch holes into it, and nobody else write there. */
static int seal_words(int fd)
{
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

    return fcntl(fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}

static int make_words(struct wharf_memory *own)
{
    int r = 0;

    own->fd = memfd_create("wharf-start", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (own->fd < 0 || ftruncate(own->fd, (off_t)own->nbytes) < 0)
        r = -errno;
    if (r == 0)
        r = wharf_client_map(own->fd, own->nbytes, PROT_READ | PROT_WRITE, &own->address);
    if (r == 0)
        r = seal_words(own->fd);
    if (r == 0)
        return 0;
    if (own->address)
        munmap(own->address, own->nbytes);
    if (own->fd >= 0)
        close(own->fd);
    return wharf_client_fail(r, "cannot make memory for start words: %s", strerror(-r));
}

/* Beyond the limit the daemon would take the memory, and refuse the jobs. */
static int check_sum(const struct wharf *wharf, uint64_t nbytes)
{
    for (uint32_t i = 0; i < wharf->regions.n_numbers; i++) {
        const struct wharf_client_region *region = wharf->regions.by_number[i];
        if (region && region->is_own)
            nbytes += region->nbytes;
    }
    if (nbytes <= WHARF_RING_MAX_START_NBYTES)
        return 0;
    return wharf_client_fail(-EDQUOT, "start words of one handle take %llu bytes at most",
                             (unsigned long long)WHARF_RING_MAX_START_NBYTES);
}

/* The mapping is the region's from when that is there. */
static int register_words(struct wharf *wharf, void *data, struct wharf_client_answer *answer)
{
    struct wharf_memory *own = data;
    struct wharf_client_region *region;
    int r = -EOPNOTSUPP;

    if (wharf->link.facts.features & FEATURE(START_WORDS)) {
        r = check_sum(wharf, own->nbytes);
        r = r < 0 ? r : add_region(wharf, own, &region);
    } else {
        wharf_client_set_message("start words need a daemon that looks at them");
    }
    if (r < 0)
        return r;
    region->is_own = 1;
    own->address = NULL;
    r = wharf_client_request_done(wharf, send_register, region, answer);
    void *address = (void *)region->address;
    r = settle_region(wharf, region, r, 0);
    if (r == 0)
        own->address = address;
    return r;
}

int wharf_make_start_words(struct wharf *wharf, size_t n_words, uint64_t **ret_words)
{
    struct wharf_memory own = WHARF_MEMORY_INIT;
    int r = wharf_client_check(wharf);

    if (r == 0 &&
        (!ret_words || n_words == 0 || n_words > WHARF_RING_MAX_START_NBYTES / sizeof(uint64_t)))
        r = wharf_client_fail(-EINVAL, "the words' place is NULL, or their number is not 1 to %llu",
                              (unsigned long long)WHARF_RING_MAX_START_NBYTES / sizeof(uint64_t));
    if (r < 0)
        return r;
    own.flags = WHARF_MEMORY_READ_ONLY;
    own.nbytes = wharf_ring_whole_pages(n_words * sizeof(uint64_t));
    r = make_words(&own);
    if (r < 0)
        return r;
    r = wharf_client_with_answer(wharf, register_words, &own);
    close(own.fd);
    if (r == 0)
        *ret_words = own.address;
    else if (own.address)
        munmap(own.address, own.nbytes);
    return r;
}

/* ---- and its end --------------------------------------------------------------------------- */

static int remove_region(struct wharf *wharf, struct wharf_client_region *region,
                         struct wharf_client_answer *answer)
{
    Wharf__UnregisterMemoryRequest memory = WHARF__UNREGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    memory.region = region->number;
    request.body_case = WHARF__REQUEST__BODY_UNREGISTER_MEMORY;
    request.unregister_memory = &memory;
    region->state = WHARF_CLIENT_REGION_REMOVING;
    int r = wharf_client_request_removal(wharf, &request, answer);
    return settle_region(wharf, region, r, -EBUSY);
}

static int unregister(struct wharf *wharf, void *address, struct wharf_client_answer *answer)
{
    struct wharf_client_region *region = wharf_client_regions_find(&wharf->regions, address);

    if (!region)
        return wharf_client_fail(-ENOENT, "nothing is registered at %p", address);
    if (region->n_uses)
        return wharf_client_fail(-EBUSY, "jobs in flight use the memory at %p", address);
    return remove_region(wharf, region, answer);
}

int wharf_unregister(struct wharf *wharf, void *address)
{
    int r = wharf_client_check(wharf);

    return r < 0 ? r : wharf_client_with_answer(wharf, unregister, address);
}
