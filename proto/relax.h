/* SPDX-License-Identifier: Apache-2.0 */
/* relax.h: for loops that look at memory until another processor has written there. */
#ifndef WHARF_RELAX_H
#define WHARF_RELAX_H

/* Leaves the processor's core to its other thread for a moment, and its power unused. */
static inline void wharf_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    /* Longer than `yield`, which does nothing on most of them. */
    __asm__ volatile("isb");
#endif
}

#endif
