/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_codec.cuh: the device decoders as types, one for each codec, one for all; for codecs that
 * have a decoder for a block's warps, likewise; and for those that have a serial one, CODAG's
 * scheme as a baseline, one for each of the inputs.
 *
 * kernels/device_codecs.h is made by the build from what folders with a decoder there are: it
 * includes each kernels/name/name_decode.cuh and defines WHARF_DEVICE_CODEC_LIST(X) with a row
 * X(NAME, name) each; and WHARF_SERIAL_CODEC_LIST, WHARF_BLOCK_CODEC_LIST,
 * WHARF_INDEXED_CODEC_LIST, WHARF_PART_CODEC_LIST and WHARF_QUICK_CODEC_LIST likewise, of
 * kernels/name/name_serial.cuh, name_block.cuh, name_indexed.cuh, name_part.cuh and name_quick.cuh.
 */
#ifndef WHARF_KERNELS_DEVICE_CODEC_CUH
#define WHARF_KERNELS_DEVICE_CODEC_CUH

#include <type_traits>

#include "encoders/wharf_codec.h"
#include "kernels/blosc/blosc_around.cuh"
#include "kernels/decoder.cuh"
#include "kernels/device_batch.h"
#include "kernels/device_codecs.h"
#include "kernels/input_prefetched.cuh"
#include "kernels/part.cuh"

namespace wharf
{

/* A codec by name##_decode, of which `memory` is what it shares. */
#define WARP_CODEC(ID, name, codec_type, memory)                                                   \
    struct codec_type {                                                                            \
        using shared = memory;                                                                     \
        static constexpr size_t SCRATCH_NBYTES = ID##_SCRATCH_NBYTES;                              \
        static constexpr unsigned WARPS_PER_SM = ID##_WARPS_PER_SM;                                \
        static WHARF_DEVICE_MEMBER verdict decode(shared &s, uint32_t codec, const chunk_job &job) \
        {                                                                                          \
            if (codec != WHARF_CODEC_##ID)                                                         \
                return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0);                      \
            return name##_decode(s, job);                                                          \
        }                                                                                          \
    };

#define X(ID, name) WARP_CODEC(ID, name, name##_codec, name##_shared)
WHARF_DEVICE_CODEC_LIST(X)
#undef X

/* What is as it mostly is: the others end as WHARF_DEVICE_LEFT, and the codec's own decoder has
 * them then. */
#define X(ID, name)                                                                                \
    struct name##_quick_codec {                                                                    \
        using shared = name##_quick_shared;                                                        \
        static constexpr size_t SCRATCH_NBYTES = 0;                                                \
        static constexpr unsigned WARPS_PER_SM = ID##_QUICK_WARPS_PER_SM;                          \
        static constexpr unsigned WIDE_WARPS = ID##_QUICK_WIDE_WARPS;                              \
        static WHARF_DEVICE_MEMBER verdict decode(shared &s, uint32_t codec, const chunk_job &job) \
        {                                                                                          \
            if (codec != WHARF_CODEC_##ID)                                                         \
                return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0);                      \
            verdict v;                                                                             \
            return name##_quick_decode(s, job, v) ? v : bad(WHARF_DEVICE_LEFT, 0, 0);              \
        }                                                                                          \
    };
WHARF_QUICK_CODEC_LIST(X)
#undef X

/* Whether a decoder leaves chunks; and the one in front of a codec's own that always does, or void.
 * Blocks of warps leave only if they are told to, by WHARF_DEVICE_LEAVING: chunks whose output may
 * be more than MOST_RATIO times as large as their input, or, divided by the number of chunks that a
 * block gets, less than LEAST_NBYTES. */
template <typename Codec>
struct leaves_chunks {
    static constexpr bool value = false;
    static constexpr uint32_t MOST_RATIO = 1, LEAST_NBYTES = 0;
};
/* Whether there are blocks in front of a codec's own decoder, or may be. */
template <typename Codec>
struct block_before {
    static constexpr bool value = false;
};
template <typename Codec>
struct quick_before {
    using type = void;
};
#define X(ID, name)                                                                                \
    template <>                                                                                    \
    struct leaves_chunks<name##_quick_codec> {                                                     \
        static constexpr bool value = true;                                                        \
        static constexpr uint32_t MOST_RATIO = 1, LEAST_NBYTES = 0;                                \
    };                                                                                             \
    template <>                                                                                    \
    struct quick_before<name##_codec> {                                                            \
        using type = name##_quick_codec;                                                           \
    };
