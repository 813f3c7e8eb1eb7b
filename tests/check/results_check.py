#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the pages' tables of results, and the plots, with the rows that they are made of.

Reports in the Test Anything Protocol.
"""
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]


def main():
    done = subprocess.run([TOP / 'tests/bench/write-results', '--check'], capture_output=True,
                          text=True, check=False)
    print(f'{"not " * (done.returncode != 0)}ok 1 - tables of results are those of the rows')
    for line in (done.stdout + done.stderr).splitlines():
        print(f'# {line}')
    print('1..1')
    return done.returncode


if __name__ == '__main__':
    sys.exit(main())
