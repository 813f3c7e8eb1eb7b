/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf_line.cuh: a kernel reads an array that is stored compressed, line by line.
 *
 * The array is a stream of bdi, fpc, cpack, best or palette (encoders/line/LINES.md) in device
 * memory, packed or in slots.  Lanes that need a line ask for it together and decode it into their
 * registers; no line needs another one.
 *
 *   host     wharf::line_array array;
 *            if (wharf::open_line_array(&array, header, d_stream, stream_nbytes, d_error)) ...
 *   kernel   __shared__ wharf::line_table<WHARF_CODEC_BDI> table;
 *            wharf::fill_line_table(table, array);        // each warp, or one and __syncthreads()
 *            bool ok;
 *            wharf::u32x4 mine = wharf::load_line(table, array, line, &ok);
 *
 * HOSTILE ARRAYS.  Nothing in the stream is trusted: whatever index, heads and lines say, a load
 * reads inside the stream only, takes a fixed number of steps, and writes nothing but the error
 * word.  A line that is not there, has a code that is none, reaches past the stream's end or
 * contradicts its code gives zeros, false, and its number in the error word, which keeps the lowest
 * of these.  What only a reader of the whole stream can see, such as groups that overlap, a load
 * does not see.  load_trusted_line() leaves the bounds out, for streams that this program made.
 *
 * STORES.  An array in slots can be written too, line by line: store_line() compresses a line on
 * its way out, update_line() changes some bytes of one.  What is read by load_line() must not
 * change while the kernel runs; load_changing_line() reads what the kernel itself stores, if the
 * caller orders the two.
 *
 *   host     wharf::line_slots slots;
 *            if (wharf::open_line_slots(&slots, header, d_stream, stream_nbytes, d_error)) ...
 *   kernel   __shared__ wharf::line_space spaces[WARPS]; // one for each warp
 *            bool ok = wharf::store_line<WHARF_CODEC_BDI>(spaces[warp], slots, line, mine);
 */
#ifndef WHARF_KERNELS_LINE_WHARF_LINE_CUH
#define WHARF_KERNELS_LINE_WHARF_LINE_CUH

#include <errno.h>
#include <string.h>

#include "kernels/line/line_form.cuh"

namespace wharf
{

/* How many bytes load_trusted_line() may read behind a stream's end: palette's lanes read as of a
 * line of their own where their line is zeros, and any lane reads 24 bytes behind its content. */
constexpr unsigned LINE_TRUSTED_SLACK_NBYTES = WHARF_LINE_MAX_NBYTES + 32;

/*
 * A compressed array, as kernels see it; pass it by value.  Made by open_line_array(), which
 * checked it: members are not to be changed.
 */
struct line_array {
    const uint8_t *stream; /* device memory, aligned to 16 */
    uint64_t nbytes;       /* of it, a multiple of 16 */
    uint64_t raw_nbytes;   /* of the array without compression */
    uint64_t n_lines;      /* the last one is filled up with zeros */
    uint64_t heads_at;
    uint64_t data_at;
    uint64_t *error;  /* device memory, or NULL */
    uint32_t codec;   /* enum wharf_codec: what the kernel's template parameter has to be */
    line_shape shape; /* sizes of a line, a record and a code; positions and counts stand above */
};

/*
 * Describes a stream whose first 16 bytes are at `header`, in the host's memory.
 *
 * d_stream, d_error: device memory, never looked at here.  d_stream is aligned to 16 bytes and has
 * stream_nbytes, all of which kernels may read.  d_error may be NULL; otherwise the caller sets the
 * word to UINT64_MAX before kernels use the array.
 *
 * Returns 0; -EINVAL when an argument is NULL or not aligned; -EPROTONOSUPPORT when the stream is
 * of another version; -EBADMSG when its header is wrong or does not fit stream_nbytes.  *ret_array
 * is written on success only.  From any thread; asks nothing of a GPU.
 */
static inline int open_line_array(line_array *ret_array, const void *header, const void *d_stream,
                                  uint64_t stream_nbytes, uint64_t *d_error);

/* An array in slots that kernels may change. */
struct line_slots {
    line_array array; /* loads take it */
    uint8_t *stream;  /* the same memory */
};

/*
 * open_line_array() for a stream in slots.  Besides: -EINVAL when it is packed, -EBADMSG when not
 * all slots lie inside stream_nbytes.
 */
static inline int open_line_slots(line_slots *ret_slots, const void *header, void *d_stream,
                                  uint64_t stream_nbytes, uint64_t *d_error);

/* Where a warp makes the lines that it stores: in shared memory, for one warp at a time. */
struct line_space {
    u32x4 content[WARP_LANES];
};

/* What codes mean, and how bytes become words: in a block's shared memory, for all its warps. */
template <uint32_t CODEC>
struct line_table {
    static constexpr uint32_t N_CODES = line_has_nibbles(CODEC) ? 16 : 256;
    static constexpr uint32_t N_WIDTHS = CODEC == WHARF_CODEC_PALETTE ? 2 : 1;

