/* SPDX-License-Identifier: Apache-2.0 */
/* run_pieces.c: wharf_next_runs: cuts streams of ORC's run lengths into pieces. */
#include <errno.h>

#include "clientlib/error_text.h"
#include "clientlib/wharf.h"
#include "encoders/run_scan.h"

static int check(uint32_t codec, const void *in, size_t in_nbytes,
                 const struct wharf_run_piece *piece)
{
    if (!wharf_run_scan_knows(codec))
        return wharf_client_fail(-EINVAL,
                                 "this codec's streams have no runs that can be told apart");
    if (!piece || (!in && in_nbytes))
        return wharf_client_fail(-EINVAL, "%s is NULL", piece ? "in" : "piece");
    if (piece->in_offset > in_nbytes || piece->in_nbytes > in_nbytes - piece->in_offset)
        return wharf_client_fail(-EINVAL,
                                 "piece is not of this stream: it begins with zeros, or as the "
                                 "last call has left it");
    return 0;
}

int wharf_next_runs(uint32_t codec, const void *in, size_t in_nbytes, uint64_t max_values,
                    struct wharf_run_piece *piece)
{
    const struct wharf_run_limits limits = {max_values, SIZE_MAX};
    int r = check(codec, in, in_nbytes, piece);

    if (r < 0)
        return r;
    struct wharf_run_place place = {piece->in_offset + piece->in_nbytes,
                                    piece->first_value + piece->n_values};
    struct wharf_run_place from = place;
    if (from.in_offset == in_nbytes)
        return 0;
    wharf_run_scan_pass(codec, in, in_nbytes, &limits, &place);
    if (place.in_offset == from.in_offset)
        place.in_offset = in_nbytes;
    *piece = (struct wharf_run_piece){
        .in_offset = from.in_offset,
        .in_nbytes = place.in_offset - from.in_offset,
        .first_value = from.n_values,
        .n_values = place.n_values - from.n_values,
    };
    return 1;
}
