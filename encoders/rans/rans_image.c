/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_image.c: a registered model's image: tables in one piece of memory without pointers.
 *
 * The size follows from the model's header alone, so that it can be charged before the tables are
 * made.  Where all places are is in the image's first bytes; 0 stands for a table that is not
 * there.
 */
#include "encoders/rans/rans_image.h"

#include "encoders/little_endian.h"
#include "encoders/rans/rans_loop.h"
#include "encoders/rans/rans_model.h"
#include "encoders/rans/rans_window.h"
#include "encoders/rans/rans_write.h"

/* Of a GPU's caches: an image begins with one where it has to be fast. */
#define SECTOR_NBYTES 32

static bool is_of_bytes(const struct wharf_rans_shape *shape)
{
    return shape->n_distributions == 1 && shape->symbol_nbytes == 1;
}

/* ---- layout ------------------------------------------------------------------------------ */

/* The next piece of memory, and where it is; no piece is NBYTES 0. */
static uint32_t place(uint32_t *end, size_t nbytes)
{
    uint32_t at = *end;

    *end += (uint32_t)(nbytes + 15) & ~15u;
    return nbytes ? at : 0;
}

/* Windows, if there are any, begin with a sector. */
static void lay_out_windows(const struct wharf_rans_shape *shape, struct wharf_rans_image *image,
                            uint32_t *end)
{
    struct wharf_rans_windows windows;

    wharf_rans_windows_lay_out(shape, &windows);
    if (windows.stride == 0)
        return;
    *end = (*end + SECTOR_NBYTES - 1) / SECTOR_NBYTES * SECTOR_NBYTES;
    image->windows_stride = windows.stride;
    image->windows_at = place(end, (size_t)shape->n_distributions * windows.stride *
                                       sizeof(struct wharf_rans_window));
    image->scales_at = place(end, shape->n_distributions * sizeof(uint32_t));
    image->buckets_at = place(end, windows.n_buckets * sizeof(uint16_t));
}

/* Lays an image out; returns its size: at most 6 bytes for each of 2^24 slots, 4 MiB of windows
 * where these are fewer than that, and some KiB. */
static uint32_t lay_out(const struct wharf_rans_shape *shape, uint32_t registered_nbytes,
                        struct wharf_rans_image *image)
{
    uint32_t end = sizeof(*image);
    bool of_bytes = is_of_bytes(shape);
    bool can_pack = of_bytes && shape->n_bits <= WHARF_RANS_PACKED_MAX_NBITS;

    *image = (struct wharf_rans_image){
        .n_bits = shape->n_bits,
        .symbol_nbytes = shape->symbol_nbytes,
        .alphabet = shape->alphabet,
        .n_distributions = shape->n_distributions,
        .registered_nbytes = of_bytes ? registered_nbytes : 0,
    };
    image->registered_at = place(&end, image->registered_nbytes);
    image->totals_at = place(&end, shape->n_distributions * sizeof(uint32_t));
    image->ranges_at = place(&end, wharf_rans_n_ranges(shape) * sizeof(struct wharf_rans_range));
    image->slots_at =
        place(&end, (wharf_rans_n_slots(shape) + WHARF_RANS_MORE_SLOTS) * sizeof(uint16_t));
    image->packed_slots_at =
        place(&end, can_pack ? wharf_rans_n_slots(shape) * sizeof(uint32_t) : 0);
    if (!of_bytes)
        lay_out_windows(shape, image, &end);
    return end;
}

/* ---- from what is registered ------------------------------------------------------------- */

