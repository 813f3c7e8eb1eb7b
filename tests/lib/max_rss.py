#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""max_rss.py FILE COMMAND...: runs COMMAND and writes its peak memory in KiB to FILE.

Exits as the command does; 128 + N for one that signal N ended.
"""
import os
import subprocess
import sys

process = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(process.pid, 0)
with open(sys.argv[1], 'w', encoding='utf-8') as file:
    file.write(f'{usage.ru_maxrss}\n')
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
