#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cat_vectors.py FOLDER: `wharf cat` on the gzip and BGZF files of a folder of further vectors.

FOLDER/expected/deflate.json and bgzf.json say what each file holds.  One test a file: a good one
comes out whole with exit status 0, from its path and from a pipe; of a bad one nothing is reported
as good: exit status 1 and a message.  Reports in the Test Anything Protocol.
"""
import hashlib
import json
import os
import subprocess
import sys
import zlib

WHARF = os.path.abspath(os.environ.get('BUILD', 'build/release') + '/wharf')


def load(folder, name):
    with open(f'{folder}/expected/{name}.json', encoding='utf-8') as file:
        return json.load(file)


def sha256_as_zlib(path):
    """The hash of what a file is that is no gzip file but a zlib stream; None when it is neither."""
    with open(path, 'rb') as file:
        data = file.read()
    if data[:2] == b'\x1f\x8b':
        return None
    decoder = zlib.decompressobj()
    try:
        output = decoder.decompress(data)
    except zlib.error:
        return None
    return hashlib.sha256(output).hexdigest() if decoder.eof else None


def run(path, piped):
    """Exit status, SHA-256 of the output and the message of one `wharf cat`."""
    with open(path, 'rb') as file:
        done = subprocess.run([WHARF, 'cat', '-' if piped else path], stdin=file,
                              capture_output=True, check=False)
    return done.returncode, hashlib.sha256(done.stdout).hexdigest(), done.stderr.decode()


def problems(path, sha256):
    """What is wrong with wharf's answer; sha256 is None for a bad file."""
    for piped in (False, True):
        how = 'from a pipe' if piped else 'by its path'
        status, got, message = run(path, piped)
        if sha256 is None:
            if status != 1 or not message:
                yield f'{how}: exit status {status} instead of 1, message {message!r}'
        elif (status, got) != (0, sha256):
            yield f'{how}: exit status {status}, SHA-256 {got}, message {message!r}'


def main():
    folder = sys.argv[1]
    cases = []
    for path, entry in load(folder, 'deflate').items():
        if entry['format'] == 'gz':
            sha256 = entry['zlib'].get('sha256')
            cases.append((path, sha256 or sha256_as_zlib(f'{folder}/{path}')))
    for path, entry in load(folder, 'bgzf').items():
        # Some are gzip files of another kind, which gzip verifies.
        good = entry['gzip_rc'] == 0
        cases.append((path, entry['gzip_sha256'] if good else None))
    failed = 0
    print(f'1..{len(cases)}')
    for number, (path, sha256) in enumerate(sorted(cases), 1):
        wrong = list(problems(f'{folder}/{path}', sha256))
        failed += bool(wrong)
        print(f'{"not ok" if wrong else "ok"} {number} - cat {path}')
        for line in wrong:
            print(f'# {line}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
