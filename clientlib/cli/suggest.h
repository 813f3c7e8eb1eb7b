/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suggest.h: the name that was probably meant by a mistyped word.
 */
#ifndef WHARF_CLI_SUGGEST_H
#define WHARF_CLI_SUGGEST_H

/* What a message says that a codec's name may be, if `argument` is none, with the nearest name. For
 * one thread; the string lasts until the next call. */
const char *wharf_cli_codec_syntax(const char *argument);

/* The end of a message about an unknown word: "; did you mean 'X'?" with the nearest of the `n`
 * names, or "" if none is near.  For one thread; the string lasts until the next call. */
const char *wharf_cli_suggest(const char *word, const char *const *names, int n);

#endif
