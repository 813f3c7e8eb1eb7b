/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race_watch.cc: finds races between lanes.
 *
 * Device code reaches memory by plain pointers, so it takes the compiler to watch it: what is
 * compiled with -fsanitize=thread calls the functions at the end of this file at each access.  (The
 * thread sanitizer's own library, for which these calls are meant, is not linked: it knows threads,
 * and lanes are none.)  They ask the SIMT layer which lane runs, and remember for each byte who
 * wrote it last and who has read it since.
 *
 * A race is an access by one lane and one by another, at least one of them a write, where nothing
 * between them orders memory: for lanes of one warp a syncwarp() or a syncblock(), for those of
 * different warps of a block a syncblock().  No other collective counts, nor does the order in
 * which lanes run here.  Atomic accesses, which is what warp.cuh's functions for memory that others
 * write meanwhile are, race with nothing.  Lanes may write different bytes of one word, as on a
 * GPU.
 *
 * Each thread watches its own warps, alone.  What library functions do (memcpy of a size that is no
 * constant) is not seen; device code calls none.
 *
 * The first race ends the program, as all else does that the SIMT layer finds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <unordered_map>

#include "kernels/simt/simt.h"

using namespace wharf::simt;

/* The linker's: where the program begins in memory. */
extern "C" const char __executable_start[];

namespace
{

constexpr uintptr_t PAGE = 4096;

/* Accesses to one byte, by lanes of one warp between two orders of memory. */
struct accesses {
    uint32_t time;  /* of the last one, as simt.h counts: 0 is never */
    uint32_t place; /* of the last one, in the program: the offset of what its call returns to */
    uint32_t lanes; /* mask */
    uint32_t warp;
};

/* What has to be remembered of a byte: whatever comes after the last write, after the last reads of
 * one warp and after the last reads of any other one comes after all. */
struct byte_watch {
    accesses write, read, other_read;
};

/* Pages are kept as long as the thread: tests use the same addresses again and again. */
class memory_watch
{
  public:
    /* Of the byte there and all behind it on its page. */
    byte_watch *at(uintptr_t address)
    {
        if (!last || address / PAGE != last_number) {
            std::unique_ptr<byte_watch[]> &page = pages[address / PAGE];
            if (!page)
                page.reset(new byte_watch[PAGE]());
            last = page.get();
            last_number = address / PAGE;
        }
        return last + address % PAGE;
    }

  private:
    std::unordered_map<uintptr_t, std::unique_ptr<byte_watch[]>> pages;
    byte_watch *last = nullptr;
    uintptr_t last_number = 0;
};
thread_local memory_watch watched;

/* The access at hand. */
struct event {
    uintptr_t address;
    bool writes;
    uint32_t place;
    moment at;
};

/* The lines that a place is of; device code is inlined, so they are many. */
void show(uint32_t place)
{
    char command[100];
    /* The byte before what a call returns to is the call's. */
    snprintf(command, sizeof command, "addr2line -Cpsie /proc/%d/exe %#x >&2", (int)getpid(),
             place - 1);
    if (system(command) != 0)
        fprintf(stderr, "offset %#x in the program, which addr2line would name\n", place - 1);
}

void show_event(const event &e)
{
    fprintf(stderr, "simt: a race at %#lx: lane %u of warp %u %s it\n", (unsigned long)e.address,
            e.at.lane, e.at.warp, e.writes ? "writes" : "reads");
    show(e.place);
}

[[noreturn]] void fail_other_stack(const event &e)
{
    show_event(e);
    fprintf(stderr, "and it is on the stack of another lane\n");
    abort();
}

[[noreturn]] void fail_unordered(const event &e, const accesses &before, const char *did)
{
    show_event(e);
    fprintf(stderr, "and nothing orders that after lanes %#x of warp %u, which %s it\n",
            before.lanes, before.warp, did);
    show(before.place);
    abort();
}

/* Whether these happened since memory was last ordered between their warp and the event's lane. */
bool is_recent(const moment &at, const accesses &a)
{
    return a.time >= (a.warp == at.warp ? at.warp_since : at.block_since);
}

void check_after(const event &e, const accesses &before, const char *did)
{
    uint32_t own = before.warp == e.at.warp ? 1u << e.at.lane : 0;
    if ((before.lanes & ~own) && is_recent(e.at, before))
        fail_unordered(e, before, did);
}

void note_read(byte_watch &b, const event &e)
{
    bool joins = b.read.warp == e.at.warp && is_recent(e.at, b.read);
    if (b.read.warp != e.at.warp)
        b.other_read = b.read;
    b.read = {e.at.now, e.place, (joins ? b.read.lanes : 0) | 1u << e.at.lane, e.at.warp};
}

void look_at_byte(const event &e, byte_watch &b)
{
    check_after(e, b.write, "wrote");
    if (!e.writes) {
        note_read(b, e);
        return;
    }
    check_after(e, b.read, "read");
    check_after(e, b.other_read, "read");
    b.write = {e.at.now, e.place, 1u << e.at.lane, e.at.warp};
}

void look(const void *p, size_t nbytes, bool writes, const void *return_address)
{
    event e;
    e.address = reinterpret_cast<uintptr_t>(p);
    e.writes = writes;
    e.place = (uint32_t)(static_cast<const char *>(return_address) - __executable_start);
    switch (look_at_access(p, e.at)) {
    case owner::nobody:
    case owner::layer:
        return;
    case owner::other_lane:
        fail_other_stack(e);
    case owner::shared:
        break;
    }
    memory_watch &memory = watched;
    byte_watch *b = nullptr;
    for (; nbytes; nbytes--, e.address++, b++) {
        if (!b || e.address % PAGE == 0)
            b = memory.at(e.address);
        look_at_byte(e, *b);
    }
}

} // namespace