WHARF_QUICK_CODEC_LIST(X)
#undef X

template <typename Codec>
constexpr bool has_quick = !std::is_void<typename quick_before<Codec>::type>::value;

#define X(ID, name)                                                                                \
    struct name##_block_codec;                                                                     \
    template <>                                                                                    \
    struct leaves_chunks<name##_block_codec> {                                                     \
        static constexpr bool value = true;                                                        \
        static constexpr uint32_t MOST_RATIO = ID##_BLOCK_MOST_RATIO;                              \
        static constexpr uint32_t LEAST_NBYTES = ID##_BLOCK_LEAST_NBYTES;                          \
    };                                                                                             \
    template <>                                                                                    \
    struct block_before<name##_codec> {                                                            \
        static constexpr bool value = true;                                                        \
    };
WHARF_BLOCK_CODEC_LIST(X)
#undef X

#define X(ID, name)                                                                                \
    template <typename Input>                                                                      \
    struct name##_serial_codec {                                                                   \
        using shared = name##_serial_shared<Input>;                                                \
        static constexpr size_t SCRATCH_NBYTES = 0;                                                \
        static constexpr unsigned WARPS_PER_SM = ID##_SERIAL_WARPS_PER_SM;                         \
        static WHARF_DEVICE_MEMBER verdict decode(shared &s, uint32_t codec, const chunk_job &job) \
        {                                                                                          \
            if (codec != WHARF_CODEC_##ID)                                                         \
                return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0);                      \
            return name##_serial_decode<Input>(s, job);                                            \
        }                                                                                          \
    };
WHARF_SERIAL_CODEC_LIST(X)
#undef X

/* The same with a warp of its own for the input. */
#define X(ID, name)                                                                                \
    struct name##_prefetch_codec {                                                                 \
        using shared = name##_serial_shared<input_prefetched>;                                     \
        static constexpr size_t SCRATCH_NBYTES = 0;                                                \
        static constexpr unsigned WARPS = 2;                                                       \
        static constexpr unsigned MOST_CHUNKS = 0; /* it is a baseline */                          \
        static constexpr unsigned BLOCKS_PER_SM = ID##_SERIAL_WARPS_PER_SM / WARPS;                \
        static WHARF_DEVICE_MEMBER verdict decode(shared &s, uint32_t codec, const chunk_job &job) \
        {                                                                                          \
            if (codec != WHARF_CODEC_##ID)                                                         \
                return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0);                      \
            begin_prefetch(s.input);                                                               \
            verdict v = name##_serial_decode<input_prefetched>(s, job);                            \
            end_prefetch(s.input);                                                                 \
            return v;                                                                              \
        }                                                                                          \
        static WHARF_DEVICE_MEMBER void help(shared &s, unsigned) { prefetch(s.input); }           \
        static WHARF_DEVICE_MEMBER void end(shared &s) { end_all_prefetch(s.input); }              \
    };
WHARF_SERIAL_CODEC_LIST(X)
#undef X

/* For registered models that bytes of one distribution do not have. */
#define X(ID, name) WARP_CODEC(ID, name, name##_indexed_codec, name##_indexed_shared)
WHARF_INDEXED_CODEC_LIST(X)
#undef X
#undef WARP_CODEC

/* Several warps for one chunk.  Registers are bounded so that a multiprocessor holds two. */
#define X(ID, name)                                                                                \
    struct name##_block_codec {                                                                    \
        using shared = name##_pair_shared;                                                         \
        static constexpr size_t SCRATCH_NBYTES = ID##_SCRATCH_NBYTES;                              \
        static constexpr unsigned WARPS = ID##_BLOCK_WARPS;                                        \
        static constexpr unsigned MOST_CHUNKS = ID##_BLOCK_MOST_CHUNKS;                            \
        static constexpr unsigned BLOCKS_PER_SM = 2;                                               \
        static WHARF_DEVICE_MEMBER verdict decode(shared &s, uint32_t codec, const chunk_job &job) \
        {                                                                                          \
            if (codec != WHARF_CODEC_##ID)                                                         \
                return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0);                      \
            return name##_pair_decode(s, job);                                                     \
        }                                                                                          \
        static WHARF_DEVICE_MEMBER void help(shared &s, unsigned warp)                             \
        {                                                                                          \
            name##_pair_help(s, warp);                                                             \
        }                                                                                          \
        static WHARF_DEVICE_MEMBER void end(shared &s) { name##_pair_end(s); }                     \
    };
