/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wharf_result.h"

#include <stddef.h>

struct value_text {
    const char *name;
    const char *string;
};

static const struct value_text result_texts[] = {
    [WHARF_OK] = {"ok", "ok"},
    [WHARF_BAD_DATA] = {"bad_data", "bad data"},
    [WHARF_OUTPUT_TOO_SMALL] = {"output_too_small", "output too small"},
    [WHARF_OUTPUT_SHORT] = {"output_short", "output shorter than promised"},
    [WHARF_BAD_CHECKSUM] = {"bad_checksum", "bad checksum"},
    [WHARF_UNSUPPORTED] = {"unsupported", "unsupported"},
    [WHARF_CANCELLED] = {"cancelled", "cancelled"},
    [WHARF_DEADLINE] = {"deadline", "deadline passed"},
    [WHARF_QUOTA] = {"quota", "over quota"},
    [WHARF_NO_MEMORY] = {"no_memory", "out of memory"},
    [WHARF_DEVICE_FAULT] = {"device_fault", "GPU fault"},
    [WHARF_INTERNAL] = {"internal", "internal error"},
    [WHARF_BAD_REQUEST] = {"bad_request", "bad request"},
    [WHARF_FILE_ERROR] = {"file_error", "error of a file"},
};

static const struct value_text reason_texts[] = {
    [WHARF_REASON_NONE] = {"none", "no reason"},
    [WHARF_REASON_INPUT_TRUNCATED] = {"input_truncated", "the input ends too early"},
    [WHARF_REASON_OUTPUT_FULL] = {"output_full", "more output than there is room for"},
    [WHARF_REASON_OUTPUT_MISSING] = {"output_missing", "the stream ends before the output is full"},
    [WHARF_REASON_INPUT_LEFT] = {"input_left", "bytes follow the end of the stream"},
    [WHARF_REASON_JOB_CHECKSUM] = {"job_checksum", "the output's checksum is not the expected one"},
    [WHARF_REASON_STEP_BUDGET] = {"step_budget",
                                  "the decoder made more steps than data can ask for"},
    [WHARF_REASON_NOT_ENCODABLE] = {"not_encodable", "no stream of the codec holds such data"},
    [WHARF_REASON_DEFLATE_BLOCK_TYPE] = {"deflate_block_type", "reserved block type"},
    [WHARF_REASON_DEFLATE_STORED_LENGTH] = {"deflate_stored_length",
                                            "stored block's length and its complement disagree"},
    [WHARF_REASON_DEFLATE_CODE_COUNT] = {"deflate_code_count", "too many litlen or distance codes"},
    [WHARF_REASON_DEFLATE_PRECODE] = {"deflate_precode", "invalid code length code"},
    [WHARF_REASON_DEFLATE_LENGTH_REPEAT] = {"deflate_length_repeat",
                                            "invalid repeat of a code length"},
    [WHARF_REASON_DEFLATE_NO_END] = {"deflate_no_end", "no code for the end of the block"},
    [WHARF_REASON_DEFLATE_LITLEN_CODE] = {"deflate_litlen_code", "invalid litlen code lengths"},
    [WHARF_REASON_DEFLATE_DISTANCE_CODE] = {"deflate_distance_code",
                                            "invalid distance code lengths"},
    [WHARF_REASON_DEFLATE_LITLEN_SYMBOL] = {"deflate_litlen_symbol", "invalid litlen symbol"},
    [WHARF_REASON_DEFLATE_DISTANCE_SYMBOL] = {"deflate_distance_symbol", "invalid distance symbol"},
    [WHARF_REASON_DEFLATE_DISTANCE_TOO_FAR] = {"deflate_distance_too_far",
                                               "distance reaches before the start of the output"},
    [WHARF_REASON_ZLIB_HEADER] = {"zlib_header", "zlib header check failed"},
    [WHARF_REASON_ZLIB_METHOD] = {"zlib_method", "unknown zlib compression method"},
    [WHARF_REASON_ZLIB_WINDOW] = {"zlib_window", "invalid zlib window size"},
    [WHARF_REASON_ZLIB_DICTIONARY] = {"zlib_dictionary", "the stream needs a preset dictionary"},
    [WHARF_REASON_ZLIB_CHECKSUM] = {"zlib_checksum", "Adler-32 of the output is wrong"},
    [WHARF_REASON_GZIP_MAGIC] = {"gzip_magic", "not in gzip format"},
    [WHARF_REASON_GZIP_METHOD] = {"gzip_method", "unknown gzip compression method"},
    [WHARF_REASON_GZIP_FLAGS] = {"gzip_flags", "reserved gzip flags are set"},
    [WHARF_REASON_GZIP_HEADER_CRC] = {"gzip_header_crc", "CRC-16 of the gzip header is wrong"},
    [WHARF_REASON_GZIP_CHECKSUM] = {"gzip_checksum", "CRC-32 of the output is wrong"},
    [WHARF_REASON_GZIP_LENGTH] = {"gzip_length", "length in the gzip trailer is wrong"},
    [WHARF_REASON_CONTAINER_MAGIC] = {"container_magic", "not a wharf container"},
    [WHARF_REASON_CONTAINER_VERSION] = {"container_version",
                                        "made by a newer version of the container format"},
    [WHARF_REASON_CONTAINER_HEADER] = {"container_header", "file header is damaged"},
    [WHARF_REASON_CONTAINER_CHUNK] = {"container_chunk", "chunk header is damaged"},
    [WHARF_REASON_CONTAINER_INDEX] = {"container_index", "index is damaged"},
    [WHARF_REASON_CONTAINER_LIMIT] = {"container_limit",
                                      "chunk claims more than its codec can give"},
    [WHARF_REASON_CONTAINER_TRUNCATED] = {"container_truncated", "the file is cut off"},
    [WHARF_REASON_CONTAINER_CODEC] = {"container_codec", "a chunk's codec is not known here"},
    [WHARF_REASON_RLE_VARINT] = {"rle_varint", "a number of more than 64 bits"},
    [WHARF_REASON_RLE_VALUE] = {"rle_value", "a value that its type cannot hold"},
    [WHARF_REASON_RLE_PATCHES] = {"rle_patches", "invalid list of patches"},
    [WHARF_REASON_RANS_VERSION] = {"rans_version", "made by a newer version of the rans format"},
    [WHARF_REASON_RANS_HEADER] = {"rans_header", "sizes in the rans header contradict each other"},
    [WHARF_REASON_RANS_MODEL] = {"rans_model", "frequencies of a rans model are no distribution"},
    [WHARF_REASON_RANS_SYMBOL] = {"rans_symbol", "a rans state that stands for no symbol"},
    [WHARF_REASON_RANS_SPLIT] = {"rans_split", "a rans split does not fit the stream"},
    [WHARF_REASON_RANS_STATE] = {"rans_state", "a rans coder begins or ends in a wrong state"},
    [WHARF_REASON_RANS_WORDS_LEFT] = {"rans_words_left", "words are left after the last symbol"},
    [WHARF_REASON_LZ4_OFFSET] = {"lz4_offset", "lz4 match from outside the output"},
    [WHARF_REASON_LZ4_END] = {"lz4_end", "lz4 block ends too soon after its last match"},
    [WHARF_REASON_SNAPPY_LENGTH] = {"snappy_length", "length of the output over 32 bits"},
    [WHARF_REASON_SNAPPY_OFFSET] = {"snappy_offset", "snappy match from outside the output"},
    [WHARF_REASON_SNAPPY_PAST_END] = {"snappy_past_end", "more output than its length says"},
    [WHARF_REASON_LINE_VERSION] = {"line_version", "made by a newer version of the line format"},
    [WHARF_REASON_LINE_HEADER] = {"line_header", "header of the lines is damaged"},
    [WHARF_REASON_LINE_PALETTE] = {"line_palette", "invalid width of a palette's codes"},
    [WHARF_REASON_LINE_OFFSET] = {"line_offset", "lines begin elsewhere than the index says"},
    [WHARF_REASON_LINE_CODE] = {"line_code", "invalid code of a line in the index"},
    [WHARF_REASON_LINE_CONTENT] = {"line_content", "a line contradicts the index"},
    [WHARF_REASON_ZSTD_MAGIC] = {"zstd_magic", "not in zstd format"},
    [WHARF_REASON_ZSTD_VERSION] = {"zstd_version", "a format from before zstd 0.8"},
    [WHARF_REASON_ZSTD_RESERVED] = {"zstd_reserved", "a reserved bit of the frame header is set"},
    [WHARF_REASON_ZSTD_WINDOW] = {"zstd_window", "the frame's window is larger than 128 MiB"},
    [WHARF_REASON_ZSTD_DICTIONARY] = {"zstd_dictionary", "the frame needs a dictionary"},
    [WHARF_REASON_ZSTD_BLOCK] = {"zstd_block", "invalid type or size of a block"},
    [WHARF_REASON_ZSTD_BLOCK_SIZE] = {"zstd_block_size", "more output than a block may have"},
    [WHARF_REASON_ZSTD_CONTENT_SIZE] = {"zstd_content_size",
                                        "the output is not as long as the frame header says"},
    [WHARF_REASON_ZSTD_LITERALS] = {"zstd_literals", "invalid header of literals"},
    [WHARF_REASON_ZSTD_TREE] = {"zstd_tree", "invalid or missing Huffman code"},
    [WHARF_REASON_ZSTD_STREAMS] = {"zstd_streams",
                                   "a stream of literals is not as long as its literals"},
    [WHARF_REASON_ZSTD_SEQUENCES_HEADER] = {"zstd_sequences_header", "invalid header of sequences"},
    [WHARF_REASON_ZSTD_TABLE] = {"zstd_table", "invalid or missing FSE table"},
    [WHARF_REASON_ZSTD_SEQUENCES] = {"zstd_sequences", "bits of sequences are missing or left"},
    [WHARF_REASON_ZSTD_SEQUENCE_LITERALS] = {"zstd_sequence_literals",
                                             "a sequence has more literals than there are"},
    [WHARF_REASON_ZSTD_OFFSET] = {"zstd_offset",
                                  "distance 0, or to before the frame or its window"},
    [WHARF_REASON_ZSTD_CHECKSUM] = {"zstd_checksum", "XXH64 of the output is wrong"},
    [WHARF_REASON_ZSTD_SEEK_TABLE] = {"zstd_seek_table",
                                      "the file's seek table is wrong about this frame"},
    [WHARF_REASON_BLOSC_VERSION] = {"blosc_version", "neither Blosc 1 nor a known Blosc 2"},
    [WHARF_REASON_BLOSC_HEADER] = {"blosc_header", "sizes in the Blosc header contradict"},
    [WHARF_REASON_BLOSC_FLAGS] = {"blosc_flags", "a Blosc chunk of a kind that is not decoded"},
    [WHARF_REASON_BLOSC_FILTER] = {"blosc_filter", "a filter that is not Blosc's own"},
    [WHARF_REASON_BLOSC_CODEC] = {"blosc_codec", "a codec inside that is not Blosc's own"},
    [WHARF_REASON_BLOSC_START] = {"blosc_start", "a Blosc block begins outside the streams"},
    [WHARF_REASON_BLOSC_STREAM] = {"blosc_stream", "a Blosc stream has a wrong size"},
    [WHARF_REASON_BLOSC_OVERLAP] = {"blosc_overlap", "Blosc streams overlap"},
    [WHARF_REASON_BLOSC_LZ_OFFSET] = {"blosc_lz_offset", "blosclz match from outside the output"},
    [WHARF_REASON_LZ4_FRAME_MAGIC] = {"lz4_frame_magic", "no LZ4 frame begins here"},
    [WHARF_REASON_LZ4_FRAME_VERSION] = {"lz4_frame_version",
                                        "another version of the LZ4 frame format"},
    [WHARF_REASON_LZ4_FRAME_HEADER] = {"lz4_frame_header",
                                       "checksum of the LZ4 frame's header is wrong"},
    [WHARF_REASON_LZ4_FRAME_RESERVED] = {"lz4_frame_reserved",
                                         "the LZ4 frame's header has reserved values"},
    [WHARF_REASON_LZ4_FRAME_DICTIONARY] = {"lz4_frame_dictionary",
                                           "the LZ4 frame needs a dictionary"},
    [WHARF_REASON_LZ4_FRAME_BLOCK_SIZE] = {"lz4_frame_block_size",
                                           "a block larger than the LZ4 frame's may be"},
    [WHARF_REASON_LZ4_FRAME_BLOCK_CHECKSUM] = {"lz4_frame_block_checksum",
                                               "XXH32 of the block is wrong"},
    [WHARF_REASON_LZ4_FRAME_CONTENT_SIZE] = {"lz4_frame_content_size",
                                             "the LZ4 frame's output is not as long as it says"},
    [WHARF_REASON_LZ4_FRAME_CHECKSUM] = {"lz4_frame_checksum", "XXH32 of the output is wrong"},
    [WHARF_REASON_SNAPPY_FRAME_IDENTIFIER] = {"snappy_frame_identifier",
                                              "no stream identifier of framed Snappy"},
    [WHARF_REASON_SNAPPY_FRAME_CHUNK_SIZE] = {"snappy_frame_chunk_size",
                                              "a chunk of a size that it cannot have"},
    [WHARF_REASON_SNAPPY_FRAME_RESERVED] = {"snappy_frame_reserved",
                                            "a chunk of an unknown type that cannot be left out"},
    [WHARF_REASON_SNAPPY_FRAME_CHECKSUM] = {"snappy_frame_checksum",
                                            "CRC-32C of the chunk is wrong"},
    [WHARF_REASON_BROTLI_STREAM] = {"brotli_stream", "no Brotli stream, or a damaged one"},
    [WHARF_REASON_FILE_SHORT] = {"file_short", "the file ends inside the source"},
    [WHARF_REASON_FILE_TIME] = {"file_time", "reading the file took too long"},
    [WHARF_REASON_FILE_ABANDONED] = {"file_abandoned", "nobody knows what was written to the file"},
    [WHARF_REASON_REQUEST_CODEC] = {"request_codec", "no such codec"},
    [WHARF_REASON_REQUEST_FLAGS] = {"request_flags", "unknown flags"},
    [WHARF_REASON_REQUEST_RANGE] = {"request_range",
                                    "the source or the destination reaches outside its memory"},
    [WHARF_REASON_REQUEST_OPCODE] = {"request_opcode", "no such operation"},
    [WHARF_REASON_REQUEST_CLASS] = {"request_class", "no such class"},
    [WHARF_REASON_REQUEST_PARAMETER] = {"request_parameter", "not a parameter of this codec"},
    [WHARF_REASON_REQUEST_RESERVED] = {"request_reserved", "a reserved member is not 0"},
    [WHARF_REASON_REQUEST_REGION] = {"request_region", "no such region, or it is read-only"},
    [WHARF_REASON_REQUEST_BATCH] = {"request_batch",
                                    "no or too many chunks, or a wrong table size"},
    [WHARF_REASON_REQUEST_NO_JOB] = {"request_no_job", "no such job in flight"},
    [WHARF_REASON_REQUEST_NULL] = {"request_null",
                                   "the source or the destination is NULL, and its size is not 0"},
    [WHARF_REASON_REQUEST_OVERLAP] = {"request_overlap", "source and destination overlap"},
    [WHARF_REASON_REQUEST_SIZE] = {"request_size",
                                   "source and destination are larger than one job may be"},
    [WHARF_REASON_REQUEST_ENCODER] = {"request_encoder",
                                      "not an encoder of this codec, or not a level of it"},
    [WHARF_REASON_REQUEST_WORD] = {"request_word",
                                   "a done word or a start word that is at no place for one"},
    [WHARF_REASON_START_TIME] = {"start_time", "the start word was not set in time"},
    [WHARF_REASON_CHAIN_PART] = {"chain_part", "a part of the chain's source failed"},
    [WHARF_REASON_CHAIN_GAP] = {"chain_gap", "a part of the chain's source is short"},
    [WHARF_REASON_CHAIN_PLACE] = {"chain_place", "a part of the chain's source is out of place"},
    [WHARF_REASON_DAEMON_LOST] = {"daemon_lost", "no daemon could be had in time"},
    [WHARF_REASON_GPU_CODEC] = {"gpu_codec", "the GPU has no decoder for this codec"},
    [WHARF_REASON_GPU_LARGE] = {"gpu_large", "larger than a chunk for a GPU may be"},
    [WHARF_REASON_GPU_LARGE_TIME] = {"gpu_large_time", "took the GPU longer than it may"},
};

