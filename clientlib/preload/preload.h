/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload.h: what the parts of libwharf-preload share.  PRELOAD.md says how it works.
 */
#ifndef WHARF_CLIENTLIB_PRELOAD_PRELOAD_H
#define WHARF_CLIENTLIB_PRELOAD_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "encoders/codec.h"
#include "encoders/zlib/zlib_steps.h"

#define WHARF_PRELOAD_EXPORT __attribute__((visibility("default")))

/* ---- genuine.c: the zlib that the program would have had ---- */

/* X(returns, name, parameters, arguments, value where there is no zlib). */
#define WHARF_PRELOAD_PASSED_LIST(X)                                                               \
    X(int, inflateSetDictionary, (z_streamp s, const Bytef *d, uInt n), (s, d, n), Z_STREAM_ERROR) \
    X(int, inflateGetDictionary, (z_streamp s, Bytef * d, uInt * n), (s, d, n), Z_STREAM_ERROR)    \
    X(int, inflateSync, (z_streamp s), (s), Z_STREAM_ERROR)                                        \
    X(int, inflateResetKeep, (z_streamp s), (s), Z_STREAM_ERROR)                                   \
    X(int, inflatePrime, (z_streamp s, int n, int v), (s, n, v), Z_STREAM_ERROR)                   \
    X(long, inflateMark, (z_streamp s), (s), -65536L)                                              \
    X(int, inflateGetHeader, (z_streamp s, gz_headerp h), (s, h), Z_STREAM_ERROR)                  \
    X(int, inflateSyncPoint, (z_streamp s), (s), Z_STREAM_ERROR)                                   \
    X(int, inflateUndermine, (z_streamp s, int v), (s, v), Z_STREAM_ERROR)                         \
    X(int, inflateValidate, (z_streamp s, int v), (s, v), Z_STREAM_ERROR)                          \
    X(unsigned long, inflateCodesUsed, (z_streamp s), (s), (unsigned long)-1)

#define WHARF_PRELOAD_OTHER_LIST(X)                                                                \
    X(int, inflateBackInit_, (z_streamp s, int b, unsigned char *w, const char *v, int n),         \
      (s, b, w, v, n), Z_STREAM_ERROR)                                                             \
    X(int, inflateBack, (z_streamp s, in_func i, void *di, out_func o, void *od),                  \
      (s, i, di, o, od), Z_STREAM_ERROR)                                                           \
    X(int, inflateBackEnd, (z_streamp s), (s), Z_STREAM_ERROR)                                     \
    X(int, uncompress, (Bytef * d, uLongf * n, const Bytef *s, uLong m), (d, n, s, m),             \
      Z_STREAM_ERROR)                                                                              \
    X(int, uncompress2, (Bytef * d, uLongf * n, const Bytef *s, uLong *m), (d, n, s, m),           \
      Z_STREAM_ERROR)                                                                              \
    X(uLong, adler32_combine, (uLong a, uLong b, z_off_t n), (a, b, n), 0)                         \
    X(uLong, adler32_combine64, (uLong a, uLong b, z_off64_t n), (a, b, n), 0)                     \
    X(uLong, crc32_combine, (uLong a, uLong b, z_off_t n), (a, b, n), 0)                           \
    X(uLong, crc32_combine64, (uLong a, uLong b, z_off64_t n), (a, b, n), 0)                       \
    X(uLong, crc32_combine_gen, (z_off_t n), (n), 0)                                               \
    X(uLong, crc32_combine_gen64, (z_off64_t n), (n), 0)                                           \
    X(uLong, crc32_combine_op, (uLong a, uLong b, uLong op), (a, b, op), 0)

#define WHARF_PRELOAD_TAKEN_LIST(X)                                                                \
    X(int, inflate, (z_streamp s, int f), (s, f), Z_STREAM_ERROR)                                  \
    X(int, inflateEnd, (z_streamp s), (s), Z_STREAM_ERROR)                                         \
    X(int, inflateReset, (z_streamp s), (s), Z_STREAM_ERROR)                                       \
    X(int, inflateReset2, (z_streamp s, int b), (s, b), Z_STREAM_ERROR)                            \
    X(int, inflateInit2_, (z_streamp s, int b, const char *v, int n), (s, b, v, n),                \
      Z_VERSION_ERROR)                                                                             \
    X(int, inflateCopy, (z_streamp d, z_streamp s), (d, s), Z_STREAM_ERROR)                        \
    X(uLong, adler32, (uLong a, const Bytef *b, uInt n), (a, b, n), 1)                             \
    X(const char *, zlibVersion, (void), (), "")

