/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_assist_consumers.cuh: what the kernels of the study do with an array: sum, filter,
 * histogram, a sparse matrix times a vector, a matrix of bf16 times a vector.
 *
 * A consumer receives the array's quads, 16 bytes each, with their numbers.  Each lane has a copy
 * of it.  begin() and end() are called by all lanes of all warps, with a barrier of the block
 * behind begin() and before end(); take() by single lanes, in any order of quads.
 *
 *   IN_ROWS        warps go through neighbouring quads, so that few of them share a row
 *   N_WORKERS      of eight warps of a block, how many work while the others assist them
 *   take<true>()   the 8 lanes that hold a line's quads call it together, in order
 *
 * Whatever the array holds, a consumer reads and writes inside its own memory.
 */
#ifndef WHARF_TESTS_GPU_ASSIST_CONSUMERS_CUH
#define WHARF_TESTS_GPU_ASSIST_CONSUMERS_CUH

#include <string.h>

#include "kernels/line/wharf_line.cuh"

namespace wharf
{

constexpr unsigned STUDY_N_BINS = 256;
/* A row of the sparse matrix has that many columns, a line of them. */
constexpr unsigned STUDY_ROW_NQUADS = 8;
/* A row of the matrix of bf16 has 14336 values, as the widest ones of models with 8e9 weights. */
constexpr unsigned STUDY_MATRIX_NCOLUMNS = 14336;
constexpr unsigned STUDY_MATRIX_ROW_NQUADS = STUDY_MATRIX_NCOLUMNS / 8;

/* Memory of the device; what a consumer does not need is NULL. */
struct study_memory {
    uint64_t *totals; /* STUDY_N_BINS */
    float *rows;      /* of results; for each row one */
    const float *vector;
    uint32_t n_vector; /* sparse: its values */
    uint32_t n_rows;
};

/* ---- amounts that many lanes make ------------------------------------------------------------ */

WHARF_DEVICE float study_float(uint32_t bits)
{
#ifdef __CUDACC__
    return __uint_as_float(bits);
#else
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
#endif
}

WHARF_DEVICE uint32_t study_bits(float v)
{
#ifdef __CUDACC__
    return __float_as_uint(v);
#else
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    return bits;
#endif
}

/* One lane. */
WHARF_DEVICE void study_add(uint64_t *p, uint64_t v)
{
#ifdef __CUDACC__
    atomicAdd(reinterpret_cast<unsigned long long *>(p), (unsigned long long)v);
#else
    __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
#endif
}

WHARF_DEVICE void study_add(float *p, float v)
{
#ifdef __CUDACC__
    atomicAdd(p, v);
#else
    float old, sum;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do
        sum = old + v;
    while (!__atomic_compare_exchange(p, &old, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
#endif
}

/* collective. */
WHARF_DEVICE void study_add_of_warp(uint64_t *p, uint64_t own)
{
    for (unsigned n = WARP_LANES / 2; n > 0; n /= 2)
        own += shfl(own, lane_id() ^ n);
    if (lane_id() == 0)
        study_add(p, own);
}

/* ---- consumers ------------------------------------------------------------------------------- */

/* In a block's shared memory, of whatever consumer. */
struct study_shared {
    uint32_t bins[STUDY_N_BINS];
};

/* totals[0]: the sum of all words of 8 bytes. */
struct study_sum {
    static constexpr bool IN_ROWS = false;
    static constexpr unsigned N_WORKERS = 1;
    study_memory memory;
    uint64_t own;

    WHARF_DEVICE_MEMBER void begin(study_shared &, unsigned, unsigned) { own = 0; }
    template <bool TOGETHER>
    WHARF_DEVICE_MEMBER void take(uint32_t, const u32x4 &v)
    {
        own += ((uint64_t)v.y << 32 | v.x) + ((uint64_t)v.w << 32 | v.z);
    }
    WHARF_DEVICE_MEMBER void end(study_shared &, unsigned, unsigned)
    {
        study_add_of_warp(memory.totals, own);
    }
};

/* Of numbers of 4 bytes those below 2^16: totals[0] is their sum, totals[1] how many they are. */
struct study_filter {
    static constexpr bool IN_ROWS = false;
    static constexpr unsigned N_WORKERS = 1;
    static constexpr uint32_t LIMIT = 1 << 16;
    study_memory memory;
    uint64_t sum;
    uint32_t n;

    WHARF_DEVICE_MEMBER void begin(study_shared &, unsigned, unsigned) { sum = n = 0; }
    template <bool TOGETHER>
    WHARF_DEVICE_MEMBER void take(uint32_t, const u32x4 &v)
    {
        uint32_t words[4] = {v.x, v.y, v.z, v.w}, four = 0; /* four numbers below 2^16 fit */
        WHARF_UNROLL
        for (unsigned i = 0; i < 4; i++) {
            four += words[i] < LIMIT ? words[i] : 0;
            n += words[i] < LIMIT;
        }
        sum += four;
    }
    WHARF_DEVICE_MEMBER void end(study_shared &, unsigned, unsigned)
    {
        study_add_of_warp(memory.totals, sum);
        study_add_of_warp(memory.totals + 1, n);
    }
};

/* totals: how many numbers of 4 bytes have each value of their low byte. */
struct study_histogram {
    static constexpr bool IN_ROWS = false;
    static constexpr unsigned N_WORKERS = 2;
    study_memory memory;
    uint32_t *bins;

    WHARF_DEVICE_MEMBER void begin(study_shared &s, unsigned thread, unsigned n_threads)
    {
        bins = s.bins;
        for (unsigned i = thread; i < STUDY_N_BINS; i += n_threads)
            store(&s.bins[i], 0u);
    }
    /* Equal neighbours are counted at once: they would wait for each other. */
    template <bool TOGETHER>
    WHARF_DEVICE_MEMBER void take(uint32_t, const u32x4 &v)
    {
        uint32_t bin[4] = {v.x & 255, v.y & 255, v.z & 255, v.w & 255}, n = 1;
        WHARF_UNROLL
        for (unsigned i = 0; i < 4; i++) {
            if (i < 3 && bin[i] == bin[i < 3 ? i + 1 : 3]) {
                n++;
                continue;
            }
            atomic_add(bins + bin[i], n);
            n = 1;
        }
    }
    WHARF_DEVICE_MEMBER void end(study_shared &s, unsigned thread, unsigned n_threads)
    {
        for (unsigned i = thread; i < STUDY_N_BINS; i += n_threads)
            if (load(&s.bins[i]) != 0)
                study_add(memory.totals + i, load(&s.bins[i]));
    }
};

/*
 * A matrix of ones, 32 in each row: the array has their columns, numbers of 4 bytes.  rows[r]: the
 * sum of vector[column] over row r.  Columns that the vector lacks are its last one.
 */
struct study_sparse {
    static constexpr bool IN_ROWS = false;
    static constexpr unsigned N_WORKERS = 2;
    study_memory memory;

    WHARF_DEVICE_MEMBER void begin(study_shared &, unsigned, unsigned) {}
    WHARF_DEVICE_MEMBER float value(uint32_t column) const
    {
        uint32_t last = memory.n_vector - 1;
        return study_float(load_nc(reinterpret_cast<const uint32_t *>(memory.vector) +
                                   (column < last ? column : last)));
    }
    template <bool TOGETHER>
    WHARF_DEVICE_MEMBER void take(uint32_t i, const u32x4 &v)
    {
        float sum = value(v.x) + value(v.y) + value(v.z) + value(v.w);
        uint32_t row = i / STUDY_ROW_NQUADS;
        if (!TOGETHER) {
            study_add(memory.rows + row, sum);
            return;
        }
        WHARF_UNROLL
        for (unsigned n = 1; n < STUDY_ROW_NQUADS; n *= 2)
            sum += study_float(shfl(study_bits(sum), lane_id() ^ n));
        if (lane_id() % STUDY_ROW_NQUADS == 0)
            store(memory.rows + row, sum);
    }
    WHARF_DEVICE_MEMBER void end(study_shared &, unsigned, unsigned) {}
};

/* A matrix of bf16, row by row.  rows[r]: row r times the vector, which has 14336 values. */
struct study_matrix {
    static constexpr bool IN_ROWS = true;
    static constexpr unsigned N_WORKERS = 2;
    static constexpr uint32_t NO_ROW = ~0u;
    study_memory memory;
    float own;
    uint32_t row;

    WHARF_DEVICE_MEMBER void begin(study_shared &, unsigned, unsigned)
    {
        own = 0;
        row = NO_ROW;
    }
    WHARF_DEVICE_MEMBER void flush()
    {
        if (row != NO_ROW)
            study_add(memory.rows + row, own);
        own = 0;
    }
    template <bool TOGETHER>
    WHARF_DEVICE_MEMBER void take(uint32_t i, const u32x4 &v)
    {
        uint32_t its_row = i / STUDY_MATRIX_ROW_NQUADS, words[4] = {v.x, v.y, v.z, v.w};
        if (its_row != row) {
            flush();
            row = its_row;
        }
        const u32x4 *at = reinterpret_cast<const u32x4 *>(memory.vector) +
                          2 * (i - its_row * STUDY_MATRIX_ROW_NQUADS);
        u32x4 a = load_nc(at), b = load_nc(at + 1);
        uint32_t factors[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        WHARF_UNROLL
        for (unsigned k = 0; k < 4; k++) {
            own += study_float(words[k] << 16) * study_float(factors[2 * k]);
            own += study_float(words[k] & 0xffff0000u) * study_float(factors[2 * k + 1]);
        }
    }
    WHARF_DEVICE_MEMBER void end(study_shared &, unsigned, unsigned) { flush(); }
};

/* Nothing but the array itself, at `rows`: what comes over a link and is to stay. */
struct study_unpack {
    static constexpr bool IN_ROWS = false;
    static constexpr unsigned N_WORKERS = 1;
    study_memory memory;

    WHARF_DEVICE_MEMBER void begin(study_shared &, unsigned, unsigned) {}
    template <bool TOGETHER>
    WHARF_DEVICE_MEMBER void take(uint32_t i, const u32x4 &v)
    {
        store(reinterpret_cast<u32x4 *>(memory.rows) + i, v);
    }
    WHARF_DEVICE_MEMBER void end(study_shared &, unsigned, unsigned) {}
};

} // namespace wharf

#endif
