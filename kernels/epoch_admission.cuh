/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_admission.cuh: so many warps at a time, in the order in which they came.
 *
 * A few dozen warps that copy are all that the link to the host can use.  If all copy that could,
 * each takes as long as all together; what they have on their way fills the queues between a
 * multiprocessor and the link, in which those that decode wait too; and warps that began together
 * end together, so that the link has nothing to do while they decode.
 */
#ifndef WHARF_KERNELS_EPOCH_ADMISSION_CUH
#define WHARF_KERNELS_EPOCH_ADMISSION_CUH

#include "kernels/decoder.cuh"

namespace wharf
{

/* Initially zero; both numbers are equal when nobody is inside. */
struct ordered_admission {
    alignas(128) uint32_t n_come;
    alignas(128) uint32_t n_gone;
};

/*
 * How long a warp sleeps between two polls for its turn, which comes when `distance` more have
 * left: a chunk of 16 KiB takes the link 300 ns.
 */
WHARF_DEVICE unsigned sleep_for_turn(uint32_t distance)
{
    return distance < 64 ? 256 * distance : 16000;
}

/*
 * collective.  Waits until fewer than `most` earlier warps are still inside, or until `stop` is
 * set.  Unless most is 0, leave_in_order has to follow in both cases.
 */
WHARF_DEVICE void enter_in_order(ordered_admission *way, uint32_t most, const stop_word &stop)
{
    uint32_t word = 0;
    if (most == 0)
        return;
    if (lane_id() == 0)
        word = atomic_add(&way->n_come, 1);
    if (lane_id() == 1)
        word = load_shared_by_device(&way->n_gone);
    uint32_t number = uniform(shfl(word, 0)), gone = uniform(shfl(word, 1));
    /* More may have left than came before this one, since stopped warps leave without a turn. */
    while ((int32_t)(number - gone) >= (int32_t)most) {
        sleep_ns(sleep_for_turn(number - gone - most));
        if (lane_id() == 0)
            gone = load_shared_by_device(&way->n_gone);
        gone = uniform(shfl(gone, 0));
        if (is_stopped(stop))
            break;
    }
}

/* collective.  All loads and stores inside have been issued. */
WHARF_DEVICE void leave_in_order(ordered_admission *way, uint32_t most)
{
    syncwarp();
    if (most && lane_id() == 0)
        (void)atomic_add(&way->n_gone, 1);
}

} // namespace wharf

#endif
