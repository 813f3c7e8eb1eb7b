/* SPDX-License-Identifier: Apache-2.0 */
/* sized_struct.c: copies public structs of other versions of the library. */
#include "clientlib/sized_struct.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "clientlib/error_text.h"

/* A size over a page is a struct that nobody initialised: it is refused before memory that may
 * not be there is read. */
enum { MAX_STRUCT_NBYTES = 4096 };

int wharf_client_copy_struct(void *to, size_t nbytes, size_t min_nbytes, const void *from,
                             const char *name)
{
    const unsigned char *bytes = (const unsigned char *)from;
    uint32_t from_nbytes;

    memcpy(&from_nbytes, from, sizeof(from_nbytes));
    if (from_nbytes == nbytes) {
        memcpy(to, from, nbytes);
        return 0;
    }
    if (from_nbytes < min_nbytes)
        return wharf_client_fail(-EINVAL, "struct_nbytes of %s is too small: was it initialised?",
                                 name);
    if (from_nbytes > MAX_STRUCT_NBYTES)
        return wharf_client_fail(-E2BIG, "struct_nbytes of %s is too large: was it initialised?",
                                 name);
    for (size_t i = nbytes; i < from_nbytes; i++)
        if (bytes[i])
            return wharf_client_fail(-E2BIG,
                                     "libwharf %s does not know all members that are set in %s",
                                     WHARF_VERSION, name);
    memset(to, 0, nbytes);
    memcpy(to, from, from_nbytes < nbytes ? from_nbytes : nbytes);
    return 0;
}
