#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vector_table.py FOLDER: the table of a folder of further vectors, as test_vector.h reads it.

FOLDER/expected/deflate.json holds, for each file by its path in FOLDER, the format and what zlib
says of it.  The last line of the table is the number of entries that the file has, counted apart
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
    print(f'count {len(entries)}')


if __name__ == '__main__':
    main()
