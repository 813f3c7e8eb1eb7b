#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""codec_lists_check.py [--write]: lists of codecs in documents and headers are those of the rows.

A codec is one row of encoders/wharf_codec.h, a folder of encoders and one of kernels.  A list of
them that people read stands between two marker lines, `made by make generate: NAME` and `end of
NAME`, in whatever form comments have there.  LISTS says what each list is and where it stands;
--write, which is `make generate`, writes them all.

Reports in the Test Anything Protocol.
"""
import os
import re
import sys
from collections import namedtuple
from glob import glob

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
ROW = re.compile(r'^\s*X\((\w+), (\w+), (\d+), +"([^"]*)"\)', re.M)
# More than any chunk has: no bound.
CHUNK_MAX_NBYTES = 16 << 20

# `ratio`: the most output that a byte of input can give; None: there is no bound.  `parameter`: what
# it means.  `on_gpu`: whether it has a device decoder.
Codec = namedtuple('Codec', 'id name number summary ratio parameter on_gpu')


def read(path):
    with open(os.path.join(TOP, path), encoding='utf-8') as file:
        return file.read()


def number_of(text, name):
    """The value of a constant, which must be written as a number."""
    value = re.search(rf'\b{name}(?: =)? (0x[0-9a-f]+|\d+)u?\b(?! *[*/+-])', text)
    if not value:
        raise SystemExit(f'Bail out! there is no number {name}')
    return int(value[1], 0)


def parameter_of(text):
    """The paragraph of a format's header that begins with PARAMETER; 0 is all that others have."""
    found = re.search(r'^ \* PARAMETER\.  (.*?)^ \*(?:/?$)', text, re.M | re.S)
    return ' '.join(found[1].replace('\n * ', ' ').split()) if found else '0'


def has_device_decoder(name):
    """Of its own, or around those of other codecs."""
    return any(os.path.exists(os.path.join(TOP, f'kernels/{name}/{name}_{form}.cuh')) for form in ('decode', 'around'))


def read_codecs():
    for codec_id, name, number, summary in ROW.findall(read('encoders/wharf_codec.h')):
        page = read(f'encoders/{name}/{name}_format.h')
        bounded = number_of(page, f'WHARF_{codec_id}_MAX_CONSTANT') < CHUNK_MAX_NBYTES
        yield Codec(codec_id, name, int(number), summary,
                    number_of(page, f'WHARF_{codec_id}_MAX_RATIO') if bounded else None,
                    parameter_of(page), has_device_decoder(name))


def enumeration(codecs):
    values = [(f'    WHARF_CODEC_{c.id} = {c.number},', c.summary) for c in codecs]
    width = max(len(value) for value, _ in values)
    lines = [f'{value:{width}} /* {summary} */' for value, summary in values]
    return ['enum wharf_codec {', *lines, '};']


def chunk_table(codecs):
    yield '| number | codec | payload | rules | output of a byte, at most | parameter |'
    yield '| --- | --- | --- | --- | --- | --- |'
    for c in codecs:
        yield (f'| {c.number} | {c.name} | {c.summary} | {c.name}/{c.name}_format.h | '
               f'{"no bound" if c.ratio is None else c.ratio} | {c.parameter} |')


def wrapped(text, width=110):
    line = ''
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f'{line} {word}'.strip()
    yield line


def names_by_engine(codecs):
    both, cpu = ([c.name for c in codecs if c.on_gpu == on_gpu] for on_gpu in (True, False))
    yield from wrapped(f'Codecs on CPUs and GPUs: {", ".join(both)}.')
    if cpu:
        yield from wrapped(f'On CPUs alone: {", ".join(cpu)}.')


def manual_list(codecs):
    yield f'.Bl -tag -width {max((c.name for c in codecs), key=len)} -compact'
    for c in codecs:
        yield f'.It Cm {c.name}'
        yield c.summary
    yield '.El'


