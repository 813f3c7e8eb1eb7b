/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_loop_fpc.h: fpc for x86-64's vectors, whatever else a form has.  TARGET_INLINE is defined
 * before.
 *
 * A segment of any pattern takes the same steps: its bytes go where each word's highest ones are,
 * then every word is shifted to the left and back, which extends the sign.  Only two bytes a word
 * want halves shifted in place of words.  So patterns cost no branch.
 */
#define X 0x80 /* a byte of zeros */
static const struct fpc_steps {
    uint8_t shuffle[16];
    uint32_t left[4];
    uint32_t right[4];
    uint8_t halves[16]; /* 0x80: of the halves' shift */
} fpc_steps[8] __attribute__((aligned(16))) = {
    [WHARF_LINE_FPC_ZEROS] = {{X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X}, {0}, {0}, {0}},
    [WHARF_LINE_FPC_SIGNED_4] = {{X, X, X, 0, X, X, X, 0, X, X, X, 1, X, X, X, 1},
                                 {4, 0, 4, 0},
                                 {28, 28, 28, 28},
                                 {0}},
    [WHARF_LINE_FPC_SIGNED_8] = {{X, X, X, 0, X, X, X, 1, X, X, X, 2, X, X, X, 3},
                                 {0},
                                 {24, 24, 24, 24},
                                 {0}},
    [WHARF_LINE_FPC_SIGNED_16] = {{X, X, 0, 1, X, X, 2, 3, X, X, 4, 5, X, X, 6, 7},
                                  {0},
                                  {16, 16, 16, 16},
                                  {0}},
    [WHARF_LINE_FPC_HIGH_HALF] = {{X, X, 0, 1, X, X, 2, 3, X, X, 4, 5, X, X, 6, 7}, {0}, {0}, {0}},
    [WHARF_LINE_FPC_TWO_BYTES] = {{X, 0, X, 1, X, 2, X, 3, X, 4, X, 5, X, 6, X, 7},
                                  {0},
                                  {0},
                                  {X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X}},
    [WHARF_LINE_FPC_REPEATED] = {{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}, {0}, {0}, {0}},
    [WHARF_LINE_FPC_RAW] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {0}, {0}, {0}},
};
#undef X

TARGET_INLINE __m128i fpc_table(const void *row)
{
    return _mm_load_si128((const __m128i *)row);
}

TARGET_INLINE bool put_fpc(const uint8_t *content, uint32_t n_pairs, uint32_t n, uint8_t *out)
{
    uint32_t patterns = (uint32_t)wharf_line_load(content, 4), n_taken = 0;

    content += wharf_line_fpc_head_nbytes(n);
    for (uint32_t at = 0; at < n; at += WHARF_LINE_FPC_SEGMENT_NBYTES, patterns >>= 3) {
        const struct fpc_steps *steps = &fpc_steps[patterns & 7];
        __m128i bytes = _mm_loadu_si128((const __m128i_u *)(content + 2 * n_taken));
        __m128i words = _mm_shuffle_epi8(bytes, fpc_table(steps->shuffle));
        words =
            _mm_srav_epi32(_mm_sllv_epi32(words, fpc_table(steps->left)), fpc_table(steps->right));
        words = _mm_blendv_epi8(words, _mm_srai_epi16(words, 8), fpc_table(steps->halves));
        _mm_storeu_si128((__m128i_u *)(out + at), words);
        n_taken += wharf_line_fpc_npairs(patterns & 7);
    }
    return n_taken <= n_pairs;
}