    line_step steps[LINE_N_STEPS];
    line_code codes[N_WIDTHS * N_CODES]; /* palette: of width 3, then of width 4 */
};

/*
 * All 32 lanes of a warp.  Fills the table.  Ends with syncwarp(); other warps may use it behind a
 * barrier of the block.
 */
template <uint32_t CODEC>
WHARF_DEVICE void fill_line_table(line_table<CODEC> &table, const line_array &array)
{
    uint32_t n = 1u << array.shape.code_nbits;
    for (uint32_t i = lane_id(); i < LINE_N_STEPS; i += WARP_LANES)
        store(&table.steps[i],
              line_step{LINE_STEPS[i][0], LINE_STEPS[i][1], LINE_STEPS[i][2], LINE_STEPS[i][3]});
    for (uint32_t w = 0; w < table.N_WIDTHS; w++)
        for (uint32_t i = lane_id(); i < n; i += WARP_LANES)
            store(&table.codes[w * table.N_CODES + i].word,
                  explain_line_code<CODEC>(array.shape, 3 + w, i).word);
    syncwarp();
}

/* ---- below: how; the functions to call stand at the end ------------------------------------- */

/* How a load reads: memory that is constant while the kernel runs, or not. */
struct line_constant {
    template <typename T>
    WHARF_DEVICE_MEMBER static T get(const T *p)
    {
        return load_nc(p);
    }
};

struct line_changing {
    template <typename T>
    WHARF_DEVICE_MEMBER static T get(const T *p)
    {
        return load(p);
    }
};

/* Words of a stream from a line's content on: past the last one comes the last one again. */
template <typename Memory>
struct line_stream_words {
    using memory = Memory;
    const uint32_t *first;
    uint32_t last;
};

template <typename Memory>
WHARF_DEVICE uint32_t line_fetch(line_stream_words<Memory> words, uint32_t i)
{
    return Memory::get(words.first + line_least(i, words.last));
}

/* The same without an end. */
struct line_trusted_words {
    using memory = line_constant;
    const uint32_t *first;
};

WHARF_DEVICE uint32_t line_fetch(line_trusted_words words, uint32_t i)
{
    return load_nc(words.first + i);
}

template <typename Memory>
WHARF_DEVICE void make_line_words(line_stream_words<Memory> &words, const line_array &array,
                                  uint64_t at)
{
    uint64_t left = (array.nbytes - (at & ~3ull)) / 4;
    words.first = reinterpret_cast<const uint32_t *>(array.stream + (at & ~3ull));
    words.last = left > WHARF_LINE_MAX_NBYTES ? WHARF_LINE_MAX_NBYTES - 1 : (uint32_t)left - 1;
}

WHARF_DEVICE void make_line_words(line_trusted_words &words, const line_array &array, uint64_t at)
{
    words.first = reinterpret_cast<const uint32_t *>(array.stream + (at & ~3ull));
}

/* What a lane knows of its line.  The same in all lanes of the line's team. */
struct line_place {
    uint64_t at; /* of the content, in the stream */
    line_code code;
    line_palette palette;
};

/* One lane.  Code number i of a record. */
template <typename Memory>
WHARF_DEVICE uint32_t load_line_number(const line_array &array, uint64_t record_at, uint32_t i)
{
    const uint8_t *codes = array.stream + record_at + array.shape.codes_at;
    if (array.shape.code_nbits == 8)
        return Memory::get(codes + i);
    return Memory::get(codes + i / 2) >> 4 * (i & 1) & 15;
}

/* One lane.  The offset in a record: records take multiples of 4 bytes. */
template <typename Memory>
WHARF_DEVICE uint32_t load_line_offset(const line_array &array, uint64_t record_at)
{
    return Memory::get(reinterpret_cast<const uint32_t *>(array.stream + record_at));
}

/* collective.  Finds a line that there is.  `team`, `place`: as line_piece has them. */
template <uint32_t CODEC, typename Memory>
WHARF_DEVICE line_place find_line(const line_table<CODEC> &table, const line_array &array,
                                  uint64_t line, uint32_t place)
{
    const line_shape &shape = array.shape;
    uint32_t n_lanes = shape.line_nbytes() / 16, sum = 0;
    uint64_t group = line / shape.group_nlines();
    uint32_t number = (uint32_t)line & (shape.group_nlines() - 1);
    uint64_t record_at = WHARF_LINE_HEADER_NBYTES + group * shape.record_nbytes;
    line_place found = {0, LINE_NO_CODE, {{0, 0, 0, 0}, 3}};
    const line_code *codes = table.codes;
    bool is_width = true;
    if (CODEC == WHARF_CODEC_PALETTE) {
        const uint8_t *head = array.stream + array.heads_at + group * WHARF_LINE_HEAD_NBYTES;
        found.palette.exponents = Memory::get(reinterpret_cast<const u32x4 *>(head));
        uint32_t width = found.palette.exponents.w >> 24;
        is_width = width == 3 || (width == 4 && shape.type != WHARF_LINE_E4M3);
        found.palette.width = is_width ? width : 3;
        codes += (found.palette.width - 3) * table.N_CODES;
    }
    if (shape.layout == WHARF_LINE_PACKED) {
        for (uint32_t i = place; i < number; i += n_lanes)
            sum += load(&codes[load_line_number<Memory>(array, record_at, i)]).nbytes();
        for (unsigned n = 1; n < 8; n *= 2) { /* a team's lanes are neighbours */
            uint32_t other = shfl(sum, lane_id() ^ n);
            sum += n < n_lanes ? other : 0;
        }
        found.at = array.data_at + sum +
                   (uint64_t)load_line_offset<Memory>(array, record_at) * WHARF_LINE_UNIT_NBYTES;
    } else {
        found.at = array.data_at + (line << shape.shift);
    }
    if (is_width)
        found.code = load(&codes[load_line_number<Memory>(array, record_at, number)]);
    return found;
}

/* Whether an array is of the type that a kernel knows. */
template <uint32_t TYPE>
WHARF_DEVICE bool is_line_type(const line_shape &shape)
{
    return TYPE == LINE_ANY_TYPE || shape.type == TYPE;
}

template <uint32_t CODEC, uint32_t TYPE, typename Words>
WHARF_DEVICE u32x4 load_line_by(const line_table<CODEC> &table, const line_array &array,
                                uint64_t line, bool is_checked, bool *ret_ok)
{
    const line_shape &shape = array.shape;
    uint32_t n_lanes = shape.line_nbytes() / 16, place = lane_id() & (n_lanes - 1);
    uint32_t team = ((1u << n_lanes) - 1) << (lane_id() - place);
    bool is_there = line < array.n_lines, is_bad = false;
    *ret_ok = false;
    if (array.n_lines == 0) { /* nor is there an index */
        if (place == 0 && array.error != nullptr)
            atomic_min(array.error, line);
        return {0, 0, 0, 0};
    }
    line_place found =
        find_line<CODEC, typename Words::memory>(table, array, is_there ? line : 0, place);
    uint32_t scheme = found.code.scheme();
    bool is_good = is_there && scheme != WHARF_LINE_IS_INVALID && is_line_type<TYPE>(shape);
    if (is_checked)
        is_good =
            is_good && found.at <= array.nbytes && found.code.nbytes() <= array.nbytes - found.at;
    if (!is_good || scheme == WHARF_LINE_IS_ZEROS) {
        found.code = make_line_code(WHARF_LINE_IS_ZEROS, 0, 0, 0);
        found.at = 0; /* a stream has a header at least */
    }
    Words words;
    make_line_words(words, array, found.at);
    u32x4 quad = line_quad<CODEC, TYPE>(words, table.steps, shape, found.palette, found.code,
                                        (uint32_t)found.at & 3, 16 * place, &is_bad);
    is_good = (ballot(!is_good || is_bad) & team) == 0;
    if (!is_good) {
        quad = {0, 0, 0, 0};
        if (place == 0 && array.error != nullptr)
            atomic_min(array.error, line);
    }
    *ret_ok = is_good;
    return quad;
}

/* ---- loads ---------------------------------------------------------------------------------- */

/*
 * All 32 lanes of a warp.  The lanes stand in teams of line_nbytes / 16 neighbours: 8, 4 or 2 of
 * them for lines of 128, 64 or 32 bytes.  All lanes of a team ask for the same `line`, and each
 * gets the 16 bytes of it at its place in the team.  Teams may ask for any lines, in any order.
 * CODEC is array.codec.  TYPE may be the type of a palette's values, array.shape.type: that of
 * bf16 is quicker.  All lines of arrays of another type are bad then.
 *
 * *ret_ok: whether the line is good; the same in the team.  If not, the result is zeros, and the
 * error word becomes `line` unless it is less already.  The last line's bytes behind the array's
 * end are zeros as the encoder wrote them.
 */
template <uint32_t CODEC, uint32_t TYPE = LINE_ANY_TYPE>
WHARF_DEVICE u32x4 load_line(const line_table<CODEC> &table, const line_array &array, uint64_t line,
                             bool *ret_ok)
{
    return load_line_by<CODEC, TYPE, line_stream_words<line_constant>>(table, array, line, true,
                                                                       ret_ok);
}

/*
 * The same without bounds, for streams that come from an encoder of this program.  Of others it
 * reads anywhere.  LINE_TRUSTED_SLACK_NBYTES behind the stream must be readable.
 */
template <uint32_t CODEC, uint32_t TYPE = LINE_ANY_TYPE>
WHARF_DEVICE u32x4 load_trusted_line(const line_table<CODEC> &table, const line_array &array,
                                     uint64_t line, bool *ret_ok)
{
    return load_line_by<CODEC, TYPE, line_trusted_words>(table, array, line, false, ret_ok);
}

/* load_line() of lines that the same kernel stores. */
template <uint32_t CODEC, uint32_t TYPE = LINE_ANY_TYPE>
WHARF_DEVICE u32x4 load_changing_line(const line_table<CODEC> &table, const line_array &array,
                                      uint64_t line, bool *ret_ok)
{
    return load_line_by<CODEC, TYPE, line_stream_words<line_changing>>(table, array, line, true,
                                                                       ret_ok);
}

/* ---- stores --------------------------------------------------------------------------------- */

/* As `line`: this team stores nothing, and that is good. */
constexpr uint64_t LINE_NONE = ~(uint64_t)0;

/* One lane.  The ranks that a palette gives its values, a nibble each; of places that are alike the
 * first counts. */
template <uint32_t TYPE>
WHARF_DEVICE line_nibbles rank_in_palette(const line_palette &palette, const line_numbers &numbers)
{
    uint32_t e[4] = {palette.exponents.x, palette.exponents.y, palette.exponents.z,
                     palette.exponents.w};
    uint32_t n = (1u << palette.width) - 1;
    line_nibbles nibbles = {{0, 0}};
    WHARF_UNROLL
    for (unsigned k = 0; k < 4 * line_n_fours<TYPE>(); k++) {
        uint32_t own = numbers.exponents[k / 4] >> 8 * (k % 4) & 255, rank = LINE_NO_RANK;
        WHARF_UNROLL
        for (unsigned i = LINE_MAX_NPALETTE; i-- > 0;)
            rank = i < n && (e[i / 4] >> 8 * (i % 4) & 255) == own ? i : rank;
        nibbles.of[k / 8] |= rank << 4 * (k % 8);
    }
    return nibbles;
}

/* One lane.  Makes `code` the code of line `number` of the record at `record`.  Other lanes may set
 * other lines' codes meanwhile, this one's only it. */
WHARF_DEVICE void store_line_code(const line_shape &shape, uint8_t *record, uint32_t number,
                                  uint32_t code)
{
    if (shape.code_nbits == 8) {
        store_byte(record + number, code);
        return;
    }
    uint32_t *word = reinterpret_cast<uint32_t *>(record) + number / 8;
    uint32_t old = load_shared_by_device(word) >> 4 * (number & 7) & 15;
    if (old != code)
        atomic_xor(word, (old ^ code) << 4 * (number & 7));
}

/*
 * All 32 lanes of a warp, in teams as load_line() has them; `quad` is the lane's 16 bytes of its
 * team's line.  Compresses the line as an encoder does and stores it in its slot, with its code.
 * Content goes out in whole pieces of 16 bytes; what is behind it in the slot stays as it was.
 * Begins and ends with syncwarp(): the space is free again, and the warp's next loads see the line.
 *
 * CODEC is slots.array.codec, TYPE palette's type.  palette keeps the palette that the line's group
 * has, so lines of other exponents grow, at most to raw ones.
 *
 * Two teams must not store one line at a time.  Returns whether the line is stored; the same in the
 * team.  It is not if there is no such line, or the group's palette is none or of another type;
 * then the error word becomes `line` unless it is less already.
 */
template <uint32_t CODEC, uint32_t TYPE = WHARF_LINE_BF16>
WHARF_DEVICE bool store_line(line_space &space, const line_slots &slots, uint64_t line, u32x4 quad)
{
    const line_array &array = slots.array;
    const line_shape &shape = array.shape;
    line_piece piece = make_line_piece(quad, shape.shift);
    bool is_there = line < array.n_lines, is_good = is_there || line == LINE_NONE;
    line_palette palette = {{0, 0, 0, 0}, 3};
    line_nibbles nibbles = {{0, 0}};
    if (CODEC == WHARF_CODEC_PALETTE && is_there) {
        const uint8_t *head =
            array.stream + array.heads_at + line / shape.group_nlines() * WHARF_LINE_HEAD_NBYTES;
        palette.exponents = load(reinterpret_cast<const u32x4 *>(head));
        uint32_t width = palette.exponents.w >> 24;
        is_good = shape.type == TYPE && (width == 3 || (width == 4 && TYPE != WHARF_LINE_E4M3));
        palette.width = width == 4 ? 4 : 3;
        nibbles = rank_in_palette<TYPE>(palette, line_take_apart<TYPE>(piece));
    }
    line_form form = line_find_form<CODEC, TYPE>(piece, shape, nibbles, palette.width);
    syncwarp();
    store(&space.content[lane_id()], u32x4{0, 0, 0, 0});
    syncwarp();
    line_put_form<CODEC, TYPE>(&space.content[0].x, 16 * (lane_id() - piece.place), piece, form,
                               shape, palette.width);
    syncwarp();
    if (is_there && is_good) {
        if (16 * piece.place < form.key >> 8)
            store(reinterpret_cast<u32x4 *>(slots.stream + array.data_at + (line << shape.shift)) +
                      piece.place,
                  load(&space.content[lane_id()]));
        if (piece.place == 0)
            store_line_code(shape,
                            slots.stream + WHARF_LINE_HEADER_NBYTES +
                                line / shape.group_nlines() * shape.record_nbytes,
                            (uint32_t)line & (shape.group_nlines() - 1), form.key & 255);
    }
    if (!is_good && piece.place == 0 && array.error != nullptr)
        atomic_min(array.error, line);
    syncwarp();
    return is_good;
}

/*
 * All 32 lanes of a warp, as store_line().  Changes those of the lane's 16 bytes of the line whose
 * bit in `which` is set: loads the line, and stores it again.  A line that is bad is not stored;
 * *ret_ok and the error word are as load_line() has them.
 */
template <uint32_t CODEC, uint32_t TYPE = WHARF_LINE_BF16>
WHARF_DEVICE bool update_line(const line_table<CODEC> &table, line_space &space,
                              const line_slots &slots, uint64_t line, u32x4 quad, uint32_t which)
{
    bool is_none = line == LINE_NONE, ok;
    line_array array = slots.array;
    array.error = is_none ? nullptr : array.error; /* for the line that it loads instead */
    u32x4 old = load_changing_line<CODEC, TYPE>(table, array, is_none ? 0 : line, &ok);
    uint32_t changed[4] = {quad.x, quad.y, quad.z, quad.w}, words[4] = {old.x, old.y, old.z, old.w};
    WHARF_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        uint32_t bits = which >> 4 * i & 15;
        uint32_t mask = ((bits & 1) | (bits & 2) << 7 | (bits & 4) << 14 | (bits & 8) << 21) * 255;
        words[i] = (words[i] & ~mask) | (changed[i] & mask);
    }
    ok = ok || is_none;
    return store_line<CODEC, TYPE>(space, slots, ok ? line : LINE_NONE,
                                   {words[0], words[1], words[2], words[3]}) &&
           ok;
}

