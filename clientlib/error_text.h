/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error_text.h: what wharf_error_message says.
 *
 * The text belongs to the calling thread.  Whoever returns a negative number to a program has
 * called wharf_client_fail on the way, so that number and text belong together.
 */
#ifndef WHARF_CLIENT_ERROR_TEXT_H
#define WHARF_CLIENT_ERROR_TEXT_H

#include <stddef.h>

/*
 * wharf_client_fail: keeps the text, cut off where it is too long; its value is `err`.  A macro, so
 * that the compiler sees which number it is.
 */
#define wharf_client_fail(err, ...) (wharf_client_set_message(__VA_ARGS__), (err))

/* The text alone, for this thread. */
__attribute__((format(printf, 1, 2))) void wharf_client_set_message(const char *format, ...);

/*
 * wharf_client_copy_printable: copies a daemon's text, as much as fits with its terminator into
 * `nbytes`, with '?' for everything that is not printable ASCII.
 */
void wharf_client_copy_printable(char *to, size_t nbytes, const char *from);

#endif