#define WHARF_PRELOAD_ALL_LIST(X)                                                                  \
    WHARF_PRELOAD_PASSED_LIST(X)                                                                   \
    WHARF_PRELOAD_OTHER_LIST(X)                                                                    \
    WHARF_PRELOAD_TAKEN_LIST(X)

struct wharf_genuine {
#define X(type, name, parameters, arguments, none) type(*name) parameters;
    WHARF_PRELOAD_ALL_LIST(X)
#undef X
};

/* Found at the first call; a function that this zlib lacks says that it failed. */
const struct wharf_genuine *wharf_preload_genuine(void);

/* Whether the genuine zlib's state is what genuine_state.h says, tried once.  Where it is not, no
 * stream is taken. */
bool wharf_preload_knows_zlib(void);

/* ---- shadow_table.c: which streams are taken ---- */

/* A stream that is taken.  Its genuine state is as inflateInit2 or a reset left it. */
struct wharf_shadow {
    z_streamp owner;
    struct wharf_zlib_steps steps;
};

/* NULL: the stream is not taken.  Never waits. */
struct wharf_shadow *wharf_preload_find(z_streamp strm);

/* False: there is no room or no memory. */
bool wharf_preload_take(z_streamp strm);

void wharf_preload_drop(z_streamp strm);

/* ---- hand_over.c ---- */

/* Brings the genuine state to where the shadow is, and drops the shadow.  Z_OK or Z_MEM_ERROR. */
int wharf_preload_hand_over(z_streamp strm, struct wharf_shadow *shadow);

/* ---- zlib_door.c ---- */

/* Whether nothing new is taken: in a child after fork, and with another user's rights. */
bool wharf_preload_is_left_alone(void);

/* The stream that the genuine zlib is at work on for us: its own calls are not for the doors. */
extern __thread z_streamp wharf_preload_inside __attribute__((tls_model("initial-exec")));

/* ---- preload_stats.c ---- */

enum wharf_preload_library {
    WHARF_ZLIB,
    WHARF_LIBDEFLATE,
    WHARF_LIBZSTD,
    WHARF_LIBLZ4,
    WHARF_N_LIBRARIES,
};

enum wharf_preload_why {
    WHARF_WHY_TAKEN,
    WHARF_WHY_UNKNOWN_ZLIB,
    WHARF_WHY_CHILD,
    WHARF_WHY_NO_ROOM,
    WHARF_WHY_ODD_CALL,
    WHARF_WHY_BAD,
    WHARF_WHY_OVERLAP,
    WHARF_WHY_STACK,
    WHARF_WHY_ODD_CONTEXT,
    WHARF_WHY_SKIPPED,
    WHARF_N_WHYS,
};

/* Whether the environment says that this library is to be left alone. */
bool wharf_preload_is_skipped(enum wharf_preload_library library);

extern bool wharf_preload_counts;
void wharf_preload_count_stream(enum wharf_preload_library library, enum wharf_preload_why why,
                                const char *call);
void wharf_preload_count_bytes(enum wharf_preload_library library, bool taken, uint64_t nbytes);

/* ---- genuine_search.c ---- */

/*
 * The function of that name that the code at `caller` would have had without this library, or NULL.
 * Where several copies of a library are loaded, objects that one copy made are for that copy alone:
 * the answer depends on the caller, unless a copy stands in the global scope.
 */
void *wharf_preload_search(const char *name, const void *caller);

/* ---- whole_call.c: calls that decode one whole stream, as libdeflate, libzstd and liblz4 have */

struct wharf_preload_whole {
    enum wharf_preload_library library;
    uint32_t codec; /* enum wharf_codec */
    wharf_decode_fn *decode;
    const void *in;
    size_t in_nbytes;
    void *out;
    size_t out_avail;
    bool takes_all; /* a good call takes all of the input */
    bool fills_all; /* and fills all of the output */
};

/*
 * Decodes and counts.  False: the genuine library has to answer.  `why` is a reason not to decode,
 * or WHARF_WHY_TAKEN.
 */
bool wharf_preload_decode_whole(const struct wharf_preload_whole *whole, enum wharf_preload_why why,
                                struct wharf_outcome *ret_outcome);

/* Counts the output of a genuine call that answered instead. */
void wharf_preload_count_declined(const struct wharf_preload_whole *whole, uint64_t out_nbytes);

/* Whether the genuine library is at work for us in this thread: what it calls is not for us. */
extern __thread bool wharf_preload_in_genuine __attribute__((tls_model("initial-exec")));

/* ---- daemon_call.c ---- */

/* Decodes through libwharf.  False: that is not wanted, the stream is small, or libwharf failed;
 * the outcome is not filled then. */
bool wharf_preload_ask_daemon(const struct wharf_preload_whole *whole,
                              struct wharf_outcome *ret_outcome);

#endif
