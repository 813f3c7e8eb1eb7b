/* SPDX-License-Identifier: Apache-2.0 */
/* Random access: end frames from the back of the file, and down the index from its root. */
#include <errno.h>
#include <string.h>

#include "encoders/checksum.h"
#include "encoders/container_frame.h"
#include "encoders/container_read.h"

/* What a member's end frame claims, held against its size. */
struct member {
    uint64_t offset; /* in the file */
    uint64_t nbytes;
    uint64_t root_offset;
    uint64_t n_chunks;
    uint64_t raw_nbytes;
    struct wharf_container_file_header header;
};

/* A frame that an end frame or an index node points to, and what it must then be. */
struct pointer {
    uint64_t frame_offset; /* in the member */
    uint64_t frame_end;    /* it ends at or before this place in the member */
    uint64_t sequence;
    uint64_t raw_offset;
    uint32_t level; /* 0: a chunk */
};

struct node {
    struct wharf_container_frame_header header;
    struct wharf_container_index_entry entries[WHARF_CONTAINER_FANOUT];
};

/* All functions below return 0 or -errno, and fill *fault if something in the file is bad. */

static int set_fault(struct wharf_container_fault *fault, uint32_t reason, uint64_t file_offset)
{
    *fault = (struct wharf_container_fault){
        .result = WHARF_BAD_DATA,
        .reason = reason,
        .file_offset = file_offset,
    };
    return 0;
}

static int set_verdict(struct wharf_container_fault *fault, struct wharf_container_verdict verdict,
                       uint64_t file_offset)
{
    set_fault(fault, verdict.reason, file_offset);
    fault->result = verdict.result;
    return 0;
}

/* Reads nbytes that the file must have, since its size says so; a file that shrank meanwhile
 * counts as cut off. */
static int read_whole(const struct wharf_container_source *source, uint64_t offset, void *buf,
                      size_t nbytes, struct wharf_container_fault *fault)
{
    int64_t n = source->read_at(source->context, offset, buf, nbytes);

    if (n < 0)
        return (int)n;
    if ((uint64_t)n < nbytes)
        set_fault(fault, WHARF_REASON_CONTAINER_TRUNCATED, offset);
    return 0;
}

/* ---- members, from the last to the first ------------------------------------------------ */

/* Whether so many chunks and so much output fit a member of this size at all. */
static int is_claim_possible(const struct member *member)
{
    if (member->n_chunks > member->nbytes / WHARF_CONTAINER_CHUNK_MIN_FILE_NBYTES)
        return 0;
    if (member->raw_nbytes > WHARF_CONTAINER_OFFSET_MAX || member->raw_nbytes < member->n_chunks ||
        (member->raw_nbytes + WHARF_CONTAINER_CHUNK_MAX_NBYTES - 1) /
                WHARF_CONTAINER_CHUNK_MAX_NBYTES >
            member->n_chunks)
        return 0;
    return (member->root_offset == 0) == (member->n_chunks == 0);
}

static int read_end_frame(const struct wharf_container_source *source, uint64_t member_end,
                          struct member *ret_member, struct wharf_container_fault *fault)
{
    const uint64_t min_nbytes =
        WHARF_CONTAINER_FILE_HEADER_NBYTES + WHARF_CONTAINER_FRAME_HEADER_NBYTES;
    struct wharf_container_frame_header header;
    struct wharf_container_end_parameters end;
    uint64_t offset = member_end - sizeof(header);
    int rc;

    if (member_end < min_nbytes || member_end % WHARF_CONTAINER_ALIGN != 0 ||
        member_end > WHARF_CONTAINER_OFFSET_MAX)
        return set_fault(fault, WHARF_REASON_CONTAINER_TRUNCATED, member_end);
    rc = read_whole(source, offset, &header, sizeof(header), fault);
    if (rc < 0 || fault->result != WHARF_OK)
        return rc;
    if (header.marker != WHARF_CONTAINER_MARKER_END)
        return set_fault(fault, WHARF_REASON_CONTAINER_TRUNCATED, member_end);
    memcpy(&end, header.parameters, sizeof(end));
    if (wharf_container_check_frame(&header).result != WHARF_OK || end.member_nbytes < min_nbytes ||
        end.member_nbytes > member_end || end.member_nbytes % WHARF_CONTAINER_ALIGN != 0)
        return set_fault(fault, WHARF_REASON_CONTAINER_INDEX, offset);
    *ret_member = (struct member){
        .offset = member_end - end.member_nbytes,
        .nbytes = end.member_nbytes,
        .root_offset = end.root_offset,
        .n_chunks = header.sequence,
        .raw_nbytes = header.raw_offset,
    };
    if (!is_claim_possible(ret_member))
        set_fault(fault, WHARF_REASON_CONTAINER_INDEX, offset);
    return 0;
}

