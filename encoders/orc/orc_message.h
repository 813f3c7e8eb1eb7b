/* SPDX-License-Identifier: Apache-2.0 */
/* orc_message.h: parses the messages of ORC files in bounded memory. */
#ifndef WHARF_ENCODERS_ORC_ORC_MESSAGE_H
#define WHARF_ENCODERS_ORC_ORC_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "encoders/orc/orc.pb-c.h"

/* Return the message of nbytes, or NULL if it does not parse or needs more than some 64 times its
 * size of memory. */
Wharf__Orc__PostScript *wharf_orc_parse_postscript(const uint8_t *bytes, size_t nbytes);
Wharf__Orc__Footer *wharf_orc_parse_footer(const uint8_t *bytes, size_t nbytes);
Wharf__Orc__StripeFooter *wharf_orc_parse_stripe_footer(const uint8_t *bytes, size_t nbytes);

/* Frees a message of any of these types.  Takes NULL. */
void wharf_orc_message_free(void *message);

#endif
