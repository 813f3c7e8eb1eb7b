/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf_result.h: what can become of a job: results and reasons, the outcome of a call that
 * decodes, and the completion of a job that was submitted.
 *
 * One enumeration of results and one of reasons, with pinned values: the same numbers stand in
 * the decoders, the kernels, the ring's completion entries, the control protocol and the public
 * API.  Values are never reused or renumbered; new ones are added at the end of their group.
 * A program must be ready for values that it does not know: newer daemons may send them.
 */
#ifndef WHARF_RESULT_H
#define WHARF_RESULT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a job. */
enum wharf_result {
    /* Every output byte is there and every checksum that the format carries was right. */
    WHARF_OK = 0,
    /* The compressed data breaks its format, or ends too early. */
    WHARF_BAD_DATA = 1,
    /* The data is good as far as it was read, but decodes to more than the destination holds. */
    WHARF_OUTPUT_TOO_SMALL = 2,
    /* The data decoded to fewer bytes than the job promised (WHARF_JOB_EXACT_OUTPUT). */
    WHARF_OUTPUT_SHORT = 3,
    /* Everything decoded, but a checksum or length in the data or in the job does not match. */
    WHARF_BAD_CHECKSUM = 4,
    /* Valid by its format, but uses something that wharf does not support. */
    WHARF_UNSUPPORTED = 5,
    /* The client cancelled the job. */
    WHARF_CANCELLED = 6,
    /* The job's deadline passed before it was finished. */
    WHARF_DEADLINE = 7,
    /* The client's quota does not allow the job. */
    WHARF_QUOTA = 8,
    /* There was not enough (pinned, device or host) memory for the job. */
    WHARF_NO_MEMORY = 9,
    /* The GPU worker died while it ran this job alone; or, for jobs in clients' GPU memory, the
     * user is banned from the GPU for some time, or no worker gets ready. */
    WHARF_DEVICE_FAULT = 10,
    /* A fault of wharf's own; please report it. */
    WHARF_INTERNAL = 11,
    /* The job itself makes no sense: an unknown codec, flag or region, or a bad range. */
    WHARF_BAD_REQUEST = 12,
    /* A file that the job names could not be read or written. */
    WHARF_FILE_ERROR = 13,
};

/*
 * Why a job did not end with WHARF_OK.  Each value names its result and, for errors in data, the
 * position in `bit_offset`.  CODEC_format.h, in the folder `formats` of wharf's documentation,
 * defines the exact positions, and which of several errors counts.
 */
enum wharf_reason {
    WHARF_REASON_NONE = 0,

    /* Any format. */
    WHARF_REASON_INPUT_TRUNCATED = 1, /* BAD_DATA: the symbol or field that the input cuts off */
    WHARF_REASON_OUTPUT_FULL = 2,     /* OUTPUT_TOO_SMALL: the symbol that no longer fits; BAD_DATA
                                         where a container says how much its chunk holds */
    WHARF_REASON_OUTPUT_MISSING = 3,  /* OUTPUT_SHORT: the end of the stream */
    WHARF_REASON_INPUT_LEFT = 4,      /* BAD_DATA: the first bit after the end of the stream, where
                                         the job says that nothing follows it */
    WHARF_REASON_JOB_CHECKSUM = 5,    /* BAD_CHECKSUM: the end of the stream; the checksum that
                                         the job (or the container) gave is not that of the output */
    WHARF_REASON_STEP_BUDGET = 6,     /* INTERNAL: where a GPU's decoder stood when it had made more
                                         steps than any data can ask for */
    WHARF_REASON_NOT_ENCODABLE = 8,   /* BAD_DATA: the first bit; no stream of the codec, as the
                                         encoder writes it, gives the source of a job that
                                         compresses: it is no whole number of units or larger than
                                         a stream can hold, or a value is none of the parameter's */