/* Reads the member that ends at member_end, a place in the file. */
static int read_member(const struct wharf_container_source *source, uint64_t member_end,
                       struct member *ret_member, struct wharf_container_fault *fault)
{
    struct wharf_container_verdict verdict;
    int rc = read_end_frame(source, member_end, ret_member, fault);

    if (rc < 0 || fault->result != WHARF_OK)
        return rc;
    rc = read_whole(source, ret_member->offset, &ret_member->header, sizeof(ret_member->header),
                    fault);
    if (rc < 0 || fault->result != WHARF_OK)
        return rc;
    verdict = wharf_container_check_file_header(&ret_member->header, sizeof(ret_member->header));
    if (verdict.result != WHARF_OK)
        set_verdict(fault, verdict, ret_member->offset);
    return 0;
}

static int add_totals(const struct member *member, struct wharf_container_totals *totals)
{
    if (totals->raw_nbytes > WHARF_CONTAINER_OFFSET_MAX - member->raw_nbytes)
        return 0;
    totals->n_members++;
    totals->n_chunks += member->n_chunks;
    totals->raw_nbytes += member->raw_nbytes;
    return 1;
}

/* Adds up all members; *ret_first is the first of the file. */
static int read_members(const struct wharf_container_source *source,
                        struct wharf_container_totals *ret_totals, struct member *ret_first,
                        struct wharf_container_fault *fault)
{
    uint64_t member_end = source->nbytes;

    *ret_totals = (struct wharf_container_totals){0};
    do {
        int rc = read_member(source, member_end, ret_first, fault);
        if (rc < 0)
            return rc;
        if (fault->result == WHARF_OK && !add_totals(ret_first, ret_totals))
            set_fault(fault, WHARF_REASON_CONTAINER_INDEX, ret_first->offset);
        if (fault->result != WHARF_OK) {
            *ret_totals = (struct wharf_container_totals){0};
            return 0;
        }
        member_end = ret_first->offset;
    } while (member_end > 0);
    return 0;
}

int wharf_container_read_totals(const struct wharf_container_source *source,
                                struct wharf_container_totals *ret_totals,
                                struct wharf_container_fault *ret_fault)
{
    struct member first;

    *ret_fault = (struct wharf_container_fault){.result = WHARF_OK};
    *ret_totals = (struct wharf_container_totals){0};
    if (source->nbytes == WHARF_CONTAINER_SIZE_UNKNOWN)
        return -ESPIPE;
    return read_members(source, ret_totals, &first, ret_fault);
}

/* ---- down the index --------------------------------------------------------------------- */

/* The lowest level whose subtree holds n_chunks: that of the root. */
static uint32_t root_level(uint64_t n_chunks)
{
    uint32_t level = 0;

    while (wharf_container_index_span(level) < n_chunks)
        level++;
    return level;
}

/* How many entries the node that `at` points to must have. */
static uint64_t n_entries_of(const struct member *member, const struct pointer *at)
{
    uint64_t left = member->n_chunks - at->sequence;
    uint64_t child_span = wharf_container_index_span(at->level - 1);
    uint64_t n_entries = (left - 1) / child_span + 1;

    return n_entries < WHARF_CONTAINER_FANOUT ? n_entries : WHARF_CONTAINER_FANOUT;
}

/* Whether a frame of nbytes can stand where `at` says. */
static int is_pointer_possible(const struct pointer *at, uint64_t nbytes)
{
    return at->frame_offset % WHARF_CONTAINER_ALIGN == 0 &&
           at->frame_offset >= WHARF_CONTAINER_FILE_HEADER_NBYTES &&
           at->frame_offset <= at->frame_end && nbytes <= at->frame_end - at->frame_offset;
}

