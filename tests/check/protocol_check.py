#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""protocol_check.py: does PROTOCOL.md say what the headers say?

Reads the diagrams and tables of proto/PROTOCOL.md, lets a small C program print what the compiler
makes of the headers, and compares both.  What the program writes into each structure is read back
through the documented offsets alone, as a client in another language would.
"""
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
DOCUMENT = os.path.join(TOP, 'proto', 'PROTOCOL.md')
HEADERS = [os.path.join(TOP, 'proto', name) for name in ('wharf_ring.h', 'wharf_job.h', 'wharf_result.h')]
# What only programs see.
UNSHARED = {'wharf_outcome'}
BYTE_WIDTH = 11  # columns of a diagram for one byte, with its bar

# Which enumerations the page has to list whole.
ENUMERATIONS = ('wharf_opcode', 'wharf_class', 'wharf_job_flag')


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def diagram_members(lines):
    """{name: (offset, size)} of a diagram whose rows look like `   8  |  a  |  b  |`."""
    members = {}
    for line in lines:
        row = re.match(r'\s*(\d+)  (\|.*\|)$', line)
        if not row:
            continue
        bars = [m.start() for m in re.finditer(r'\|', row.group(2))]
        for start, end in zip(bars, bars[1:]):
            if start % BYTE_WIDTH or end % BYTE_WIDTH:
                raise ValueError(f'crooked diagram: {line}')
            name = row.group(2)[start + 1:end].strip()
            members[name] = (int(row.group(1)) + start // BYTE_WIDTH, (end - start) // BYTE_WIDTH)
    return members


def table_rows(lines):
    """The cells of each row of a table, without its head."""
    rows = [[cell.strip(' `') for cell in line.strip('|\n').split('|')]
            for line in lines if line.startswith('|')]
    return rows[2:]


def documented_structures(document):
    """{structure: {member: (offset, size)}}: each name in (`struct x`) is followed by its layout."""
    found = {}
    for match in re.finditer(r'\(`struct (wharf_\w+)`\):?\n\n((?:.+\n)+)', document):
        lines = match.group(2).splitlines()
        if lines[0].startswith('```'):
            found[match.group(1)] = diagram_members(lines)
        else:
            found[match.group(1)] = {row[2]: (int(row[0]), int(row[1]))
                                     for row in table_rows(lines)}
    return found


def documented_values(document):
    """{WHARF_NAME: number} of all table rows that begin with a number and a name."""
    rows = re.findall(r'^\| (\d+) \| `(WHARF_\w+)`', document, re.M)
    return {name: int(number) for number, name in rows}


def header_structures(headers):
    """{structure: [member]} without padding."""
    return {name: [member for member in re.findall(r'\b(\w+)(?:\[\d+\])?;', body)
                   if not member.startswith('pad_')]
            for name, body in re.findall(r'^struct (wharf_\w+) \{\n(.*?)^\};', headers,
                                         re.M | re.S) if name not in UNSHARED}


def header_enumerations(headers):
    return {name: re.findall(r'^\s+(WHARF_\w+) =', body, re.M)
            for name, body in re.findall(r'^enum (wharf_\w+) \{\n(.*?)^\};', headers, re.M | re.S)}


def run_c(lines):
    """Compiles and runs main() with these lines; its output."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, 'layout.c')
        with open(source, 'w', encoding='utf-8') as file:
            file.write('#include <stdio.h>\n#include "proto/wharf_ring.h"\n'
                       '#include "proto/wharf_job.h"\nint main(void)\n{\n' +
                       '\n'.join(lines) + '\nreturn 0;\n}\n')
        program = os.path.join(folder, 'layout')
        subprocess.run([os.environ.get('CC', 'gcc'), '-std=c11', '-I', TOP, '-o', program, source],
                       check=True)
        return subprocess.run([program], check=True, capture_output=True).stdout


def sample_value(name, size):
    """A number of so many bytes, none like another's."""
    value = 0
    for i in range(size):
        value = value * 256 + 1 + (sum(name.encode()) * 31 + i * 7) % 255
    return value


def rule_every_structure_has_its_layout(document, headers):
    documented = documented_structures(document)
    for name, members in header_structures(headers).items():
        if list(documented.get(name, {})) != members:
            yield f'struct {name}: {members} in the header, {list(documented.get(name, {}))} here'


