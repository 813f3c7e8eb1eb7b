#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""enums_check.py: enumerations of the installed headers are written out.

Whoever meets WHARF_CODEC_ZLIB and searches for it has to find it, so no macro makes an enumerator.
Reports in the Test Anything Protocol.
"""
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
HEADERS = [os.path.join(TOP, *parts) for parts in (
    ('clientlib', 'wharf.h'), ('encoders', 'wharf_codec.h'), ('proto', 'wharf_job.h'),
    ('proto', 'wharf_result.h'), ('proto', 'wharf_ring.h'))]
ENUM = re.compile(r'^enum (\w+) \{\n(.*?)^\};', re.M | re.S)


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def rule_no_macro_makes_an_enumerator():
    for path in HEADERS:
        text = re.sub(r'/\*.*?\*/', '', read(path), flags=re.S)
        for name, body in ENUM.findall(text):
            for line in filter(str.strip, body.splitlines()):
                if not re.fullmatch(r'\s*[A-Z][A-Z0-9_]* = [^()]*,\s*', line):
                    yield f'{os.path.basename(path)}: enum {name}: {line.strip()}'


def main():
    rules = [(name, rule) for name, rule in sorted(globals().items()) if name.startswith('rule_')]
    failed = 0
    print(f'1..{len(rules)}')
    for number, (name, rule) in enumerate(rules, 1):
        broken = list(rule())
        failed += bool(broken)
        print(f'{"not ok" if broken else "ok"} {number} - {name.removeprefix("rule_")}')
        for line in broken:
            print(f'# {line}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