    /* Deflate, RFC 1951: all BAD_DATA.  For errors in a block's header, the header's first bit
     * (BFINAL); for errors in a block's body, the first bit of the symbol, which is a literal or
     * a whole match (length, extra bits, distance, extra bits). */
    WHARF_REASON_DEFLATE_BLOCK_TYPE = 16,      /* reserved block type 3 */
    WHARF_REASON_DEFLATE_STORED_LENGTH = 17,   /* LEN and NLEN are not complements */
    WHARF_REASON_DEFLATE_CODE_COUNT = 18,      /* more than 286 litlen or 30 distance codes */
    WHARF_REASON_DEFLATE_PRECODE = 19,         /* code length code over-subscribed or incomplete */
    WHARF_REASON_DEFLATE_LENGTH_REPEAT = 20,   /* repeat of no length, or past the last length */
    WHARF_REASON_DEFLATE_NO_END = 21,          /* the end-of-block symbol has no code */
    WHARF_REASON_DEFLATE_LITLEN_CODE = 22,     /* litlen code over-subscribed or incomplete */
    WHARF_REASON_DEFLATE_DISTANCE_CODE = 23,   /* distance code over-subscribed or incomplete */
    WHARF_REASON_DEFLATE_LITLEN_SYMBOL = 24,   /* bits that are no litlen symbol's, or 286 or 287 */
    WHARF_REASON_DEFLATE_DISTANCE_SYMBOL = 25, /* bits that are no distance symbol's, or 30 or 31 */
    WHARF_REASON_DEFLATE_DISTANCE_TOO_FAR = 26, /* a match from before the first output byte */

    /* zlib, RFC 1950.  The header's errors stand at the stream's first bit. */
    WHARF_REASON_ZLIB_HEADER = 32,     /* BAD_DATA: header check bits wrong */
    WHARF_REASON_ZLIB_METHOD = 33,     /* BAD_DATA: compression method is not 8 */
    WHARF_REASON_ZLIB_WINDOW = 34,     /* BAD_DATA: window size over 32 KiB */
    WHARF_REASON_ZLIB_DICTIONARY = 35, /* UNSUPPORTED: needs a preset dictionary */
    WHARF_REASON_ZLIB_CHECKSUM = 36,   /* BAD_CHECKSUM: Adler-32; the trailer's first bit */

    /* gzip, RFC 1952.  The header's errors stand at the member's first bit. */
    WHARF_REASON_GZIP_MAGIC = 48,      /* BAD_DATA: does not begin with 1f 8b */
    WHARF_REASON_GZIP_METHOD = 49,     /* BAD_DATA: compression method is not 8 */
    WHARF_REASON_GZIP_FLAGS = 50,      /* BAD_DATA: reserved flags set */
    WHARF_REASON_GZIP_HEADER_CRC = 51, /* BAD_DATA: CRC-16 of the header wrong */
    WHARF_REASON_GZIP_CHECKSUM = 52,   /* BAD_CHECKSUM: CRC-32; the trailer's first bit */
    WHARF_REASON_GZIP_LENGTH = 53,     /* BAD_CHECKSUM: ISIZE; the trailer's first bit */

    /* wharf containers, FORMAT.md. */
    WHARF_REASON_CONTAINER_MAGIC = 64,   /* BAD_DATA: not a wharf container */
    WHARF_REASON_CONTAINER_VERSION = 65, /* UNSUPPORTED: made by a newer version of the format */
    WHARF_REASON_CONTAINER_HEADER = 66,  /* BAD_DATA: file header damaged */
    WHARF_REASON_CONTAINER_CHUNK = 67,   /* BAD_DATA: a chunk's header damaged or out of limits */
    WHARF_REASON_CONTAINER_INDEX = 68,   /* BAD_DATA: index or footer damaged */
    WHARF_REASON_CONTAINER_LIMIT = 69,   /* BAD_DATA: a chunk claims more than its codec can give */
    WHARF_REASON_CONTAINER_TRUNCATED = 70, /* BAD_DATA: the file ends inside a chunk or the index */
    WHARF_REASON_CONTAINER_CODEC = 71,     /* UNSUPPORTED: a chunk's codec is not known here */

    /* rle1, rle2, byterle, boolrle, the ORC specification.  All that is wrong with a run or a group
     * of literals stands at its first bit. */
    WHARF_REASON_RLE_VARINT = 80,  /* BAD_DATA: a number of more than 64 bits */
    WHARF_REASON_RLE_VALUE = 81,   /* BAD_DATA: a value that the job's type cannot hold */
    WHARF_REASON_RLE_PATCHES = 82, /* BAD_DATA: a patch list that is empty, has entries wider than
                                      64 bits, or patches something outside its run or twice */

