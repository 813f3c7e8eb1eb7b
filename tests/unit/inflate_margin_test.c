/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast loop goes on only while a turn of it, whatever the symbols, stays within source and
 * destination: streams whose every turn takes the most bits, and puts out the most bytes, decoded
 * between pages that cannot be touched, the end of the room being at every place.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/deflate/deflate.h"
#include "encoders/deflate/deflate_format.h"
#include "encoders/deflate/inflate_litlen.h"
#include "encoders/deflate/inflate_loop.h"
#include "tests/lib/test_forge.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_outcome.h"

static const char *const forms[] = {
#define X(form) #form,
    WHARF_INFLATE_LOOP_LIST(X)
#undef X
};
enum { N_FORMS = sizeof(forms) / sizeof(forms[0]), N_PLANS = 4 };

static void expect_agreement(const uint8_t *in, size_t in_nbytes, size_t out_avail)
{
    uint8_t *want_out = malloc(out_avail + 1);
    struct wharf_outcome want, got;
    struct test_guard source = test_guard_copy(in, in_nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(out_avail, TEST_GUARD_END);

    cr_assert(want_out);
    wharf_deflate_decode_reference(in, in_nbytes, want_out, out_avail, NULL, &want);
    for (unsigned i = 0; i < N_FORMS * N_PLANS; i++) {
        if (wharf_inflate_loop_force(forms[i / N_PLANS]) < 0)
            continue;
        wharf_inflate_litlen_force(i % N_PLANS);
        wharf_deflate_decode(source.data, in_nbytes, out.data, out_avail, NULL, &got);
        cr_assert(test_outcome_same(&got, &want), "%s, plan %u: %s; not %s", forms[i / N_PLANS],
                  i % N_PLANS, test_outcome_text(&got).text, test_outcome_text(&want).text);
        cr_assert(want.out_nbytes == 0 || memcmp(out.data, want_out, want.out_nbytes) == 0);
    }
    test_guard_free(&source);
    test_guard_free(&out);
    free(want_out);
}

/* One symbol of each length from 1 to 15, and a second of 15: a complete code. */
static void set_ladder(struct test_forge_code *code, unsigned n_symbols, const uint16_t *symbols)
{
    memset(code, 0, sizeof(*code));
    code->n_symbols = n_symbols;
    for (unsigned i = 0; i < 16; i++)
        code->nbits[symbols[i]] = (uint8_t)(i < 15 ? i + 1 : 15);
}

/*
 * Literals of 11 bits (as wide as the table), of 1 bit (to shift all that follows) and of 12 (in a
 * second table); length 284 with 15 + 5 bits; distance symbol 29 with 15 + 13.
 */
enum { LONG = 'l', SHORT = 's', LONGER = 'm' };
static const uint16_t widest_litlen[16] = {SHORT, 285, 1,    2,      3, 4,  5,   6,
                                           7,     8,   LONG, LONGER, 9, 10, 284, 256};
static const uint16_t widest_distance[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 29, 14};

static void put_unit(struct test_forge *forge, const char *unit)
{
    for (; *unit; unit++) {
        if (*unit == 'M')
            test_forge_match(forge, 257, 32768);
        else
            test_forge_literal(forge, (uint8_t)*unit);
    }
}

/* Cuts off the stream at each of its last bytes, the page behind it being out of bounds. */
Test(inflate_margin, reads_nothing_behind_the_source_at_the_greatest_pace)
{
    enum { N_UNITS = 24, N_CUTS = 100 };
    static const char *const units[] = {"llM", "lM", "M", "lll", "lmM", "mM", "mmm", "sllM", "ssM"};

    for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
        for (unsigned shift = 0; shift < 8; shift++) {
            struct test_forge forge;
            test_forge_init(&forge, u);
            set_ladder(&forge.litlen, WHARF_DEFLATE_N_LITLEN, widest_litlen);
            set_ladder(&forge.distance, WHARF_DEFLATE_N_DISTANCE, widest_distance);
            test_forge_dynamic(&forge, 1);
            test_forge_literal(&forge, SHORT);
            while (forge.out_nbytes < 32768 + 258)
                test_forge_match(&forge, 258, 1);
            for (unsigned i = 0; i < shift; i++)
                test_forge_literal(&forge, SHORT);
            for (unsigned i = 0; i < N_UNITS; i++)
                put_unit(&forge, units[u]);
            test_forge_end(&forge);
            size_t nbytes = test_forge_nbytes(&forge);
            for (size_t n = nbytes - N_CUTS / (shift ? 5 : 1); n <= nbytes; n++)
                expect_agreement(forge.data, n, forge.out_nbytes);
            test_forge_deinit(&forge);
        }
    }
}

/*
 * Steps of two literals, two of them and a literal before a match of 258 bytes: the longest way
 * that a turn goes in the output.  The distance says which way of copying is taken.
 */
Test(inflate_margin, writes_nothing_behind_the_destination_at_the_greatest_pace)
{
    enum { N_UNITS = 5, UNIT_NBYTES = 5 + 258 };
    static const unsigned distances[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 300};

    for (size_t d = 0; d < sizeof(distances) / sizeof(distances[0]); d++) {
        struct test_forge forge;
        test_forge_init(&forge, d);
        forge.litlen = (struct test_forge_code){.n_symbols = WHARF_DEFLATE_N_LITLEN};
        forge.litlen.nbits['a'] = 1;
        forge.litlen.nbits[285] = 2;
        forge.litlen.nbits['b'] = 3;
        forge.litlen.nbits[WHARF_DEFLATE_END_OF_BLOCK] = 3;
        set_ladder(&forge.distance, WHARF_DEFLATE_N_DISTANCE, widest_distance);
        forge.distance.nbits[29] = 0;
        forge.distance.nbits[16] = 15;
        test_forge_dynamic(&forge, 1);
        for (unsigned i = 0; i < 300; i++)
            test_forge_literal(&forge, i % 7 ? 'a' : 'b');
        for (unsigned i = 0; i < N_UNITS; i++) {
            for (unsigned k = 0; k < 5; k++)
                test_forge_literal(&forge, 'a');
            test_forge_match(&forge, 258, distances[d]);
        }
        test_forge_end(&forge);
        for (size_t avail = 300 + UNIT_NBYTES; avail < forge.out_nbytes + 40; avail++)
            expect_agreement(forge.data, test_forge_nbytes(&forge), avail);
        test_forge_deinit(&forge);
    }
}