static int is_node_right(const struct node *node, const struct pointer *at, uint64_t n_entries)
{
    const struct wharf_container_frame_header *header = &node->header;
    uint32_t nbytes = (uint32_t)(n_entries * sizeof(node->entries[0]));

    return wharf_container_check_frame(header).result == WHARF_OK &&
           header->marker == WHARF_CONTAINER_MARKER_INDEX && header->codec_or_level == at->level &&
           header->sequence == at->sequence && header->raw_offset == at->raw_offset &&
           header->payload_nbytes == nbytes &&
           header->content_crc == wharf_crc32(0, node->entries, nbytes);
}

/* The last entry that begins at or before raw_offset; or -1 if the entries are not in order. */
static int find_entry(const struct node *node, uint64_t n_entries, uint64_t raw_offset)
{
    int found = 0;

    if (node->entries[0].raw_offset != node->header.raw_offset)
        return -1;
    for (uint64_t i = 1; i < n_entries; i++) {
        if (node->entries[i].raw_offset <= node->entries[i - 1].raw_offset ||
            node->entries[i].frame_offset <= node->entries[i - 1].frame_offset)
            return -1;
        if (node->entries[i].raw_offset <= raw_offset)
            found = (int)i;
    }
    return found;
}

/* Reads the node at *at and moves *at to the child that holds raw_offset. */
static int descend(const struct wharf_container_source *source, const struct member *member,
                   uint64_t raw_offset, struct pointer *at, struct wharf_container_fault *fault)
{
    struct node node;
    uint64_t n_entries = n_entries_of(member, at);
    size_t nbytes = sizeof(node.header) + n_entries * sizeof(node.entries[0]);
    uint64_t file_offset = member->offset + at->frame_offset;
    int i;
    int rc;

    if (!is_pointer_possible(at, nbytes))
        return set_fault(fault, WHARF_REASON_CONTAINER_INDEX, file_offset);
    rc = read_whole(source, file_offset, &node, nbytes, fault);
    if (rc < 0 || fault->result != WHARF_OK)
        return rc;
    if (!is_node_right(&node, at, n_entries))
        return set_fault(fault, WHARF_REASON_CONTAINER_INDEX, file_offset);
    i = find_entry(&node, n_entries, raw_offset);
    if (i < 0)
        return set_fault(fault, WHARF_REASON_CONTAINER_INDEX, file_offset);
    at->level--;
    at->frame_end = at->frame_offset; /* children stand before their node */
    at->frame_offset = node.entries[i].frame_offset;
    at->raw_offset = node.entries[i].raw_offset;
    at->sequence += (uint64_t)i * wharf_container_index_span(at->level);
    return 0;
}

/* Finds the chunk that holds the member's output byte raw_offset. */
static int find_chunk(const struct wharf_container_source *source, const struct member *member,
                      uint64_t raw_offset, struct pointer *ret_at,
                      struct wharf_container_frame_header *ret_header,
                      struct wharf_container_fault *fault)
{
    uint64_t file_offset;
    int rc;

    *ret_at = (struct pointer){
        .frame_offset = member->root_offset,
        .frame_end = member->nbytes - WHARF_CONTAINER_FRAME_HEADER_NBYTES,
        .level = root_level(member->n_chunks),
    };
    while (ret_at->level > 0) {
        rc = descend(source, member, raw_offset, ret_at, fault);
        if (rc < 0 || fault->result != WHARF_OK)
            return rc;
    }
    file_offset = member->offset + ret_at->frame_offset;
    if (!is_pointer_possible(ret_at, sizeof(*ret_header)))
        return set_fault(fault, WHARF_REASON_CONTAINER_INDEX, file_offset);
    rc = read_whole(source, file_offset, ret_header, sizeof(*ret_header), fault);
    if (rc < 0 || fault->result != WHARF_OK)
        return rc;
    if (wharf_container_check_frame(ret_header).result != WHARF_OK ||
        ret_header->marker != WHARF_CONTAINER_MARKER_CHUNK ||
        ret_header->sequence != ret_at->sequence || ret_header->raw_offset != ret_at->raw_offset ||
        ret_header->raw_nbytes <= raw_offset - ret_at->raw_offset)
        set_fault(fault, WHARF_REASON_CONTAINER_INDEX, file_offset);
    return 0;
}