def rule_offsets_and_sizes_are_the_compilers(document, _):
    lines = []
    expected = []
    for name, members in documented_structures(document).items():
        for member, (offset, size) in members.items():
            lines.append(f'printf("{name}.{member} %zu %zu\\n", offsetof(struct {name}, {member}), '
                         f'sizeof(((struct {name} *)0)->{member}));')
            expected.append(f'{name}.{member} {offset} {size}')
    if not expected:
        yield 'no layout found'
    for said, is_so in zip(expected, run_c(lines).decode().splitlines()):
        if said != is_so:
            yield f'{said} here, {is_so} compiled'


def rule_bytes_read_by_the_page_are_those_written_in_c(document, _):
    lines = []
    for name, members in documented_structures(document).items():
        lines.append(f'{{ struct {name} x = {{0}};')
        lines += [f'x.{member} = {sample_value(member, size)}u;'
                  for member, (_, size) in members.items()]
        lines.append('fwrite(&x, sizeof(x), 1, stdout); }')
    written = run_c(lines)
    at = 0
    sizes = iter(run_c([f'printf("%zu\\n", sizeof(struct {name}));'
                        for name in documented_structures(document)]).decode().split())
    for name, members in documented_structures(document).items():
        for member, (offset, size) in members.items():
            value = int.from_bytes(written[at + offset:at + offset + size], 'little')
            if value != sample_value(member, size):
                yield f'{name}.{member} reads {value}'
        at += int(next(sizes))


def rule_values_are_the_headers(document, headers):
    documented = documented_values(document)
    enumerations = header_enumerations(headers)
    for enumeration in ENUMERATIONS:
        if not enumerations[enumeration]:
            yield f'enum {enumeration} not found'
        for name in enumerations[enumeration]:
            if name not in documented:
                yield f'{name} is not on the page'
    names = sorted(documented)
    compiled = run_c([f'printf("%llu\\n", (unsigned long long){name});' for name in names])
    for name, value in zip(names, compiled.decode().split()):
        # Wait bits are given by their position.
        said = 1 << documented[name] if name.startswith('WHARF_WAIT_') else documented[name]
        if said != int(value):
            yield f'{name}: {documented[name]} here, {value} compiled'


def rule_constants_are_the_headers(document, _):
    """Numbers in the text that have names in the header."""
    magic, layout, most, entries = run_c(
        ['printf("0x%x %u %u %u", WHARF_RING_MAGIC, WHARF_RING_LAYOUT, WHARF_RING_MAX_ENTRIES, '
         'WHARF_RING_ENTRIES_OFFSET);']).decode().split()
    for text in (f'| `magic` | {magic} |', f'| `layout` | {layout} |', f'from 2 to {most}',
                 f'`{entries} + 64 * n_entries`'):
        if text not in document:
            yield f'the page does not say {text}'


def rule_every_shared_word_is_in_the_order_table(document, _):
    section = document.split('\n## 3.')[1].split('\n## ')[0]
    listed = {row[0] for row in table_rows(section.splitlines())}
    structures = documented_structures(document)
    for member in {**structures['wharf_ring_c'], **structures['wharf_ring_d']}:
        offset = {**structures['wharf_ring_c'], **structures['wharf_ring_d']}[member][0]
        is_constant = member in structures['wharf_ring_d'] and offset < 128
        if not is_constant and member not in listed:
            yield f'{member} has no row'


def rule_example_bytes_are_those_of_the_test(document, _):
    """control_test.c compares these with what the encoder makes."""
    shown = re.search(r'```text\n((?:[0-9a-f]{2}\s+)+)id ', document).group(1).split()
    test = read(os.path.join(TOP, 'tests', 'unit', 'control_test.c'))
    body = re.search(r'expected\[\] = \{\n(.*?)\n    \};', test, re.S).group(1)
    body = re.sub(r'/\*.*?\*/', '', body)
    tested = [ord(token[1]) if token[0] == "'" else int(token, 0)
              for token in re.findall(r"'.'|0x[0-9a-f]+|\d+", body)]
    if [int(byte, 16) for byte in shown] != tested:
        yield f'{shown} here, {bytes(tested).hex(" ")} there'


def main():
    document = read(DOCUMENT)
    headers = re.sub(r'/\*.*?\*/', '', ''.join(map(read, HEADERS)), flags=re.S)
    rules = [(name, rule) for name, rule in sorted(globals().items()) if name.startswith('rule_')]
    failed = 0
    print(f'1..{len(rules)}')
    for number, (name, rule) in enumerate(rules, 1):
        broken = list(rule(document, headers))
        failed += bool(broken)
        print(f'{"not ok" if broken else "ok"} {number} - {name.removeprefix("rule_")}')
        for line in broken:
            print(f'# {line}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
