/* SPDX-License-Identifier: Apache-2.0 */
/* What Packer makes: one gzip member, BGZF, zstd with a seek table, a wharf container. */
#include "clientlib/python/src/pywharf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/python/src/pywharf_pack.h"
#include "encoders/checksum.h"
#include "encoders/crc32_join.h"
#include "encoders/deflate/deflate_encode.h"
#include "encoders/gzip/bgzf_write.h"
#include "encoders/zstd/zstd_encode.h"

/* ---- gzip ---------------------------------------------------------------------------------- */

static int make_gzip_tool(const struct pywharf_pack *pack, struct pywharf_pack_tool *tool)
{
    return wharf_gzip_parts_new(pack->level, &tool->parts);
}

static size_t gzip_bound(const struct pywharf_pack *pack, const struct pywharf_pack_tool *tool)
{
    return wharf_gzip_parts_bound(tool->parts, pack->piece_nbytes);
}

static int begin_gzip(struct pywharf_pack *pack)
{
    uint8_t header[WHARF_GZIP_FIXED_HEADER_NBYTES];

    pack->crc = WHARF_CRC32_INIT;
    wharf_gzip_write_header(pack->level, header);
    return pywharf_pack_put(&pack->out, header, sizeof(header));
}

static int pack_gzip(const struct pywharf_pack *pack, const struct pywharf_pack_tool *tool,
                     struct pywharf_pack_piece *piece)
{
    piece->crc = wharf_crc32(WHARF_CRC32_INIT, piece->raw, piece->raw_nbytes);
    return wharf_gzip_parts_encode(tool->parts, piece->raw, piece->raw_nbytes, piece->window_nbytes,
                                   piece->is_last, piece->out, pack->out_avail, &piece->out_nbytes);
}

static int put_gzip(struct pywharf_pack *pack, const struct pywharf_pack_piece *piece)
{
    pack->crc = wharf_crc32_join(pack->crc, piece->crc, piece->raw_nbytes);
    return pywharf_pack_put(&pack->out, piece->out, piece->out_nbytes);
}

static int end_gzip(struct pywharf_pack *pack)
{
    uint8_t trailer[WHARF_GZIP_TRAILER_NBYTES];

    wharf_gzip_write_trailer(pack->crc, pack->n_packed, trailer);
    return pywharf_pack_put(&pack->out, trailer, sizeof(trailer));
}

/* ---- those of chunks ----------------------------------------------------------------------- */

static struct wharf_encoder_options options_of(const struct pywharf_pack *pack)
{
    return (struct wharf_encoder_options){.level = pack->level};
}

static int begin_nothing(struct pywharf_pack *pack)
{
    (void)pack;
    return 0;
}

static int put_bytes(struct pywharf_pack *pack, const struct pywharf_pack_piece *piece)
{
    return pywharf_pack_put(&pack->out, piece->out, piece->out_nbytes);
}

static int make_bgzf_tool(const struct pywharf_pack *pack, struct pywharf_pack_tool *tool)
{
    struct wharf_encoder_options options = options_of(pack);

    return wharf_deflate_encoder.new(&options, &tool->encoder);
}

static size_t bgzf_bound(const struct pywharf_pack *pack, const struct pywharf_pack_tool *tool)
{
    (void)pack, (void)tool;
    return WHARF_BGZF_MAX_NBYTES;
}

static int pack_bgzf(const struct pywharf_pack *pack, const struct pywharf_pack_tool *tool,
                     struct pywharf_pack_piece *piece)
{
    (void)pack;
    return wharf_bgzf_pack(tool->encoder, piece->raw, piece->raw_nbytes, piece->out,
                           &piece->out_nbytes);
}

static int end_bgzf(struct pywharf_pack *pack)
{
    return pywharf_pack_put(&pack->out, wharf_bgzf_marker, WHARF_BGZF_MARKER_NBYTES);
}

/* ---- zstd ---------------------------------------------------------------------------------- */

static int make_zstd_tool(const struct pywharf_pack *pack, struct pywharf_pack_tool *tool)
{
    struct wharf_encoder_options options = options_of(pack);
    int r = pack->ops->encoder->new (&options, &tool->encoder);

    if (r == 0)
        wharf_zstd_encode_checksums(tool->encoder);
    return r;
}

static size_t chunk_bound(const struct pywharf_pack *pack, const struct pywharf_pack_tool *tool)
{
    return pack->ops->encoder->bound(tool->encoder, pack->piece_nbytes);
}

static int pack_zstd(const struct pywharf_pack *pack, const struct pywharf_pack_tool *tool,
                     struct pywharf_pack_piece *piece)
{
    return pack->ops->encoder->encode(tool->encoder, piece->raw, piece->raw_nbytes, piece->out,
                                      pack->out_avail, &piece->out_nbytes);
}

static int put_zstd(struct pywharf_pack *pack, const struct pywharf_pack_piece *piece)
{
    if (pack->n_entries == pack->entries_avail) {
        size_t avail = 2 * pack->entries_avail + 64;
        struct wharf_zstd_seek_entry *entries =
            realloc(pack->entries, avail * sizeof(*pack->entries));

        if (!entries)
            return -ENOMEM;
        pack->entries = entries;
        pack->entries_avail = avail;
    }
    pack->entries[pack->n_entries++] =
        (struct wharf_zstd_seek_entry){(uint32_t)piece->out_nbytes, (uint32_t)piece->raw_nbytes};
    return put_bytes(pack, piece);
}

