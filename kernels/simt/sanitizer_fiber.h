/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sanitizer_fiber.h: tells the address sanitizer which stack the thread is on.  Without it every
 * function here is empty.
 */
#ifndef WHARF_KERNELS_SIMT_SANITIZER_FIBER_H
#define WHARF_KERNELS_SIMT_SANITIZER_FIBER_H

#include <stddef.h>

/* clang has features where gcc has macros. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define WHARF_ASAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define WHARF_ASAN
#endif

#ifdef WHARF_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
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
};

/* Before a switch. */
inline void fiber_leave(fiber_notes &from, fiber_notes &to)
{
    (void)from, (void)to;
#ifdef WHARF_ASAN
    __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.nbytes);
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
