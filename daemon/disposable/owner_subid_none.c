/* SPDX-License-Identifier: Apache-2.0 */
/* owner_subid_none.c: no libsubid: /etc/subuid is read, and no service is asked. */
#include <errno.h>

#include "daemon/disposable/owner_service.h"

int wharf_owner_ask_service(uid_t uid, struct wharf_owner_answer *ret_answer)
{
    (void)uid;
    (void)ret_answer;
    return -ENOENT;
}