static const struct value_text unknown_result = {"unknown", "unknown result"};
static const struct value_text unknown_reason = {"unknown", "unknown reason"};
/* Whatever the errno value is that was added. */
static const struct value_text file_read = {"file_read", "the file cannot be read"};
static const struct value_text file_write = {"file_write", "the file cannot be written"};

static const struct value_text *find_text(const struct value_text *texts, size_t n_texts,
                                          uint32_t value, const struct value_text *unknown)
{
    return value < n_texts && texts[value].name ? &texts[value] : unknown;
}

static const struct value_text *result_text(uint32_t result)
{
    return find_text(result_texts, sizeof(result_texts) / sizeof(result_texts[0]), result,
                     &unknown_result);
}

static const struct value_text *reason_text(uint32_t reason)
{
    if (reason >= WHARF_REASON_FILE_READ && reason < WHARF_REASON_FILE_WRITE)
        return &file_read;
    if (reason >= WHARF_REASON_FILE_WRITE &&
        reason < WHARF_REASON_FILE_WRITE + WHARF_REASON_N_ERRNO)
        return &file_write;
    return find_text(reason_texts, sizeof(reason_texts) / sizeof(reason_texts[0]), reason,
                     &unknown_reason);
}

const char *wharf_result_string(uint32_t result)
{
    return result_text(result)->string;
}
const char *wharf_reason_string(uint32_t reason)
{
    return reason_text(reason)->string;
}
const char *wharf_result_name(uint32_t result)
{
    return result_text(result)->name;
}
const char *wharf_reason_name(uint32_t reason)
{
    return reason_text(reason)->name;
}