    /* rans, rans_format.h: BAD_DATA but where it says otherwise. */
    WHARF_REASON_RANS_VERSION = 90,    /* UNSUPPORTED: made by a newer version of the format */
    WHARF_REASON_RANS_HEADER = 91,     /* a size that cannot be, or that contradicts another */
    WHARF_REASON_RANS_MODEL = 92,      /* frequencies that are no distribution */
    WHARF_REASON_RANS_SYMBOL = 93,     /* a slot that is no symbol's */
    WHARF_REASON_RANS_SPLIT = 94,      /* a split that is not what is found at its place */
    WHARF_REASON_RANS_STATE = 95,      /* a coder's first or last state is impossible */
    WHARF_REASON_RANS_WORDS_LEFT = 96, /* words are left after the last symbol */

    /* LZ4 blocks: both BAD_DATA, at the sequence's token. */
    WHARF_REASON_LZ4_OFFSET = 100, /* a match from before the first output byte, or 0 bytes back */
    WHARF_REASON_LZ4_END = 101,    /* the block ends too soon after its last match */

    /* Snappy, raw: all BAD_DATA; but for the length, at the element's tag. */
    WHARF_REASON_SNAPPY_LENGTH = 104,   /* the length of the output has more than 32 bits */
    WHARF_REASON_SNAPPY_OFFSET = 105,   /* as LZ4_OFFSET */
    WHARF_REASON_SNAPPY_PAST_END = 106, /* more output than the length says */

    /* Codecs of lines (LINES.md): BAD_DATA but where it says otherwise. */
    WHARF_REASON_LINE_VERSION = 110, /* UNSUPPORTED: made by a newer version of the format */
    WHARF_REASON_LINE_HEADER = 111,  /* a member of the header that cannot be */
    WHARF_REASON_LINE_PALETTE = 112, /* a group's palette has codes of a wrong width */
    WHARF_REASON_LINE_OFFSET = 113,  /* a group does not begin where the one before it ends */
    WHARF_REASON_LINE_CODE = 114,    /* a line's code in the index is none */
    WHARF_REASON_LINE_CONTENT = 115, /* a line says other sizes than the index */

    /* The request. */
    WHARF_REASON_REQUEST_CODEC = 128, /* BAD_REQUEST: no such codec */
    WHARF_REASON_REQUEST_FLAGS = 129, /* BAD_REQUEST: unknown flag bits */
    WHARF_REASON_REQUEST_RANGE = 130, /* BAD_REQUEST: source or destination reach outside their
                                         region, or around the end of the address space */
    /* The same, through a daemon's ring; CLASS and PARAMETER on an embedded handle too. */
    WHARF_REASON_REQUEST_OPCODE = 131,    /* BAD_REQUEST: no such operation */
    WHARF_REASON_REQUEST_CLASS = 132,     /* BAD_REQUEST: no such class */
    WHARF_REASON_REQUEST_PARAMETER = 133, /* BAD_REQUEST: not a parameter of this codec */
    WHARF_REASON_REQUEST_RESERVED = 134,  /* BAD_REQUEST: a member that has to be 0 is not */
    WHARF_REASON_REQUEST_REGION = 135,    /* BAD_REQUEST: no such region, read-only, or GPU memory
                                             where that cannot be, or of two GPUs */
    WHARF_REASON_REQUEST_BATCH = 136,     /* BAD_REQUEST: no or too many chunks, or its table or
                                             results have another size */
    WHARF_REASON_REQUEST_NO_JOB = 137,    /* BAD_REQUEST: no job in flight to cancel */
    WHARF_REASON_REQUEST_NULL = 138,      /* BAD_REQUEST: a source or destination at NULL whose
                                             size is not 0; in process only */
    WHARF_REASON_REQUEST_OVERLAP = 139,   /* BAD_REQUEST: source and destination share bytes */
    WHARF_REASON_REQUEST_SIZE = 140,      /* BAD_REQUEST: larger than an object can be, or than
                                             the daemon or its GPU takes in one job */
    WHARF_REASON_REQUEST_ENCODER = 142,   /* BAD_REQUEST: not an encoder of this codec, or not a
                                             level of it */
    WHARF_REASON_REQUEST_WORD = 143,      /* BAD_REQUEST: a done word or a start word that is at no
                                             place for one */

