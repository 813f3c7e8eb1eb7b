/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_call.c: decodes the whole stream of one call, if nothing speaks against it.
 *
 * Whatever is not good is left to the genuine library, which decodes the stream from its first byte
 * again, so that errors are exactly its own.
 */
#include <pthread.h>
#include <sys/resource.h>

#include "clientlib/preload/preload.h"

__thread bool wharf_preload_in_genuine;

/* ---- the stack ---- */

/* What a decoder may use, and as much again for what calls it. */
enum { STACK_NBYTES = 128 << 10 };

/* Of this thread: the lowest and the highest address of its stack that count. */
static __thread uintptr_t stack_low __attribute__((tls_model("initial-exec")));
static __thread uintptr_t stack_high __attribute__((tls_model("initial-exec")));

/* Of the main thread, which runs this.  Its stack grows as far as the limit allows. */
__attribute__((constructor)) static void begin(void)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    struct rlimit limit = {0};
    uintptr_t nbytes = 8 << 20;

    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < nbytes)
        nbytes = limit.rlim_cur;
    stack_high = here + (64 << 10);
    stack_low = here - nbytes;
}

static void find_stack(void)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t nbytes = 0;

    /* Nothing is large enough, if nothing is found. */
    stack_low = stack_high = UINTPTR_MAX;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &nbytes) == 0) {
        stack_low = (uintptr_t)low;
        stack_high = stack_low + nbytes;
    }
    pthread_attr_destroy(&attributes);
}

/* Whether a decoder's tables have room.  Programs switch to stacks of their own making, too. */
static bool has_stack(void)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (!stack_high)
        find_stack();
    return here < stack_high && here >= stack_low && here - stack_low >= STACK_NBYTES;
}

/* ---- the call ---- */

/* Whether input and output do not overlap: decoders may write anywhere in the output. */
static bool are_apart(const struct wharf_preload_whole *whole)
{
    const uintptr_t in = (uintptr_t)whole->in, out = (uintptr_t)whole->out;

    return in < out ? out - in >= whole->in_nbytes : in - out >= whole->out_avail;
}

static bool decode(const struct wharf_preload_whole *whole, struct wharf_outcome *ret_outcome)
{
    if (!wharf_preload_ask_daemon(whole, ret_outcome))
        whole->decode(whole->in, whole->in_nbytes, whole->out, whole->out_avail, NULL, ret_outcome);
    return ret_outcome->result == WHARF_OK &&
           (!whole->takes_all || ret_outcome->in_nbytes == whole->in_nbytes) &&
           (!whole->fills_all || ret_outcome->out_nbytes == whole->out_avail);
}

bool wharf_preload_decode_whole(const struct wharf_preload_whole *whole, enum wharf_preload_why why,
                                struct wharf_outcome *ret_outcome)
{
    if (wharf_preload_in_genuine)
        return false;
    if (wharf_preload_is_left_alone())
        why = WHARF_WHY_CHILD;
    else if (wharf_preload_is_skipped(whole->library))
        why = WHARF_WHY_SKIPPED;
    else if (why == WHARF_WHY_TAKEN && !are_apart(whole))
        why = WHARF_WHY_OVERLAP;
    else if (why == WHARF_WHY_TAKEN && !has_stack())
        why = WHARF_WHY_STACK;
    if (why == WHARF_WHY_TAKEN && !decode(whole, ret_outcome))
        why = WHARF_WHY_BAD;
    wharf_preload_count_stream(whole->library, why, NULL);
    if (why != WHARF_WHY_TAKEN)
        return false;
    wharf_preload_count_bytes(whole->library, true, ret_outcome->out_nbytes);
    return true;
}

void wharf_preload_count_declined(const struct wharf_preload_whole *whole, uint64_t out_nbytes)
{
    if (!wharf_preload_in_genuine)
        wharf_preload_count_bytes(whole->library, false, out_nbytes);
}
