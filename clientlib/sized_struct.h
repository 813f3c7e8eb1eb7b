/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sized_struct.h: structs of the public header that begin with their own size.
 */
#ifndef WHARF_CLIENT_SIZED_STRUCT_H
#define WHARF_CLIENT_SIZED_STRUCT_H

#include <stddef.h>

/*
 * wharf_client_copy_struct: copies the caller's struct into ours of `nbytes`; the first version had
 * `min_nbytes`. Members that the caller's version lacks become zero; members that ours lacks must
 * be zero.  `name` is the struct's, for the message.  Returns 0, -EINVAL or -E2BIG.
 */
int wharf_client_copy_struct(void *to, size_t nbytes, size_t min_nbytes, const void *from,
                             const char *name);

#endif