def manual_names_without_gpu(codecs):
    names = [c.name for c in codecs if not c.on_gpu]
    yield 'Codecs that no GPU decodes' + (':' if names else ': none.')
    for i, name in enumerate(names, 1):
        yield f'.Cm {name} {"." if i == len(names) else ","}'


def pages_of_device_code(_codecs):
    """By their titles."""
    yield '| page | about |'
    yield '| --- | --- |'
    folder = os.path.join(TOP, 'kernels')
    for path in sorted(glob(f'{folder}/*.md')) + sorted(glob(f'{folder}/*/*.md')):
        name = os.path.relpath(path, folder)
        if name != 'KERNELS.md':
            title = read(path).split('\n', 1)[0].removeprefix('# ').removesuffix(' on a GPU')
            yield f'| [{os.path.basename(name)}]({name}) | {title} |'


# Each list: its file, and what makes its lines of the codecs.
LISTS = {
    'enumeration': ('encoders/wharf_codec.h', enumeration),
    'chunk-table': ('encoders/FORMAT.md', chunk_table),
    'names-by-engine': ('README.md', names_by_engine),
    'codecs': ('clientlib/cli/wharf.1', manual_list),
    'codecs-without-gpu': ('clientlib/cli/wharf.1', manual_names_without_gpu),
    'pages': ('kernels/KERNELS.md', pages_of_device_code),
}


def filled(text, name, codecs):
    """The text with that list written; None if its two markers are not there."""
    place = re.compile(rf'(^[^\n]*made by make generate: {name}(?![\w-])[^\n]*\n).*?(^[^\n]*end of {name}(?![\w-]))',
                       re.M | re.S)
    lines = ''.join(line + '\n' for line in LISTS[name][1](codecs))
    new, n = place.subn(lambda found: found[1] + lines + found[2], text)
    return new if n == 1 else None


def rule_lists_are_those_of_the_rows(codecs):
    for name, (path, _) in LISTS.items():
        text = read(path)
        new = filled(text, name, codecs)
        if new is None:
            yield f'{path}: has no place for {name}'
        elif new != text:
            yield f'{path}: {name} is stale: make generate writes it'


def rule_a_codec_more_makes_lists_stale(codecs):
    """Of what the first rule would say nothing, nobody would hear."""
    more = codecs + [Codec('TOY', 'toy', len(codecs), 'a toy', 7, '0', False)]
    for name, (path, make) in LISTS.items():
        if make != pages_of_device_code and filled(read(path), name, more) in (read(path), None):
            yield f'{path}: {name} is the same with a codec more'


def rule_parameters_are_explained(codecs):
    for c in codecs:
        has_units = '.unit_nbytes' in read(f'encoders/{c.name}/{c.name}_codec.c')
        if has_units != (c.parameter != '0'):
            yield f'encoders/{c.name}/{c.name}_format.h: PARAMETER does not go with unit_nbytes'


def rule_every_place_has_a_list(_codecs):
    for path in {path for path, _ in LISTS.values()}:
        for name in re.findall(r'made by make generate: ([\w-]+)', read(path)):
            if LISTS.get(name, ('',))[0] != path:
                yield f'{path}: nothing makes {name}'


def write(codecs):
    """Each file once more for each of its lists."""
    for name, (path, _) in LISTS.items():
        text = read(path)
        new = filled(text, name, codecs)
        if new is None:
            raise SystemExit(f'{path} has no place for {name}')
        if new != text:
            print(f'{path}: {name}')
            with open(os.path.join(TOP, path), 'w', encoding='utf-8') as file:
                file.write(new)
    return 0


def main():
    codecs = list(read_codecs())
    if sys.argv[1:] == ['--write']:
        return write(codecs)
    rules = [(name, rule) for name, rule in sorted(globals().items()) if name.startswith('rule_')]
    failed = 0
    print(f'1..{len(rules)}')
    for number, (name, rule) in enumerate(rules, 1):
        broken = list(rule(codecs))
        failed += bool(broken)
        print(f'{"not ok" if broken else "ok"} {number} - {name.removeprefix("rule_")}')
        for line in broken:
            print(f'# {line}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
