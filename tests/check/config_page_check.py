#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares wharfd.conf(5) with what the daemon says of its settings (wharfd --print-config).

Reports in the Test Anything Protocol.  In the page a setting is a list item, in the subsection of
its section: `.It Cm KEY No = DEFAULT`, with `Sy *` behind it where it takes effect at the start only.
"""
import os
import re
import subprocess
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
BUILD = os.path.join(TOP, os.environ.get('BUILD', 'build/release'))
AT_START = 'Takes effect when the daemon starts.'


def read_daemon():
    """{(section, key): (default, whether it takes effect at the start only)}"""
    printed = subprocess.run([os.path.join(BUILD, 'wharfd'), '--print-config'],
                             check=True, capture_output=True, text=True).stdout
    settings, section, at_start = {}, None, False
    for line in printed.splitlines():
        if m := re.match(r'#?\[(\w+)', line):
            section = m.group(1)
        elif line.startswith('# '):
            at_start = line.endswith(AT_START)
        elif m := re.match(r'#(\w+) =\s*(.*)', line):
            settings[section, m.group(1)] = (m.group(2), at_start)
    return settings


def read_page():
    settings, section = {}, None
    with open(os.path.join(TOP, 'daemon', 'wharfd.conf.5'), encoding='utf-8') as page:
        for line in page:
            if m := re.match(r'\.Ss Sections? (\w+)', line):
                section = m.group(1)
            elif m := re.match(r'\.It Cm (\w+) No =(.*?)( Sy \*)?$', line):
                settings[section, m.group(1)] = (m.group(2).strip(), m.group(3) is not None)
    return settings


def differences(daemon, page):
    for name in sorted(daemon.keys() | page.keys()):
        if daemon.get(name) != page.get(name):
            yield f'[{name[0]}] {name[1]}: wharfd has {daemon.get(name)}, the page {page.get(name)}'


def main():
    daemon = read_daemon()
    found = list(differences(daemon, read_page()))
    if not daemon:
        found.append('wharfd --print-config prints no setting')
    print('1..1')
    print(f'{"not ok" if found else "ok"} 1 - configuration page has every setting and its default')
    for line in found:
        print(f'# {line}')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
