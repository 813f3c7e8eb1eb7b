/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_form.cuh: finds and writes the smallest form of a line among all schemes of its codec, by
 * the lanes of that line.
 */
#ifndef WHARF_KERNELS_LINE_LINE_FORM_CUH
#define WHARF_KERNELS_LINE_LINE_FORM_CUH

#include "kernels/line/line_find_palette.cuh"

namespace wharf
{

/* A line's form: its key, and what the scheme's search found for the writer. */
struct line_form {
    uint32_t key;
    uint32_t scheme;
    line_bdi_form bdi;
    line_fpc_form fpc;
    line_cpack_form cpack;
    line_palette_form palette;
};

/*
 * collective.  Finds the form with the least key, zeros and raw lines included.  For palette,
 * `ranks` are those of this lane's values, with the group's width.
 */
template <uint32_t CODEC, uint32_t TYPE>
WHARF_DEVICE line_form line_find_form(const line_piece &piece, const line_shape &shape,
                                      line_nibbles nibbles, uint32_t width)
{
    line_form form = {};
    form.key = make_line_key(shape.line_nbytes(), (1u << shape.code_nbits) - 1);
    form.scheme = WHARF_LINE_IS_RAW;
    auto offer = [&](uint32_t scheme, uint32_t key) {
        form.scheme = key < form.key ? scheme : form.scheme;
        form.key = key < form.key ? key : form.key;
    };
    uint32_t all = piece.words[0] | piece.words[1] | piece.words[2] | piece.words[3];
    bool is_zero = line_all(all == 0, piece);
    if (line_has_bdi(CODEC)) {
        form.bdi = line_find_bdi(piece, shape.shift);
        offer(WHARF_LINE_IS_BDI, form.bdi.key);
    }
    if (line_has_fpc(CODEC)) {
        form.fpc = line_find_fpc<CODEC>(piece, shape.shift);
        offer(WHARF_LINE_IS_FPC, form.fpc.key);
    }
    if (line_has_cpack(CODEC)) {
        form.cpack = line_find_cpack<CODEC>(piece, shape.shift);
        offer(WHARF_LINE_IS_CPACK, form.cpack.key);
    }
    if (CODEC == WHARF_CODEC_PALETTE) {
        form.palette = line_find_palette<TYPE>(piece, nibbles, width, shape.shift);
        offer(WHARF_LINE_IS_PALETTE, form.palette.key);
    }
    form.scheme = is_zero ? (uint32_t)WHARF_LINE_IS_ZEROS : form.scheme;
    form.key = is_zero ? make_line_key(0, WHARF_LINE_CODE_ZEROS) : form.key;
    return form;
}

/* One lane.  Writes the form from byte `at` of shared memory on, which holds zeros. */
template <uint32_t CODEC, uint32_t TYPE>
WHARF_DEVICE void line_put_form(uint32_t *to, uint32_t at, const line_piece &piece,
                                const line_form &form, const line_shape &shape, uint32_t width)
{
    if (line_has_bdi(CODEC) && form.scheme == WHARF_LINE_IS_BDI)
        line_put_bdi(to, at, piece, form.bdi.base, form.bdi.key & 255, shape.shift);
    if (line_has_fpc(CODEC) && form.scheme == WHARF_LINE_IS_FPC)
        line_put_fpc(to, at, piece, form.fpc, shape.shift);
    if (line_has_cpack(CODEC) && form.scheme == WHARF_LINE_IS_CPACK)
        line_put_cpack(to, at, piece, form.cpack, shape.shift);
    if (CODEC == WHARF_CODEC_PALETTE && form.scheme == WHARF_LINE_IS_PALETTE)
        line_put_palette<TYPE>(to, at, piece, form.palette, width, shape.shift);
    if (form.scheme == WHARF_LINE_IS_RAW)
        line_put_raw(to, at, piece);
}

} // namespace wharf

#endif
