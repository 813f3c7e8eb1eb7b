#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vector_table.py FOLDER: the table of a folder of further vectors, as test_vector.h reads it.

FOLDER/expected/deflate.json holds, for each file by its path in FOLDER, the format and what zlib
says of it, zstd.json what libzstd does, and blosc.json what is inside.  The last line of the table is the number of entries that the file has, counted apart
from those that are written, so that none can be lost on the way.
"""
import json
import sys

CODECS = {'raw': 'deflate', 'zlib': 'zlib', 'gz': 'gzip'}

# What zlib's messages are in wharf's terms; {} stands for the codec.
MESSAGES = {
    'invalid block type': 'bad_data deflate_block_type',
    'invalid stored block lengths': 'bad_data deflate_stored_length',
    'too many length or distance symbols': 'bad_data deflate_code_count',
    'invalid code lengths set': 'bad_data deflate_precode',
    'invalid bit length repeat': 'bad_data deflate_length_repeat',
    'invalid code -- missing end-of-block': 'bad_data deflate_no_end',
    'invalid literal/lengths set': 'bad_data deflate_litlen_code',
    'invalid distances set': 'bad_data deflate_distance_code',
    'invalid literal/length code': 'bad_data deflate_litlen_symbol',
    'invalid distance code': 'bad_data deflate_distance_symbol',
    'invalid distance too far back': 'bad_data deflate_distance_too_far',
    # zlib tells a gzip file from others by the same check as a zlib header's.
    'incorrect header check': 'bad_data zlib_header|gzip_magic',
    'unknown compression method': 'bad_data {}_method',
    'invalid window size': 'bad_data zlib_window',
    'unknown header flags set': 'bad_data gzip_flags',
    'header crc mismatch': 'bad_data gzip_header_crc',
    'incorrect data check': 'bad_checksum {}_checksum',
    'incorrect length check': 'bad_checksum gzip_length',
}
# zlib's answer number 2: the stream needs a preset dictionary.
NEED_DICTIONARY = 'Error 2 while decompressing data'

# The same of libzstd.  The first three are many reasons.
ZSTD_MESSAGES = {
    'Data corruption detected': 'bad_data',
    'Destination buffer is too small': 'bad_data',
    'Src size is incorrect': 'bad_data',
    "Header of Literals' block doesn't respect format specification": 'bad_data zstd_literals',
    'Dictionary is corrupted': 'bad_data zstd_tree',
    "Restored data doesn't match checksum": 'bad_checksum zstd_checksum',
    'Dictionary mismatch': 'unsupported zstd_dictionary',
    'Unsupported frame parameter': 'unsupported zstd_reserved',
    'Frame requires too much memory for decoding': 'unsupported zstd_window',
}

# Where libzstd comes to the checksum before it sees what is wrong: where the last block is empty it
# does not compare the content size, and with four long streams of literals not their ends.
ZSTD_EARLIER = {
    'zstd-klauspost-decode-corpus-encoded/bedf7b69750ffcef7f5089dfe9f4c4f6ccb8505f':
        'bad_data zstd_content_size',
    'zstd-klauspost/bad-5a0147dd6c438a881dae9ab610aa778b55f4ae91.zst': 'bad_data zstd_streams',
}

# Damaged frames from which much comes out before the error.
ZSTD_LARGE = {
    'zstd-klauspost-decode-corpus-encoded/402b5ce05a53b62aea3fff26c4b0f70e3dadb63d',
    'zstd-klauspost-decode-corpus-encoded/610bdff48cfef1b460c7670b70f41feaabfc60de',
    'zstd-klauspost-decode-corpus-encoded/71b92ebd6b0580459270d7e3cc0f1a95a460a868',
    'zstd-klauspost-decode-corpus-encoded/9034f964c494243de91454375da621f43f79785c',
    'zstd-klauspost-decode-corpus-encoded/e0686be62083ef28243695745a719bab8a475a3e',
    'zstd-klauspost-regression/14b357d23c5bca5c99089ecedeba576b729df091',
}


def zstd_expectation(path, entry):
    """The result and, if libzstd's message tells it, the reason."""
    if entry['status'] == 'truncated':
        return 'bad_data input_truncated'
    if entry['status'] == 'ok':
        return 'ok none'
    if entry['error'] != 'Unknown frame descriptor':
        return ZSTD_MESSAGES[entry['error']]
    # Formats from before 0.8, which the reference library was built without.
    with open(path, 'rb') as file:
        magic = file.read(4)
    is_old = magic[1:] == b'\xb5\x2f\xfd' and 0x22 <= magic[0] <= 0x27
    return 'unsupported zstd_version' if is_old else 'bad_data zstd_magic'


def write_zstd(folder):
    """Those of zstd; returns how many there are."""
    with open(f'{folder}/expected/zstd.json', encoding='utf-8') as file:
        entries = json.load(file)
    for path, entry in sorted(entries.items()):
        expected = ZSTD_EARLIER.get(path) or zstd_expectation(f'{folder}/{path}', entry)
        result, *reason = expected.split()
        print(f'vector {path}\ncodec zstd\nresult {result}')
        if reason:
            print(f'reason {reason[0]}')
        if result == 'ok':
            print(f'out_nbytes {entry["out"]}\nsha256 {entry["sha256"]}')
        else:
            print(f'out_avail {64 << 20 if path in ZSTD_LARGE else 1 << 20}')
        print()
    return len(entries)


# Its reference, c-blosc2, leaves the last three bytes of this chunk as they were in memory; this is what
# c-blosc 1.21 has.
BLOSC_OTHERWISE = {
    'blosc-compat/blosc-1.18.0-lz4-bitshuffle8-nomemcpy.cdata':
        'b35f8458fb0c5ba0236a02cdec4bb4a41c547823aa306e0f5a5346196d4f5aca',
}


def write_blosc(folder):
    """Those of Blosc, which are all good; returns how many there are."""
    with open(f'{folder}/expected/blosc.json', encoding='utf-8') as file:
        entries = json.load(file)
    for path, entry in sorted(entries.items()):
        print(f'vector {path}\ncodec blosc\nresult {entry["status"]}\nreason none')
        print(f'out_nbytes {entry["out"]}\nsha256 {BLOSC_OTHERWISE.get(path, entry["sha256"])}\n')
    return len(entries)


def expectation(codec, zlib):
    """The result and reason, in one line, of what zlib says."""
    status = zlib['status']
    if status == 'ok':
        return 'ok none'
    if status == 'truncated':
        return 'bad_data input_truncated'
    message = zlib['msg']
    if message == NEED_DICTIONARY:
        return 'unsupported zlib_dictionary'
    return MESSAGES[message.partition('data: ')[2]].format(codec)


def main():
    folder = sys.argv[1]
    with open(f'{folder}/expected/deflate.json', encoding='utf-8') as file:
        entries = json.load(file)
    for path, entry in sorted(entries.items()):
        codec, zlib = CODECS[entry['format']], entry['zlib']
        result, reason = expectation(codec, zlib).split()
        print(f'vector {path}\ncodec {codec}\nresult {result}\nreason {reason}')
        if zlib['status'] == 'ok':
            print(f'out_nbytes {zlib["out"]}\ncrc32 {zlib["crc32"]:08x}\nsha256 {zlib["sha256"]}')
            if 'consumed' in zlib:
                print(f'in_nbytes {zlib["consumed"]}')
        print()
    print(f'count {len(entries) + write_zstd(folder) + write_blosc(folder)}')


if __name__ == '__main__':
    main()
