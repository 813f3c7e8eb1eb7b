/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls that need no handle. */
#include "clientlib/wharf.h"

#include <errno.h>
#include <string.h>

#include "clientlib/error_text.h"
#include "encoders/codec.h"

/* More than any name that could be meant. */
enum { SHOWN_NBYTES = 64 };

const char *wharf_version(void)
{
    return WHARF_VERSION;
}

const char *wharf_codec_name(uint32_t codec)
{
    const struct wharf_codec_row *row = wharf_codec_find(codec);

    return row ? row->name : NULL;
}

const char *wharf_codec_summary(uint32_t codec)
{
    const struct wharf_codec_row *row = wharf_codec_find(codec);

    return row ? row->summary : NULL;
}

static const char *engine_name(uint32_t engine)
{
    return engine <= WHARF_ENGINE_SIMT ? wharf_engine_name(engine) : NULL;
}

/* Reports that no number's name is `name`.  `what` is "codec" or "engine". */
static int say_unknown(const char *name, const char *what, const char *(*name_of)(uint32_t))
{
    char shown[SHOWN_NBYTES], known[256] = "";

    wharf_client_copy_printable(shown, sizeof(shown), name);
    for (uint32_t i = 0; name_of(i); i++) {
        strncat(known, i ? ", " : "", sizeof(known) - strlen(known) - 1);
        strncat(known, name_of(i), sizeof(known) - strlen(known) - 1);
    }
    return wharf_client_fail(-ENOENT, "there is no %s '%s': the names are %s", what, shown, known);
}

/* The number of a name, likewise. */
static int number_of(const char *name, const char *what, const char *(*name_of)(uint32_t))
{
    if (!name)
        return wharf_client_fail(-EINVAL, "the %s's name is NULL", what);
    for (uint32_t i = 0; name_of(i); i++)
        if (strcmp(name_of(i), name) == 0)
            return (int)i;
    return say_unknown(name, what, name_of);
}

int wharf_codec_from_name(const char *name)
{
    return number_of(name, "codec", wharf_codec_name);
}

int wharf_engine_from_name(const char *name)
{
    return number_of(name, "engine", engine_name);
}
