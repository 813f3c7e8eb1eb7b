#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_wheel.py VERSION MODULE OUT FILE...: the wheel of the package `wharf`, which pip installs.

A wheel is a zip archive of what is to lie in site-packages, with three files that describe it (the Python packaging
user guide, "Binary distribution format").  MODULE is the extension module, FILE... the package's other files.  The same
input gives the same bytes.
"""
import base64
import hashlib
import os
import platform
import sys
import zipfile

TAG = f'cp311-abi3-linux_{platform.machine()}'
WHEEL = f'Wheel-Version: 1.0\nGenerator: wharf\nRoot-Is-Purelib: false\nTag: {TAG}\n'
METADATA = """Metadata-Version: 2.1
Name: wharf
Version: {version}
Summary: Decompress chunks of data, verified, on all cores and on GPUs
License: Apache-2.0
Requires-Python: >=3.11
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

{readme}"""


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')
    return f'{name},sha256={digest},{len(data)}\n'


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def main(version, module, out, *files):
    readme = read(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'README.md')).decode()
    folder = f'wharf-{version}.dist-info'
    members = {f'wharf/{os.path.basename(path)}': read(path) for path in (module, *sorted(files))}
    members[f'{folder}/METADATA'] = METADATA.format(version=version, readme=readme).encode()
    members[f'{folder}/WHEEL'] = WHEEL.encode()
    record = ''.join(record_line(*member) for member in members.items()) + f'{folder}/RECORD,,\n'
    path = os.path.join(out, f'wharf-{version}-{TAG}.whl')
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as wheel:
        for name, data in {**members, f'{folder}/RECORD': record.encode()}.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    print(path)


if __name__ == '__main__':
    main(*sys.argv[1:])
