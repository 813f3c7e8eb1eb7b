#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rans_vectors.py FOLDER: `wharf rans` on streams of Recoil's own program.

FOLDER/rans-recoil holds NAME.pN.sS.recoil with NAME.pN.sS.cdf and NAME.txt, TEXT/TEXT.nN.sS with
TEXT.nN.cdf and TEXT, and for 16-bit symbols NAME.pN.sS.recoil with NAME.cdfs.u16, NAME.cdfidx.u8
and NAME.sym.u16.  Each stream decodes to its text by both engines, as it is and thinned, and what
wharf encodes has as many splits.  Reports in the Test Anything Protocol.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

WHARF = os.path.abspath(os.environ.get('BUILD', 'build/release') + '/wharf')


def run(*arguments, data=b''):
    return subprocess.run([WHARF, 'rans', *map(str, arguments)], input=data, capture_output=True,
                          check=True).stdout


def find_streams(folder):
    """(stream, model arguments, plain file or None)"""
    for stream in sorted(folder.glob('*.recoil')):
        name, n = re.fullmatch(r'(.*)\.p(\d+)\.s\d+\.recoil', stream.name).groups()
        sums, plain = folder / f'{name}.cdfs.u16', folder / f'{name}.txt'
        if sums.exists():
            yield stream, ['-n', n, '--cdf', sums, '--symbols', 'u16', '--indexes',
                           folder / f'{name}.cdfidx.u8'], folder / f'{name}.sym.u16'
        else:
            yield (stream, ['-n', n, '--cdf', stream.with_suffix('.cdf')],
                   plain if plain.exists() else None)
    for stream in sorted(folder.glob('*/*.n*.s*')):
        name, n = re.fullmatch(r'(.*)\.n(\d+)\.s\d+', stream.name).groups()
        yield (stream, ['-n', n, '--cdf', stream.parent / f'{name}.n{n}.cdf'],
               stream.parent / name)


def check(stream, model, plain):
    text = run('decode', *model, stream)
    assert run('decode', '--engine', 'reference', *model, stream) == text
    assert plain is None or plain.read_bytes() == text, 'decodes to something else'
    for splits in (1, 3, 16):
        assert run('decode', *model, data=run('thin', '--splits', splits, stream)) == text
    assert run('thin', '--splits', 65535, stream) == stream.read_bytes()
    if '--symbols' not in model:
        check_own(stream, model, text)
    check_model_file(stream, model, text)


def check_model_file(stream, model, text):
    """With the model beside the stream, as large as it may be."""
    with tempfile.TemporaryDirectory() as folder:
        imported = run('import', *model, '--model', f'{folder}/model', stream)
        done = subprocess.run([WHARF, 'decode', '-c', 'rans', '--model', f'{folder}/model'],
                              input=imported, capture_output=True, check=True)
    assert done.stdout == text, 'decodes to something else with its model registered'


def check_own(stream, model, text):
    """What wharf makes of the same text, for that program to read: never larger."""
    splits = re.search(r's(\d+)(\.recoil)?$', stream.name).group(1)
    with tempfile.TemporaryDirectory() as folder:
        own_model = ['-n', model[1], '--cdf', f'{folder}/cdf']
        own = run('encode', '--splits', splits, *own_model, data=text)
        assert run('decode', *own_model, data=own) == text
    assert len(own) <= 1.001 * stream.stat().st_size, f'{len(own)} bytes'
    imported = run('import', *model, stream)
    done = subprocess.run([WHARF, 'decode', '-c', 'rans'], input=imported, capture_output=True,
                          check=True)
    assert done.stdout == text


def main():
    streams = list(find_streams(pathlib.Path(sys.argv[1]) / 'rans-recoil'))
    print(f'1..{len(streams) or 1}')
    if not streams:
        print('not ok 1 - there are no streams')
    for number, (stream, model, plain) in enumerate(streams, 1):
        try:
            check(stream, model, plain)
            print(f'ok {number} - {stream.name}', flush=True)
        except (AssertionError, subprocess.CalledProcessError) as error:
            print(f'# {error}\nnot ok {number} - {stream.name}', flush=True)


if __name__ == '__main__':
    main()