    /* Limits of a daemon's for jobs that nothing but its GPU may run: QUOTA but for the last. */
    WHARF_REASON_GPU_LARGE = 144,      /* source and destination are more than it takes at once */
    WHARF_REASON_GPU_LARGE_TIME = 145, /* the GPU had the chunk for as long as it may */
    /* BAD_REQUEST, or UNSUPPORTED for GPU memory: the GPU has no decoder for the codec. */
    WHARF_REASON_GPU_CODEC = 146,

    /* CANCELLED: no daemon could be had, so the job's done word was set without waiting longer. */
    WHARF_REASON_DAEMON_LOST = 147,
    /* DEADLINE: the job's start word was not set in time. */
    WHARF_REASON_START_TIME = 148,

    /* Chains, whose sources are outputs of other jobs, the parts.  bit_offset is the number of the
     * first part of which it is true, counted from 0. */
    WHARF_REASON_CHAIN_PART = 152, /* with the part's result: the part did not end with OK */
    WHARF_REASON_CHAIN_GAP = 153,  /* OUTPUT_SHORT: a part before the last did not fill its place */
    WHARF_REASON_CHAIN_PLACE = 154, /* BAD_REQUEST: there is no such part, it is larger than its
                                       place, or that is not where the part before it ends */

    /* zstd, RFC 8878: BAD_DATA but where it says otherwise.  Each stands at the first bit of the
     * header, the stream or the section that holds it. */
    WHARF_REASON_ZSTD_MAGIC = 160,      /* no frame begins here */
    WHARF_REASON_ZSTD_VERSION = 161,    /* UNSUPPORTED: a format from before zstd 0.8 */
    WHARF_REASON_ZSTD_RESERVED = 162,   /* UNSUPPORTED: a reserved bit of the frame header is set */
    WHARF_REASON_ZSTD_WINDOW = 163,     /* UNSUPPORTED: a window of more than 128 MiB */
    WHARF_REASON_ZSTD_DICTIONARY = 164, /* UNSUPPORTED: needs a dictionary that is not there */
    WHARF_REASON_ZSTD_BLOCK = 165,      /* a block's type or size cannot be */
    WHARF_REASON_ZSTD_BLOCK_SIZE = 166, /* more output than a block may have */
    WHARF_REASON_ZSTD_CONTENT_SIZE = 167, /* the output is not as long as the frame header says */
    WHARF_REASON_ZSTD_LITERALS = 168,     /* a literals section's header cannot be */
    WHARF_REASON_ZSTD_TREE = 169,         /* no Huffman code, or none to go on with */
    WHARF_REASON_ZSTD_STREAMS = 170,      /* a stream of literals is not as long as its literals */
    WHARF_REASON_ZSTD_SEQUENCES_HEADER = 171,  /* a sequences section's header cannot be */
    WHARF_REASON_ZSTD_TABLE = 172,             /* no FSE table, or none to go on with */
    WHARF_REASON_ZSTD_SEQUENCES = 173,         /* bits of sequences are missing or left */
    WHARF_REASON_ZSTD_SEQUENCE_LITERALS = 174, /* more literals than the section has */
    WHARF_REASON_ZSTD_OFFSET = 175,     /* a match from 0 bytes back, or beyond frame or window */
    WHARF_REASON_ZSTD_CHECKSUM = 176,   /* BAD_CHECKSUM: XXH64 of the frame's output */
    WHARF_REASON_ZSTD_SEEK_TABLE = 177, /* the seek table is wrong about this frame */

    /* Blosc, blosc_format.h: BAD_DATA but where it says otherwise. */
    WHARF_REASON_BLOSC_VERSION = 180,   /* UNSUPPORTED: of neither Blosc 1 nor a known Blosc 2 */
    WHARF_REASON_BLOSC_HEADER = 181,    /* sizes in the header that cannot be */
    WHARF_REASON_BLOSC_FLAGS = 182,     /* UNSUPPORTED: lazy, instrumented, unknown flags */
    WHARF_REASON_BLOSC_FILTER = 183,    /* UNSUPPORTED: a filter that is none of Blosc's own */
    WHARF_REASON_BLOSC_CODEC = 184,     /* UNSUPPORTED: so is the codec inside */
    WHARF_REASON_BLOSC_START = 186,     /* a block that begins outside the chunk's streams */
    WHARF_REASON_BLOSC_STREAM = 187,    /* a stream's size that cannot be, or is not its output's */
    WHARF_REASON_BLOSC_OVERLAP = 188,   /* streams that share bytes */
    WHARF_REASON_BLOSC_LZ_OFFSET = 189, /* blosclz: as LZ4_OFFSET, at the element's first byte */

