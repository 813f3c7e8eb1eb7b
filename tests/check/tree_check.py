#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tree_check.py [FOLDER]: rules of the source tree that no compiler looks at.

Reports in the Test Anything Protocol, one test a rule.  A rule is a function whose name begins
with rule_: it takes the list of files and yields one line for each thing that breaks it.
"""
import os
import re
import sys

from arrows import Arrows

# Which top folders a file in each may include from.  The order of the tree: proto at the bottom.
MAY_INCLUDE = {
    'proto': {'proto'},
    'encoders': {'proto', 'encoders'},
    'kernels': {'proto', 'encoders', 'kernels'},
    'daemon': {'proto', 'encoders', 'kernels', 'daemon'},
    'clientlib': {'proto', 'encoders', 'clientlib'},
    'clientlib/cuda': {'proto', 'encoders', 'kernels', 'clientlib'},
}
# The daemon's folders by altitude: each depends on those below it alone.  None of two at the same
# altitude depends on the other.
ALTITUDES = ({'base'}, {'core'}, {'schedule'}, {'placement'}, {'dispatch'}, {'cpu', 'gpu', 'disposable'}, {'control'})
TOP_FOLDERS = {*MAY_INCLUDE, 'systemd', 'tests'}
TOP_FILES = {'Makefile', 'README.md', 'LICENSE'}

CODE = ('.c', '.h', '.cc', '.cu', '.cuh')
# Data for tests: whatever bytes, under whatever names.
DATA = ('tests/vectors/', 'tests/fuzz/corpus/', 'tests/bench/results/')
# Of these there may be one in several folders.
COMMON_NAMES = {'README.md'}
MAX_LINES = 1000
# Files whose form has no room for a comment.
UNCOMMENTED = {f'systemd/debian/{name}' for name in ('changelog', 'copyright', 'source/format')}

# Pages that people read from beginning to end: the most words that each may have, tables and code
# included.  A word is what holds a letter or a digit between two blanks.
MOST_WORDS = {
    ('README.md',): 1000,
    ('daemon/DESIGN.md',): 4000,
    ('daemon/SECURITY.md',): 1200,
    ('kernels/KERNELS.md',): 2500,
    ('kernels/EPOCH.md',): 1200,
    ('kernels/rans/RANS.md',): 1200,
    ('kernels/deflate/DEFLATE.md', 'kernels/LZ.md', 'kernels/RUN_LENGTHS.md'): 2400,
    ('tests/README.md',): 1600,
    ('tests/bench/RESULTS.md',): 1000,
}

# Written so that this file does not break its own rule.
LEFTOVERS = re.compile(r'\b(' + '|'.join(('TO' 'DO', 'FIX' 'ME', 'X' 'XX')) + r')\b')

# Commits, by their abbreviated names, and words that compare with a past that readers have not seen.
HISTORY = re.compile(r'\b(since then|as ever|(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])(?:[0-9a-f]{7}|[0-9a-f]{40}))\b')


def list_files(folder):
    """All files of the tree as paths relative to it, without builds and version control."""
    found = []
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if f not in ('build', '.git', '__pycache__'))
        found += (os.path.relpath(os.path.join(at, name), folder)
                  for name in sorted(names) if name != '.git')
    return found


def is_text(path):
    return not path.startswith(DATA) or path.endswith('.json')


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def rule_top_level_is_fixed(files):
    """The top level holds the folders and files that the README explains, and dotfiles."""
    for path in files:
        top, _, rest = path.partition('/')
        if top.startswith('.') or (top in TOP_FOLDERS if rest else top in TOP_FILES):
            continue
        yield path


def rule_includes_go_downwards(files):
    """proto <- encoders <- kernels <- daemon, and clientlib <- proto, encoders; and clientlib/cuda
    <- kernels."""
    by_name = {os.path.basename(path): path for path in files}
    for path in files:
        allowed = MAY_INCLUDE.get(os.path.dirname(path), MAY_INCLUDE.get(path.split('/')[0]))
        if not allowed or not path.endswith(CODE):
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            included = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not included:
                continue
            target = included.group(1)
            # A plain name stands for the file of that name, as in an installed header.
            top = (target if '/' in target else by_name.get(target, target)).split('/')[0]
            if top in TOP_FOLDERS and top not in allowed:
                yield f'{path}:{number}: includes {target}'


def rule_daemon_goes_by_altitude(files):
    """A folder of the daemon includes, and calls, what lies below it."""
    altitude = {folder: height for height, at in enumerate(ALTITUDES) for folder in at}
    arrows = Arrows(files, read)
    for unit, targets in sorted(arrows.of.items()):
        for target, why in sorted(targets.items()):
            folders = [path.split('/')[1] for path in (unit, target) if path.startswith('daemon/')]
            if len(folders) < 2 or folders[0] == folders[1] or not altitude.keys() >= {*folders}:
                continue
            if altitude[folders[0]] <= altitude[folders[1]]:
                yield f'{unit} -> {target}: {why}'


def rule_no_circles(files):
    """arrows.py says what a circle is."""
    arrows = Arrows(files, read)
    for circle in arrows.circles():
        yield f'circle of {len(circle)}: {" ".join(circle)}'
        yield from arrows.within(circle)


def rule_file_names_are_unique(files):
    first = {}
    for path in files:
        name = os.path.basename(path)
        if path.startswith(DATA) or name in COMMON_NAMES or name.startswith('.'):
            continue
        if name in first:
            yield f'{path} and {first[name]}'
        first.setdefault(name, path)


def rule_files_name_their_licence(files):
    """The first lines hold an SPDX line; prose and data are under LICENSE as a whole."""
    for path in files:
        if path == 'LICENSE' or path.endswith(('.md', '.json', '.pb')) or path.startswith(DATA):
            continue
        if path in UNCOMMENTED:
            continue
        if 'SPDX-License-Identifier: Apache-2.0' not in '\n'.join(read(path).splitlines()[:5]):
            yield path


def rule_files_are_short(files):
    for path in files:
        if path.endswith(CODE + ('.py', '.sh')) and read(path).count('\n') > MAX_LINES:
            yield f'{path}: over {MAX_LINES} lines'


def rule_nothing_is_left_to_do(files):
    for path in filter(is_text, files):
        for number, line in enumerate(read(path).splitlines(), 1):
            if LEFTOVERS.search(line):
                yield f'{path}:{number}: {line.strip()}'


def rule_text_is_clean(files):
    """No trailing blanks, no tabs in code, a newline at the end."""
    for path in filter(is_text, files):
        if path == 'LICENSE':
            continue
        text = read(path)
        if text and not text.endswith('\n'):
            yield f'{path}: no newline at the end'
        for number, line in enumerate(text.splitlines(), 1):
            if line != line.rstrip() or path.endswith(CODE) and '\t' in line:
                yield f'{path}:{number}: trailing blanks or tabs'


def rule_scripts_read_pipes_to_their_end(files):
    """`grep -q` ends at the first match: under pipefail whoever writes more fails the test now and then."""
    for path in files:
        if path.startswith('tests/') and path.endswith('.sh'):
            text = read(path)
            for match in re.finditer(r'(?<!\|)\|\s*grep -[a-zA-Z]*q', text):
                yield f'{path}:{text.count(chr(10), 0, match.end()) + 1}: has_line of tests/lib/tap.sh reads all'


def rule_scripts_are_executable(files):
    for path in filter(is_text, files):
        starts = read(path).startswith('#!')
        if starts != os.access(path, os.X_OK):
            yield f'{path}: {"not executable" if starts else "executable, but no script"}'


def rule_links_in_documents_lead_somewhere(files):
    for path in files:
        if not path.endswith('.md'):
            continue
        for target in re.findall(r'\]\(([^)#:]+)[^):]*\)', read(path)):
            if not os.path.exists(os.path.join(os.path.dirname(path), target)):
                yield f'{path}: link to {target}'


def rule_reference_pages_tell_no_history(files):
    """No commits and no "since then": a page says what is.  Results name what they were taken of."""
    for path in files:
        if not path.endswith('.md') or path.startswith('tests/bench/'):
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            if HISTORY.search(line):
                yield f'{path}:{number}: {line.strip()}'


def rule_pages_are_short(files):
    """What does not fit goes to the manual pages, to --help, or to tests/bench/notes."""
    for pages, most in MOST_WORDS.items():
        words = [word for path in pages if path in files for word in read(path).split()]
        n_words = sum(any(letter.isalnum() for letter in word) for word in words)
        if n_words > most:
            yield f'{" ".join(pages)}: {n_words} words, more than {most}'


def rule_codecs_have_their_folders(files):
    """Every row of the list has its format header and its vectors."""
    rows = re.findall(r'^\s*X\([A-Z0-9_]+, (\w+), \d+,', read('encoders/wharf_codec.h'), re.M)
    if not rows:
        yield 'encoders/wharf_codec.h: no row found'
    for name in rows:
        if f'encoders/{name}/{name}_format.h' not in files:
            yield f'encoders/{name}/{name}_format.h is missing'
        # There are no bad bytes to store.
        for kind in ('ok',) if name == 'stored' else ('ok', 'bad'):
            if not any(path.startswith(f'tests/vectors/{name}/{kind}/') for path in files):
                yield f'tests/vectors/{name}/{kind}/ is empty'


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else '.')
    files = list_files('.')
    rules = [(name, rule) for name, rule in sorted(globals().items()) if name.startswith('rule_')]
    failed = 0
    print(f'1..{len(rules)}')
    for number, (name, rule) in enumerate(rules, 1):
        broken = list(rule(files))
        failed += bool(broken)
        print(f'{"not ok" if broken else "ok"} {number} - {name.removeprefix("rule_")}')
        for line in broken:
            print(f'# {line}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