/* ---- on the host ---------------------------------------------------------------------------- */

/* Whether the members of a header, but for its last one, are as the format has them. */
static inline bool is_line_header(const uint8_t *h)
{
    uint32_t codec = h[WHARF_LINE_AT_CODEC];
    uint32_t n_types = codec == WHARF_CODEC_PALETTE ? (uint32_t)WHARF_LINE_N_TYPES : 1;
    for (unsigned i = WHARF_LINE_AT_RESERVED; i < WHARF_LINE_AT_RAW; i++)
        if (h[i] != 0)
            return false;
    return codec >= WHARF_CODEC_BDI && codec <= WHARF_CODEC_PALETTE &&
           h[WHARF_LINE_AT_SHIFT] >= WHARF_LINE_MIN_SHIFT &&
           h[WHARF_LINE_AT_SHIFT] <= WHARF_LINE_MAX_SHIFT &&
           h[WHARF_LINE_AT_LAYOUT] < WHARF_LINE_N_LAYOUTS && h[WHARF_LINE_AT_TYPE] < n_types;
}

static inline int open_line_array(line_array *ret_array, const void *header, const void *d_stream,
                                  uint64_t stream_nbytes, uint64_t *d_error)
{
    uint8_t h[WHARF_LINE_HEADER_NBYTES];
    if (ret_array == nullptr || header == nullptr || d_stream == nullptr ||
        reinterpret_cast<uintptr_t>(d_stream) % 16 != 0)
        return -EINVAL;
    if (stream_nbytes < sizeof(h))
        return -EBADMSG;
    memcpy(h, header, sizeof(h)); /* once: the bytes may be shared with others */
    if (h[0] != WHARF_LINE_VERSION)
        return -EPROTONOSUPPORT;
    uint64_t raw_nbytes = 0;
    for (unsigned i = 0; i < 8; i++)
        raw_nbytes |= (uint64_t)h[WHARF_LINE_AT_RAW + i] << 8 * i;
    if (!is_line_header(h) || raw_nbytes > WHARF_LINE_MAX_RAW_NBYTES)
        return -EBADMSG;

    line_array array = {};
    uint32_t codec = h[WHARF_LINE_AT_CODEC], shift = h[WHARF_LINE_AT_SHIFT];
    bool has_nibbles = codec == WHARF_CODEC_BDI || codec == WHARF_CODEC_PALETTE || shift == 5;
    line_shape &shape = array.shape;
    shape.shift = shift;
    shape.layout = h[WHARF_LINE_AT_LAYOUT];
    shape.type = h[WHARF_LINE_AT_TYPE];
    shape.code_nbits = has_nibbles ? 4 : 8;
    shape.codes_at = shape.layout == WHARF_LINE_PACKED ? (uint32_t)WHARF_LINE_OFFSET_NBYTES : 0;
    shape.record_nbytes =
        shape.codes_at + (WHARF_LINE_GROUP_NBYTES >> shift) * shape.code_nbits / 8;
    uint64_t n_groups = (raw_nbytes + WHARF_LINE_GROUP_NBYTES - 1) / WHARF_LINE_GROUP_NBYTES;
    array.codec = codec;
    array.raw_nbytes = raw_nbytes;
    array.n_lines = (raw_nbytes + (1u << shift) - 1) >> shift;
    array.heads_at = (WHARF_LINE_HEADER_NBYTES + n_groups * shape.record_nbytes + 15) / 16 * 16;
    array.data_at = array.heads_at;
    if (codec == WHARF_CODEC_PALETTE)
        array.data_at += n_groups * WHARF_LINE_HEAD_NBYTES;
    array.stream = static_cast<const uint8_t *>(d_stream);
    array.nbytes = stream_nbytes / 16 * 16; /* streams that are whole have no more */
    array.error = d_error;
    if (array.data_at > array.nbytes)
        return -EBADMSG;
    *ret_array = array;
    return 0;
}

static inline int open_line_slots(line_slots *ret_slots, const void *header, void *d_stream,
                                  uint64_t stream_nbytes, uint64_t *d_error)
{
    line_slots slots = {};
    int r = open_line_array(&slots.array, header, d_stream, stream_nbytes, d_error);
    if (r != 0)
        return r;
    if (ret_slots == nullptr || slots.array.shape.layout != WHARF_LINE_SLOTS)
        return -EINVAL;
    if (slots.array.n_lines << slots.array.shape.shift > slots.array.nbytes - slots.array.data_at)
        return -EBADMSG;
    slots.stream = static_cast<uint8_t *>(d_stream);
    *ret_slots = slots;
    return 0;
}

} // namespace wharf

#endif