    /* Files of LZ4 frames, lz4_frame_format.h: BAD_DATA but where it says otherwise. */
    WHARF_REASON_LZ4_FRAME_MAGIC = 192,      /* no frame begins here */
    WHARF_REASON_LZ4_FRAME_VERSION = 193,    /* UNSUPPORTED: another version of the format */
    WHARF_REASON_LZ4_FRAME_HEADER = 194,     /* the header's checksum is wrong */
    WHARF_REASON_LZ4_FRAME_RESERVED = 195,   /* UNSUPPORTED: reserved bits or sizes in the header */
    WHARF_REASON_LZ4_FRAME_DICTIONARY = 196, /* UNSUPPORTED: needs a dictionary */
    WHARF_REASON_LZ4_FRAME_BLOCK_SIZE = 197, /* a block that is larger than the frame's may be */
    WHARF_REASON_LZ4_FRAME_BLOCK_CHECKSUM = 198, /* BAD_CHECKSUM: XXH32 of a block's bytes */
    WHARF_REASON_LZ4_FRAME_CONTENT_SIZE = 199,   /* the output is not as long as the header says */
    WHARF_REASON_LZ4_FRAME_CHECKSUM = 200,       /* BAD_CHECKSUM: XXH32 of the frame's output */

    /* Files of framed Snappy, snappy_frame_format.h: BAD_DATA but where it says otherwise. */
    WHARF_REASON_SNAPPY_FRAME_IDENTIFIER = 208, /* the stream identifier is missing or damaged */
    WHARF_REASON_SNAPPY_FRAME_CHUNK_SIZE = 209, /* a chunk of a size that its type cannot have */
    WHARF_REASON_SNAPPY_FRAME_RESERVED = 210,   /* UNSUPPORTED: a chunk of a reserved type */
    WHARF_REASON_SNAPPY_FRAME_CHECKSUM = 211,   /* BAD_CHECKSUM: CRC-32C of a chunk's output */

    /* Files of Brotli, RFC 7932. */
    WHARF_REASON_BROTLI_STREAM = 216, /* BAD_DATA: the byte up to which libbrotlidec had read */

    /* Files, all FILE_ERROR.  bit_offset is eight times the bytes of the source that could be read,
     * or of the output that were written, before. */
    WHARF_REASON_FILE_SHORT = 224,     /* the file ends inside the source */
    WHARF_REASON_FILE_TIME = 225,      /* reading took longer than the daemon's file_timeout */
    WHARF_REASON_FILE_ABANDONED = 226, /* nobody knows what became of writing: the destination may
                                          still change, and the job is not run again */
    WHARF_REASON_FILE_READ = 4096,     /* from here on reading failed: the errno value is added */
    WHARF_REASON_FILE_WRITE = 8192,    /* from here on writing failed, likewise */
};

/* Errno values that are added to a reason are below. */
#define WHARF_REASON_N_ERRNO 4096u

/* The errno value of a FILE_READ or FILE_WRITE, as on Linux for x86-64; 0 for all other reasons. */
static inline int wharf_reason_errno(uint32_t reason)
{
    return reason >= WHARF_REASON_FILE_READ &&
                   reason < WHARF_REASON_FILE_WRITE + WHARF_REASON_N_ERRNO
               ? (int)(reason % WHARF_REASON_N_ERRNO)
               : 0;
}

/*
 * The outcome of a job.  Every engine gives the same outcome for the same stream.  For a job that
 * compresses, in_nbytes is the source's size, out_nbytes the stream's, and bit_offset is 0.
 */
struct wharf_outcome {
    uint32_t result;     /* enum wharf_result */
    uint32_t reason;     /* enum wharf_reason; NONE when the result is OK */
    uint64_t bit_offset; /* position of the error, counted from the source's first byte, least
                            significant bit first; 0 if the result is OK */
    uint64_t in_nbytes;  /* source bytes that the stream took, trailer included; 0 on failure */
    uint64_t out_nbytes; /* bytes written to the destination; 0 on failure */
};

/*
 * The result of one chunk of a batch: as in struct wharf_outcome, with sizes of 32 bits.  In
 * shared memory, so its layout is fixed.
 */