WHARF_BLOCK_CODEC_LIST(X)
#undef X

/* A warp for each chunk, and one more in a block that helps them all. */
#define X(ID, name)                                                                                \
    struct name##_crew_codec {                                                                     \
        using shared = name##_crew_worker; /* one for each worker, in all_shared.workers */        \
        using all_shared = name##_crew_shared;                                                     \
        static constexpr size_t SCRATCH_NBYTES = ID##_SCRATCH_NBYTES;                              \
        static constexpr unsigned WORKERS = ID##_CREW_WORKERS;                                     \
        static constexpr unsigned BLOCKS_PER_SM = ID##_CREW_BLOCKS_PER_SM;                         \
        static WHARF_DEVICE_MEMBER verdict decode(shared &s, uint32_t codec, const chunk_job &job) \
        {                                                                                          \
            if (codec != WHARF_CODEC_##ID)                                                         \
                return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0);                      \
            return name##_crew_decode(s, job);                                                     \
        }                                                                                          \
        static WHARF_DEVICE_MEMBER void begin(all_shared &s, unsigned warp)                        \
        {                                                                                          \
            name##_crew_begin(s, warp);                                                            \
        }                                                                                          \
        static WHARF_DEVICE_MEMBER void help(all_shared &s) { name##_crew_help(s); }               \
        static WHARF_DEVICE_MEMBER void end(shared &s) { name##_crew_end(s); }                     \
    };
WHARF_CREW_CODEC_LIST(X)
#undef X

/* The input of serial decoders: WHARF_DEVICE_SERIAL, WHARF_DEVICE_SERIAL_REGISTERS. */
using serial_ring = input_stream<512>;
using serial_registers = input_registers;

template <typename T, unsigned N>
constexpr T largest_of(const T (&values)[N])
{
    T most = values[0];
    for (T v : values)
        most = v > most ? v : most;
    return most;
}

template <typename T, unsigned N>
constexpr T least_of(const T (&values)[N])
{
    T least = values[0];
    for (T v : values)
        least = v < least ? v : least;
    return least;
}

/* The warps of a decoder with `own` warps in its own kernel. */
template <typename Shared>
constexpr unsigned warps_among_all(unsigned own)
{
    return shared_among_all<Shared>::WARPS_PER_SM ? shared_among_all<Shared>::WARPS_PER_SM : own;
}

#define X(ID, name) ID##_SCRATCH_NBYTES,
constexpr size_t ALL_SCRATCH_NBYTES[] = {WHARF_DEVICE_CODEC_LIST(X)};
#undef X
#define X(ID, name) warps_among_all<name##_shared>(ID##_WARPS_PER_SM),
constexpr unsigned ALL_WARPS_PER_SM[] = {WHARF_DEVICE_CODEC_LIST(X)};
#undef X

/* All decoders in one: room for the largest, and registers for the hungriest; and Blosc around
 * them (blosc_around.cuh). */
struct any_codec {
    union shared {
#define X(ID, name) typename shared_among_all<name##_shared>::type name;
        WHARF_DEVICE_CODEC_LIST(X)
#undef X
    };
    static constexpr size_t INSIDE_NBYTES = (largest_of(ALL_SCRATCH_NBYTES) + 255) / 256 * 256;
    static constexpr size_t SCRATCH_NBYTES = INSIDE_NBYTES + sizeof(blosc::around);
    static constexpr unsigned WARPS_PER_SM = least_of(ALL_WARPS_PER_SM);

    static WHARF_DEVICE_MEMBER verdict decode(shared &s, uint32_t codec, const chunk_job &job)
    {
        auto *around = reinterpret_cast<blosc::around *>(job.scratch + INSIDE_NBYTES);
        bool is_around = codec == WHARF_CODEC_BLOSC;
        chunk_job now = job;
        if (is_around) {
            if (lane_id() == 0)
                around->job = job;
            syncwarp();
            codec = uniform(blosc::begin(around));
        }
        for (;;) {
            if (is_around && codec != blosc::CODEC_NONE)
                now = uniform_global(around)->inner;
            verdict v = decode_inside(s, codec, now);
            if (!is_around)
                return v;
            if (codec == blosc::CODEC_NONE)
                return uniform_global(around)->v;
            codec = uniform(blosc::next(around, v));
        }
    }

    /* Of a chunk that several warps decode without each other: part.cuh. */
    static WHARF_DEVICE_MEMBER verdict decode_part(shared &s, uint32_t codec, part_job &part)
    {
        switch (codec) {
#define X(ID, name)                                                                                \
    case WHARF_CODEC_##ID:                                                                         \
        return name##_decode_part(s.name, part);
            WHARF_PART_CODEC_LIST(X)
#undef X
        default:
            return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0);
        }
    }

  private:
    /* Called in one place. */
    static WHARF_DEVICE_MEMBER verdict decode_inside(shared &s, uint32_t codec,
                                                     const chunk_job &job)
    {
        switch (codec) {
#define X(ID, name)                                                                                \
    case WHARF_CODEC_##ID:                                                                         \
        return name##_decode(s.name, job);
            WHARF_DEVICE_CODEC_LIST(X)
#undef X
        case blosc::CODEC_LZ:
            return blosc::lz_decode(s.lz4, job);
        default:
            return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0);
        }
    }
};