/* ---- seeking ---------------------------------------------------------------------------- */

/* Makes the reader one that has read the member up to the chunk at `at`. */
static void enter_at(struct wharf_container_reader *reader, const struct member *member,
                     const struct wharf_container_totals *before, const struct pointer *at,
                     const struct wharf_container_frame_header *header)
{
    int is_total_known = member->header.flags & WHARF_CONTAINER_FLAG_TOTAL_KNOWN;

    *reader = (struct wharf_container_reader){
        .source = reader->source,
        .state = WHARF_CONTAINER_READER_IN_MEMBER,
        .offset = member->offset + at->frame_offset,
        .chunk_max_nbytes = member->header.chunk_max_nbytes,
        .n_members = before->n_members + 1,
        .member_total = is_total_known ? member->header.total_nbytes : WHARF_CONTAINER_SIZE_UNKNOWN,
        .member_offset = member->offset,
        .member_out_offset = before->raw_nbytes,
        .member_chunk = before->n_chunks,
        .sequence = at->sequence,
        .raw_offset = at->raw_offset,
        .previous_crc = header->previous_crc,
        .is_index_known = 0,
    };
}

/* Takes a member off the totals of all up to it: what is left is what stands before it.  Fails if
 * it is not what it was when it was added. */
static int take_off(struct wharf_container_totals *totals, const struct member *member)
{
    if (totals->n_members == 0 || totals->n_chunks < member->n_chunks ||
        totals->raw_nbytes < member->raw_nbytes)
        return 0;
    totals->n_members--;
    totals->n_chunks -= member->n_chunks;
    totals->raw_nbytes -= member->raw_nbytes;
    return 1;
}

/* Finds the member that holds the file's output byte out_offset, which is less than all of it:
 * *before are all members' totals, and become those of the members before it. */
static int find_member(const struct wharf_container_source *source, uint64_t out_offset,
                       struct wharf_container_totals *before, struct member *ret_member,
                       struct wharf_container_fault *fault)
{
    uint64_t member_end = source->nbytes;

    do {
        int rc = read_member(source, member_end, ret_member, fault);
        if (rc < 0 || fault->result != WHARF_OK)
            return rc;
        if (!take_off(before, ret_member))
            return set_fault(fault, WHARF_REASON_CONTAINER_INDEX, ret_member->offset);
        member_end = ret_member->offset;
    } while (out_offset < before->raw_nbytes);
    return 0;
}

static void enter_end(struct wharf_container_reader *reader)
{
    reader->state = WHARF_CONTAINER_READER_DONE;
    reader->last = (struct wharf_container_item){.kind = WHARF_CONTAINER_END};
}

static int seek_by_index(struct wharf_container_reader *reader, uint64_t out_offset,
                         struct wharf_container_fault *fault)
{
    const struct wharf_container_source *source = &reader->source;
    struct wharf_container_frame_header header;
    struct wharf_container_totals before;
    struct member member;
    struct pointer at;
    int rc = read_members(source, &before, &member, fault);

    if (rc < 0 || fault->result != WHARF_OK)
        return rc;
    if (out_offset >= before.raw_nbytes) {
        enter_end(reader);
        return 0;
    }
    rc = find_member(source, out_offset, &before, &member, fault);
    if (rc < 0 || fault->result != WHARF_OK)
        return rc;
    rc = find_chunk(source, &member, out_offset - before.raw_nbytes, &at, &header, fault);
    if (rc < 0 || fault->result != WHARF_OK)
        return rc;
    enter_at(reader, &member, &before, &at, &header);
    return 0;
}

int wharf_container_seek(struct wharf_container_reader *reader, uint64_t out_offset,
                         struct wharf_container_fault *ret_index_fault)
{
    struct wharf_container_source source = reader->source;
    struct wharf_container_fault fault = {.result = WHARF_OK};

    if (source.nbytes == WHARF_CONTAINER_SIZE_UNKNOWN) {
        reader->skip_until = out_offset;
    } else {
        int rc = seek_by_index(reader, out_offset, &fault);
        if (rc < 0)
            return rc;
        if (fault.result != WHARF_OK) {
            wharf_container_reader_init(reader, &source);
            reader->skip_until = out_offset;
        }
    }
    if (ret_index_fault)
        *ret_index_fault = fault;
    return 0;
}