/* ---- what the compiler calls ---------------------------------------------------------------- */

#define LOOK(p, nbytes, writes) look(p, nbytes, writes, __builtin_return_address(0))

#define PLAIN(nbytes)                                                                              \
    void __tsan_read##nbytes(void *p)                                                              \
    {                                                                                              \
        LOOK(p, nbytes, false);                                                                    \
    }                                                                                              \
    void __tsan_write##nbytes(void *p)                                                             \
    {                                                                                              \
        LOOK(p, nbytes, true);                                                                     \
    }                                                                                              \
    void __tsan_unaligned_read##nbytes(void *p)                                                    \
    {                                                                                              \
        LOOK(p, nbytes, false);                                                                    \
    }                                                                                              \
    void __tsan_unaligned_write##nbytes(void *p)                                                   \
    {                                                                                              \
        LOOK(p, nbytes, true);                                                                     \
    }

/* In the strictest order, whichever was asked for. */
#define ATOMIC(nbits)                                                                              \
    uint##nbits##_t __tsan_atomic##nbits##_load(const uint##nbits##_t *p, int)                     \
    {                                                                                              \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                               \
    }                                                                                              \
    void __tsan_atomic##nbits##_store(uint##nbits##_t *p, uint##nbits##_t v, int)                  \
    {                                                                                              \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                  \
    }                                                                                              \
    uint##nbits##_t __tsan_atomic##nbits##_fetch_add(uint##nbits##_t *p, uint##nbits##_t v, int)   \
    {                                                                                              \
        return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                         \
    }                                                                                              \
    uint##nbits##_t __tsan_atomic##nbits##_fetch_or(uint##nbits##_t *p, uint##nbits##_t v, int)    \
    {                                                                                              \
        return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);                                          \
    }                                                                                              \
    uint##nbits##_t __tsan_atomic##nbits##_fetch_xor(uint##nbits##_t *p, uint##nbits##_t v, int)   \
    {                                                                                              \
        return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST);                                         \
    }                                                                                              \
    int __tsan_atomic##nbits##_compare_exchange_weak(uint##nbits##_t *p, uint##nbits##_t *old,     \
                                                     uint##nbits##_t v, int, int)                  \
    {                                                                                              \
        return __atomic_compare_exchange_n(p, old, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
    }                                                                                              \
    int __tsan_atomic##nbits##_compare_exchange_strong(uint##nbits##_t *p, uint##nbits##_t *old,   \
                                                       uint##nbits##_t v, int, int)                \
    {                                                                                              \
        return __atomic_compare_exchange_n(p, old, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
    }

extern "C" {

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void __tsan_read_range(void *p, size_t nbytes)
{
    LOOK(p, nbytes, false);
}

void __tsan_write_range(void *p, size_t nbytes)
{
    LOOK(p, nbytes, true);
}

void __tsan_atomic_thread_fence(int)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void __tsan_init(void) {}

void __tsan_func_entry(void *) {}

void __tsan_func_exit(void) {}

void __tsan_vptr_update(void **, void *) {}
}