#define X(ID, name) , ID##_BLOCK_MOST_ITEMS
constexpr unsigned ALL_BLOCK_MOST_ITEMS[] = {1 WHARF_BLOCK_CODEC_LIST(X)};
constexpr unsigned MOST_BLOCK_ITEMS = largest_of(ALL_BLOCK_MOST_ITEMS);
#undef X

/* How many times fewer items of a codec than of any other are for blocks of warps; 0: none are. */
WHARF_DEVICE uint32_t times_fewer_for_blocks(uint32_t codec)
{
    switch (codec) {
#define X(ID, name)                                                                                \
    case WHARF_CODEC_##ID:                                                                         \
        return MOST_BLOCK_ITEMS / ID##_BLOCK_MOST_ITEMS;
        WHARF_BLOCK_CODEC_LIST(X)
#undef X
    default:
        return 0;
    }
}

#define X(ID, name) , ID##_BLOCK_WARPS
constexpr unsigned ALL_BLOCK_WARPS[] = {1 WHARF_BLOCK_CODEC_LIST(X)};
#undef X

/* All decoders for several warps in one. */
struct any_block_codec {
    union shared {
        uint32_t none; /* where there are no such decoders */
#define X(ID, name) name##_block_shared name;
        WHARF_BLOCK_CODEC_LIST(X)
#undef X
    };
    static constexpr unsigned WARPS = largest_of(ALL_BLOCK_WARPS);

    static WHARF_DEVICE_MEMBER verdict decode(shared &s, uint32_t codec, const chunk_job &job)
    {
        switch (codec) {
#define X(ID, name)                                                                                \
    case WHARF_CODEC_##ID: {                                                                       \
        static_assert(ID##_BLOCK_WARPS == WARPS, "all warps help with every codec");               \
        verdict v = name##_block_decode(s.name, job);                                              \
        name##_block_end(s.name);                                                                  \
        return v;                                                                                  \
    }
            WHARF_BLOCK_CODEC_LIST(X)
#undef X
        default:
            return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0);
        }
    }

    /* While the first warp decodes a chunk. */
    static WHARF_DEVICE_MEMBER void help(shared &s, uint32_t codec, unsigned warp)
    {
        switch (codec) {
#define X(ID, name)                                                                                \
    case WHARF_CODEC_##ID:                                                                         \
        name##_block_help(s.name, warp);                                                           \
        break;
            WHARF_BLOCK_CODEC_LIST(X)
#undef X
        default:
            break;
        }
    }
};

} // namespace wharf

#endif
