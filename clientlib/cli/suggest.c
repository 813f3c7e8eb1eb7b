/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.c: the name that was probably meant by a mistyped word.
 *
 * The distance of two words is the number of letters to insert, delete, replace or swap with their
 * neighbours that turns one into the other (Damerau-Levenshtein distance, optimal string
 * alignment). A name is suggested if its distance is at most a third of the word's length, or if
 * the word is its beginning.
 */
#include "clientlib/cli/suggest.h"

#include <stdio.h>
#include <string.h>

#include "clientlib/wharf.h"

enum { MAX_WORD_NBYTES = 32, MAX_CODECS = 64 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Words have at most MAX_WORD_NBYTES. */
static int distance(const char *a, int a_nbytes, const char *b, int b_nbytes)
{
    int rows[MAX_WORD_NBYTES + 1][MAX_WORD_NBYTES + 1];

    for (int i = 0; i <= a_nbytes; i++)
        rows[i][0] = i;
    for (int j = 0; j <= b_nbytes; j++)
        rows[0][j] = j;
    for (int i = 1; i <= a_nbytes; i++)
        for (int j = 1; j <= b_nbytes; j++) {
            int same = a[i - 1] == b[j - 1] ? 0 : 1;

            rows[i][j] =
                least(least(rows[i - 1][j], rows[i][j - 1]) + 1, rows[i - 1][j - 1] + same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    return rows[a_nbytes][b_nbytes];
}

const char *wharf_cli_suggest(const char *word, const char *const *names, int n)
{
    static char text[MAX_WORD_NBYTES + 32];
    int word_nbytes = (int)strnlen(word, MAX_WORD_NBYTES + 1);
    int best = word_nbytes / 3 + 1;

    text[0] = 0;
    if (word_nbytes < 2 || word_nbytes > MAX_WORD_NBYTES)
        return text;
    for (int i = 0; i < n; i++) {
        int name_nbytes = (int)strnlen(names[i], MAX_WORD_NBYTES + 1);
        int away;

        if (name_nbytes > MAX_WORD_NBYTES)
            continue;
        away = strncmp(names[i], word, (size_t)word_nbytes) == 0
                   ? 0
                   : distance(word, word_nbytes, names[i], name_nbytes);
        if (away >= best)
            continue;
        best = away;
        snprintf(text, sizeof(text), "; did you mean '%s'?", names[i]);
    }
    return text;
}

const char *wharf_cli_codec_syntax(const char *argument)
{
    static char text[128];
    const char *names[MAX_CODECS];
    uint32_t n = 0;

    while (n < MAX_CODECS && wharf_codec_name(n)) {
        names[n] = wharf_codec_name(n);
        n++;
    }
    snprintf(text, sizeof(text), "a codec that `wharf --help` lists%s",
             wharf_cli_suggest(argument, names, (int)n));
    return text;
}