struct wharf_chunk_result {
    uint64_t bit_offset;
    uint32_t in_nbytes;
    uint32_t out_nbytes;
    uint16_t result; /* enum wharf_result */
    uint16_t reason; /* enum wharf_reason */
    uint8_t engine;  /* enum wharf_engine */
    uint8_t attempt;
    uint16_t reserved; /* 0 */
};

enum wharf_completion_flag {
    /* The batch ran, and its table of results, if it has one, is filled. */
    WHARF_COMPLETION_RESULTS = 1 << 0,
};

/*
 * The completion of a submitted job: its outcome, the job's number, and its timing.  In shared
 * memory, so its layout is fixed.
 *
 * A batch in which every chunk is OK has result OK and the sums of in_nbytes and
 * out_nbytes.  Otherwise it has the result, reason and bit_offset of its bad chunk with the
 * lowest index, and in_nbytes and out_nbytes 0; the other chunks' results are in the table.
 */
struct wharf_completion {
    uint64_t user_data;
    uint16_t result; /* enum wharf_result */
    uint16_t reason; /* enum wharf_reason */
    uint8_t engine;  /* enum wharf_engine that ran it (of a batch, its first bad chunk or else its
                        last one); AUTO if none ran it */
    uint8_t attempt; /* how often it was begun anew because an engine died; 255 is `or more` */
    uint16_t flags;  /* enum wharf_completion_flag */
    uint64_t bit_offset;
    uint64_t in_nbytes;
    uint64_t out_nbytes;
    uint64_t queue_ns;        /* from its acceptance by the daemon until an engine started it */
    uint64_t run_ns;          /* from then until its output was in place */
    uint32_t first_bad_chunk; /* of a batch that is not OK; otherwise 0 */
    uint32_t reserved;        /* 0 */
};

/*
 * A done word with its record: the result of a job, for CUDA streams and kernels, which cannot take
 * completions.  `word` is written last, by one store at system scope: a reader that finds the job's
 * serial number there also finds the other members and the job's output.  It is
 *
 *     serial << 32 | reason << 16 | result
 *
 * As soon as the job has ended it is at least serial << 32, by the comparison of signed differences
 * that cuStreamWaitValue64 makes with CU_STREAM_WAIT_VALUE_GEQ.  The record lies in shared memory,
 * at a multiple of 64 bytes, and its layout is fixed.  The other members are as in struct
 * wharf_completion.
 */
struct wharf_done {
    uint64_t word;
    uint64_t bit_offset;
    uint64_t in_nbytes;
    uint64_t out_nbytes;
    uint32_t first_bad_chunk;
    uint16_t flags; /* enum wharf_completion_flag */
    uint8_t engine;
    uint8_t attempt;
    uint64_t reserved_1; /* these are not written */
    uint64_t reserved_2;
    uint64_t reserved_3;
};

/* The least value of a done word with that serial number. */
#define WHARF_DONE_VALUE(serial) ((uint64_t)(uint32_t)(serial) << 32)
/* The value of a start word with that serial number; the stream stores it. */
#define WHARF_START_VALUE(serial) WHARF_DONE_VALUE(serial)
/* The parts of a done word. */
#define WHARF_DONE_SERIAL(word) ((uint32_t)((uint64_t)(word) >> 32))
#define WHARF_DONE_REASON(word) ((uint32_t)((uint64_t)(word) >> 16 & 0xffff))
#define WHARF_DONE_RESULT(word) ((uint32_t)((uint64_t)(word)&0xffff))

/*
 * wharf_result_string, wharf_reason_string: a short English phrase ("bad data", "distance
 * reaches before the start of the output") for messages.  Never NULL: unknown values give
 * "unknown result" and "unknown reason".  The string is static.  Safe from any thread.
 */
const char *wharf_result_string(uint32_t result);
const char *wharf_reason_string(uint32_t reason);

/*
 * wharf_result_name, wharf_reason_name: the value's name in lower case without its prefix
 * ("bad_data", "deflate_distance_too_far"), for machine-readable reports.  As above otherwise;
 * unknown values give "unknown".
 */
const char *wharf_result_name(uint32_t result);
const char *wharf_reason_name(uint32_t reason);

#ifdef __cplusplus
}
#endif

#endif
