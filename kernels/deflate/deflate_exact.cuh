/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_exact.cuh: decodes a block's body one symbol after the other, by all lanes alike, as
 * CODAG does.  The parallel path hands over whatever it cannot take.  Every error in a body is
 * therefore reported here, by the rules of encoders/deflate/deflate_format.h.
 */
#ifndef WHARF_KERNELS_DEFLATE_EXACT_CUH
#define WHARF_KERNELS_DEFLATE_EXACT_CUH

#include "kernels/deflate/deflate_copy.cuh"
#include "kernels/deflate/deflate_state.cuh"

namespace wharf
{
namespace flate
{

/* collective.  64 bits from position `at` on.  Moves the window if it does not contain them. */
template <typename P>
WHARF_DEVICE uint64_t peek_64(state<P> &st, uint32_t at)
{
    if (at - st.window > 32 * shared<P>::WINDOW_NWORDS - 96)
        move_window(st, at);
    uint32_t p = at - st.window;
    const uint32_t *w = &st.s().window[p >> 5];
    uint32_t mid = load(w + 1);
    return (uint64_t)funnel_right(mid, load(w + 2), p) << 32 | funnel_right(load(w), mid, p);
}

/* collective.  32 bits from position at + lane on.  Moves the window if it lacks them. */
template <typename P>
WHARF_DEVICE uint32_t peek_at_lanes(state<P> &st, uint32_t at)
{
    if (at - st.window > 32 * shared<P>::WINDOW_NWORDS - 96)
        move_window(st, at);
    uint32_t p = at + lane_id() - st.window;
    const uint32_t *w = &st.s().window[p >> 5];
    return funnel_right(load(w), load(w + 1), p);
}

/* One unit of a body: a literal, a match, or the end of the block. */
struct unit {
    uint32_t nbits;
    uint32_t length; /* 0: the end; 1: a literal */
    uint32_t value;  /* the literal, or the distance */
};

/* Reads the distance of a match whose length took u.nbits of `bits`, of which `left` are input. */
template <typename St>
WHARF_DEVICE uint32_t read_distance(const St &st, uint64_t bits, uint32_t left, unit &u)
{
    uint32_t word = (uint32_t)(bits >> u.nbits);
    uint32_t entry = find_distance(st.s().distance, word);
    bool special = entry & DISTANCE_SPECIAL;
    uint32_t n_extra = special ? 0 : entry >> 5 & 31;
    left -= u.nbits;
    if (entry_nbits(entry) - n_extra > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (special)
        return WHARF_REASON_DEFLATE_DISTANCE_SYMBOL;
    if (entry_nbits(entry) > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    u.nbits += entry_nbits(entry);
    u.value = distance_value(word, entry) + 1;
    return u.value > st.out.position ? WHARF_REASON_DEFLATE_DISTANCE_TOO_FAR : WHARF_REASON_NONE;
}

/* collective.  Reads the unit at st.at without moving st.at. */
template <typename St>
WHARF_DEVICE uint32_t read_unit(St &st, unit &u)
{
    uint64_t bits = peek_64(st, st.at);
    uint32_t end = st.end();
    uint32_t left = end > st.at ? end - st.at : 0;
    uint32_t entry = find_litlen(st.s().litlen, (uint32_t)bits);
    bool match = litlen_is_match(entry);
    if (entry_nbits(entry) - (match ? litlen_n_extra(entry) : 0) > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    u.nbits = entry_nbits(entry);
    u.length = 1;
    u.value = entry >> 8;
    if (match) {
        if (u.nbits > left)
            return WHARF_REASON_INPUT_TRUNCATED;
        u.length = litlen_length((uint32_t)bits, entry) + WHARF_DEFLATE_MIN_MATCH;
        return read_distance(st, bits, left, u);
    }
    if (!litlen_is_special(entry))
        return WHARF_REASON_NONE;
    u.length = 0;
    return litlen_is_end(entry) ? WHARF_REASON_NONE : WHARF_REASON_DEFLATE_LITLEN_SYMBOL;
}

/* Units between two checks of the stop word: about 50 us. */
constexpr uint32_t UNITS_BETWEEN_LOOKS = 64;

/* collective.  Decodes to the block's end and moves st.at behind it.  On an error, returns its
 * reason and leaves st.at at the unit that caused it. */
template <typename St>
WHARF_DEVICE uint32_t decode_units(St &st, step_counter &steps)
{
    unit u = {};
    do {
        if (!steps.take(1))
            return WHARF_REASON_STEP_BUDGET;
        if (steps.left % UNITS_BETWEEN_LOOKS == 0 && st.is_stopped())
            return STOPPED;
        uint32_t reason = uniform(read_unit(st, u));
        if (reason != WHARF_REASON_NONE)
            return reason;
        /* If the compiler thought that lanes may diverge here, the parallel path would be a sixth
         * slower. */
        u = {uniform(u.nbits), uniform(u.length), uniform(u.value)};
        if (u.length > st.out.room())
            return WHARF_REASON_OUTPUT_FULL;
        st.at += u.nbits;
        if (u.length == 1)
            st.out.write_byte((uint8_t)u.value);
        else if (u.length)
            st.out.copy_match(u.value, u.length);
    } while (u.length);
    return WHARF_REASON_NONE;
}

/* The result, for callers that pass the state by value. */
struct exact_result {
    uint32_t reason;
    uint32_t at;
    uint32_t position; /* of the output */
    uint32_t window;
    uint32_t steps_left;
};

template <typename P>
WHARF_DEVICE_NOINLINE exact_result decode_units_apart(state<P> st, step_counter steps)
{
    uint32_t reason = decode_units(st, steps);
    return {reason, st.at, st.out.position, st.window, steps.left};
}

/* collective.  The same, not inlined. */
template <typename P>
WHARF_DEVICE uint32_t decode_exactly(state<P> &st, step_counter &steps)
{
    exact_result r = decode_units_apart(st, steps);
    st.at = uniform(r.at);
    st.out.position = uniform(r.position);
    st.window = uniform(r.window);
    steps.left = uniform(r.steps_left);
    return uniform(r.reason);
}

} // namespace flate
} // namespace wharf

#endif