/* Of more frames than a table may have there is none. */
static int end_zstd(struct pywharf_pack *pack)
{
    uint8_t header[WHARF_ZSTD_SEEK_HEADER_NBYTES], footer[WHARF_ZSTD_SEEK_FOOTER_NBYTES];
    uint8_t entry[WHARF_ZSTD_SEEK_ENTRY_NBYTES];
    int r;

    if (pack->n_entries > WHARF_ZSTD_SEEK_MAX_FRAMES)
        return 0;
    wharf_zstd_seek_write_header((uint32_t)pack->n_entries, header);
    wharf_zstd_seek_write_footer((uint32_t)pack->n_entries, footer);
    r = pywharf_pack_put(&pack->out, header, sizeof(header));
    for (size_t i = 0; i < pack->n_entries && r == 0; i++) {
        wharf_zstd_seek_write_entry(&pack->entries[i], entry);
        r = pywharf_pack_put(&pack->out, entry, sizeof(entry));
    }
    return r ? r : pywharf_pack_put(&pack->out, footer, sizeof(footer));
}

/* ---- wharf's own --------------------------------------------------------------------------- */

static int make_container_tool(const struct pywharf_pack *pack, struct pywharf_pack_tool *tool)
{
    struct wharf_encoder_options options = options_of(pack);

    return pack->ops->encoder->new (&options, &tool->encoder);
}

/* What becomes no smaller is stored from where it is. */
static size_t container_bound(const struct pywharf_pack *pack, const struct pywharf_pack_tool *tool)
{
    (void)tool;
    return pack->piece_nbytes;
}

static int write_parts(void *context, const struct iovec *parts, int n_parts)
{
    struct pywharf_pack *pack = context;
    int r = 0;

    for (int i = 0; i < n_parts && r == 0; i++)
        r = pywharf_pack_put(&pack->out, parts[i].iov_base, parts[i].iov_len);
    return r;
}

static int begin_container(struct pywharf_pack *pack)
{
    const struct wharf_container_sink sink = {write_parts, pack};

    return wharf_container_writer_init(&pack->writer, &sink, (uint32_t)pack->piece_nbytes,
                                       WHARF_CONTAINER_TOTAL_UNKNOWN);
}

static int pack_container(const struct pywharf_pack *pack, const struct pywharf_pack_tool *tool,
                          struct pywharf_pack_piece *piece)
{
    return wharf_container_pack(pack->codec, 0, tool->encoder, piece->raw,
                                (uint32_t)piece->raw_nbytes, piece->out, &piece->packed);
}

static int put_container(struct pywharf_pack *pack, const struct pywharf_pack_piece *piece)
{
    return wharf_container_put(&pack->writer, &piece->packed);
}

static int end_container(struct pywharf_pack *pack)
{
    return wharf_container_finish(&pack->writer);
}

/* ---- all ----------------------------------------------------------------------------------- */

static const struct pywharf_pack_format formats[] = {
    {
        .name = "gzip",
        .codec = WHARF_CODEC_GZIP,
        .chunk_nbytes = 1 << 20, /* which nobody sees, and cannot be chosen */
        .has_window = true,
        .may_be_empty = true,
        .make_tool = make_gzip_tool,
        .bound = gzip_bound,
        .begin = begin_gzip,
        .pack = pack_gzip,
        .put = put_gzip,
        .end = end_gzip,
    },
    {
        .name = "bgzf",
        .codec = WHARF_CODEC_DEFLATE,
        .chunk_min_nbytes = 1 << 10,
        .chunk_max_nbytes = WHARF_BGZF_PACK_NBYTES,
        .chunk_nbytes = WHARF_BGZF_PACK_NBYTES,
        .make_tool = make_bgzf_tool,
        .bound = bgzf_bound,
        .begin = begin_nothing,
        .pack = pack_bgzf,
        .put = put_bytes,
        .end = end_bgzf,
    },
    {
        .name = "zstd",
        .codec = WHARF_CODEC_ZSTD,
        .chunk_min_nbytes = 1 << 10,
        .chunk_max_nbytes = 64 << 20, /* longer frames are no places to seek to */
        .chunk_nbytes = 1 << 20,
        .may_be_empty = true,
        .make_tool = make_zstd_tool,
        .bound = chunk_bound,
        .begin = begin_nothing,
        .pack = pack_zstd,
        .put = put_zstd,
        .end = end_zstd,
    },
    {
        .name = "wharf",
        .codec = WHARF_CODEC_DEFLATE,
        .chunk_min_nbytes = WHARF_CONTAINER_CHUNK_MIN_NBYTES,
        .chunk_max_nbytes = WHARF_CONTAINER_CHUNK_MAX_NBYTES,
        .chunk_nbytes = WHARF_CONTAINER_CHUNK_DEFAULT_NBYTES,
        .make_tool = make_container_tool,
        .bound = container_bound,
        .begin = begin_container,
        .pack = pack_container,
        .put = put_container,
        .end = end_container,
    },
};

const struct pywharf_pack_format *pywharf_pack_format(const char *name)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}
