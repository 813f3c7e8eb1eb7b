/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitizer_fiber.h: tells the address and thread sanitizers which stack the thread is on.
 * Without them every function here is empty.
 */
#ifndef WHARF_KERNELS_SIMT_SANITIZER_FIBER_H
#define WHARF_KERNELS_SIMT_SANITIZER_FIBER_H

#include <stddef.h>

/* clang has features where gcc has macros. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define WHARF_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define WHARF_TSAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define WHARF_ASAN
#endif
#ifdef __SANITIZE_THREAD__
#define WHARF_TSAN
#endif

#ifdef WHARF_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef WHARF_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/*
 * For functions that run across a switch: their frames must stay on the lane's own stack, and
 * the fake frames that asan would give them cost more than the switch itself.
 */
#define WHARF_NO_ASAN __attribute__((no_sanitize("address")))

namespace wharf
{
namespace simt
{

/* One stack that the thread can be on. */
struct fiber_notes {
    const void *bottom;
    size_t nbytes;
    void *fake_stack; /* asan's, while another stack runs */
    void *tsan_fiber;
};

/* Before a switch. */
inline void fiber_leave(fiber_notes &from, fiber_notes &to)
{
    (void)from, (void)to;
#ifdef WHARF_ASAN
    __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.nbytes);
#endif
#ifdef WHARF_TSAN
    __tsan_switch_to_fiber(to.tsan_fiber, 0);
#endif
}

/* After a switch, on the stack that runs now; `home` learns the bounds of the thread's stack. */
inline void fiber_arrive(fiber_notes &now, fiber_notes *home)
{
    (void)now, (void)home;
#ifdef WHARF_ASAN
    __sanitizer_finish_switch_fiber(now.fake_stack, home ? &home->bottom : nullptr,
                                    home ? &home->nbytes : nullptr);
#endif
}

/* A stack gets ready to run a new coroutine. */
inline void fiber_make(fiber_notes &f)
{
    f.fake_stack = nullptr;
#ifdef WHARF_TSAN
    f.tsan_fiber = __tsan_create_fiber(0);
#endif
}

inline void fiber_unmake(fiber_notes &f)
{
    (void)f;
#ifdef WHARF_TSAN
    __tsan_destroy_fiber(f.tsan_fiber);
#endif
}

/* The thread's own stack. */
inline void fiber_home(fiber_notes &f)
{
    f.fake_stack = nullptr;
#ifdef WHARF_TSAN
    f.tsan_fiber = __tsan_get_current_fiber();
#endif
}

inline void poison(const void *p, size_t nbytes)
{
    (void)p, (void)nbytes;
#ifdef WHARF_ASAN
    __asan_poison_memory_region(p, nbytes);
#endif
}

inline void unpoison(const void *p, size_t nbytes)
{
    (void)p, (void)nbytes;
#ifdef WHARF_ASAN
    __asan_unpoison_memory_region(p, nbytes);
#endif
}

} // namespace simt
} // namespace wharf

#endif
