/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest.c: finds the name nearest to a mistyped word, by the edit distance with transpositions
 * (Damerau, 1964; the restricted form, "optimal string alignment").
 */
#include "daemon/base/nearest.h"

#include <string.h>

/* Longer than any setting's name. */
#define MAX_NBYTES 40

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The number of edits between two words, by dynamic programming; three rows of the table are
 * kept. */
static size_t distance(const char *a, size_t a_nbytes, const char *b, size_t b_nbytes)
{
    size_t rows[3][MAX_NBYTES + 1];

    for (size_t k = 0; k <= b_nbytes; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= a_nbytes; i++) {
        size_t *row = rows[i % 3];
        const size_t *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= b_nbytes; k++) {
            row[k] = min(min(last[k], row[k - 1]) + 1, last[k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                row[k] = min(row[k], before[k - 2] + 1);
        }
    }
    return rows[a_nbytes % 3][b_nbytes];
}

void wharf_nearest_begin(struct wharf_nearest *nearest, const char *word)
{
    *nearest = (struct wharf_nearest){.word = word, .distance = strlen(word) / 3 + 2};
}

void wharf_nearest_offer(struct wharf_nearest *nearest, const char *name)
{
    size_t word_nbytes = strlen(nearest->word), name_nbytes = strlen(name);

    if (word_nbytes > MAX_NBYTES || name_nbytes > MAX_NBYTES)
        return;
    size_t away = distance(nearest->word, word_nbytes, name, name_nbytes);
    /* A name that shares no letter with the word is not meant. */
    if (away >= nearest->distance || away >= min(word_nbytes, name_nbytes))
        return;
    nearest->distance = away;
    nearest->name = name;
}