static enum wharf_reason parse(const uint8_t *model, size_t model_nbytes,
                               struct wharf_rans_shape *ret_shape)
{
    if (model_nbytes < WHARF_RANS_HEADER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (model[0] != WHARF_RANS_VERSION)
        return WHARF_REASON_RANS_VERSION;
    *ret_shape = (struct wharf_rans_shape){
        .n_bits = model[1],
        .symbol_nbytes = model[2],
        .n_distributions = wharf_load_le16(model + 4) + 1,
        .alphabet = wharf_load_le16(model + 6) + 1,
    };
    if (model[3] != 0 || wharf_load_le32(model + 12) != 0 ||
        !wharf_rans_shape_is_good(ret_shape, WHARF_RANS_REGISTERED_NSLOTS))
        return WHARF_REASON_RANS_HEADER;
    if (wharf_load_le32(model + 8) > model_nbytes - WHARF_RANS_HEADER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (wharf_load_le32(model + 8) < model_nbytes - WHARF_RANS_HEADER_NBYTES)
        return WHARF_REASON_INPUT_LEFT;
    return WHARF_REASON_NONE;
}

enum wharf_reason wharf_rans_image_nbytes(const uint8_t *model, size_t model_nbytes,
                                          size_t *ret_nbytes)
{
    struct wharf_rans_shape shape;
    struct wharf_rans_image image;
    enum wharf_reason reason = parse(model, model_nbytes, &shape);
    size_t packed_nbytes;

    if (reason != WHARF_REASON_NONE)
        return reason;
    packed_nbytes = model_nbytes - WHARF_RANS_HEADER_NBYTES;
    if (packed_nbytes < wharf_rans_packed_least(&shape) ||
        packed_nbytes > wharf_rans_packed_bound(wharf_rans_n_ranges(&shape)))
        return WHARF_REASON_RANS_MODEL;
    *ret_nbytes = lay_out(&shape, (uint32_t)model_nbytes, &image);
    return WHARF_REASON_NONE;
}

enum wharf_reason wharf_rans_image_make(const uint8_t *model, size_t model_nbytes, void *memory)
{
    struct wharf_rans_image *image = memory;
    uint8_t *at = memory;
    const uint8_t *packed_form = model + WHARF_RANS_HEADER_NBYTES;
    struct wharf_rans_shape shape;
    struct wharf_rans_model tables;
    enum wharf_reason reason = parse(model, model_nbytes, &shape);

    if (reason != WHARF_REASON_NONE)
        return reason;
    lay_out(&shape, (uint32_t)model_nbytes, image);
    wharf_rans_image_model(image, &tables);
    if (!wharf_rans_model_unpack(packed_form, model_nbytes - WHARF_RANS_HEADER_NBYTES, &tables))
        return WHARF_REASON_RANS_MODEL;
    image->is_full = tables.is_full;
    for (uint32_t i = 0; i < image->registered_nbytes; i++)
        at[image->registered_at + i] = model[i];
    if (image->packed_slots_at &&
        !wharf_rans_pack_slots(&tables, (uint32_t *)(void *)(at + image->packed_slots_at)))
        image->packed_slots_at = 0;
    if (image->windows_at) {
        const struct wharf_rans_windows windows = {
            .stride = image->windows_stride,
            .windows = (struct wharf_rans_window *)(void *)(at + image->windows_at),
            .scales = (uint32_t *)(void *)(at + image->scales_at),
            .buckets = (uint16_t *)(void *)(at + image->buckets_at),
        };
        wharf_rans_windows_fill(&tables, &windows);
    }
    return WHARF_REASON_NONE;
}

bool wharf_rans_image_has_shape(const void *memory, const struct wharf_rans_shape *shape)
{
    const struct wharf_rans_image *image = memory;

    return image->n_bits == shape->n_bits && image->symbol_nbytes == shape->symbol_nbytes &&
           image->alphabet == shape->alphabet && image->n_distributions == shape->n_distributions;
}

void wharf_rans_image_model(const void *memory, struct wharf_rans_model *ret_model)
{
    const struct wharf_rans_image *image = memory;
    /* Decoders only read them. */
    uint8_t *at = (uint8_t *)(uintptr_t)memory;

    *ret_model = (struct wharf_rans_model){
        .shape = {image->n_bits, image->symbol_nbytes, image->alphabet, image->n_distributions},
        .is_full = image->is_full != 0,
        .totals = (uint32_t *)(void *)(at + image->totals_at),
        .slot_symbols = (uint16_t *)(void *)(at + image->slots_at),
        .ranges = (struct wharf_rans_range *)(void *)(at + image->ranges_at),
    };
    if (image->packed_slots_at)
        ret_model->packed_slots = (const uint32_t *)(const void *)(at + image->packed_slots_at);
}

/* ---- making what is registered ----------------------------------------------------------- */

size_t wharf_rans_model_write(const struct wharf_rans_shape *shape, const uint32_t *frequencies,
                              uint8_t *out, size_t out_avail)
{
    size_t packed_nbytes = wharf_rans_model_pack(shape, frequencies, NULL, 0);

    if (WHARF_RANS_HEADER_NBYTES + packed_nbytes > out_avail)
        return WHARF_RANS_HEADER_NBYTES + packed_nbytes;
    wharf_rans_write_header(shape, (uint32_t)packed_nbytes, 0, out);
    wharf_rans_model_pack(shape, frequencies, out + WHARF_RANS_HEADER_NBYTES, packed_nbytes);
    return WHARF_RANS_HEADER_NBYTES + packed_nbytes;
}
