#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tree_rules_check.py: tree_check.py finds what it is there to find.

Lays out small trees, each with one thing wrong or nothing, and looks at what the rules about
altitudes, circles and lengths say of them.  In the Test Anything Protocol.
"""
import os
import sys
import tempfile

import tree_check

# Two folders of the daemon, one above the other, and nothing wrong.
GOOD = {
    'daemon/core/one.h': 'void wharf_one(void);\n',
    'daemon/core/one.c': '#include "daemon/core/one.h"\nvoid wharf_one(void)\n{\n}\n',
    'daemon/cpu/two.h': 'void wharf_two(void);\n',
    'daemon/cpu/two.c': '#include "daemon/cpu/two.h"\n#include "daemon/core/one.h"\n'
                        'void wharf_two(void)\n{\n    wharf_one();\n}\n',
}
INCLUDES_UPWARDS = {'daemon/core/one.c': '#include "daemon/cpu/two.h"\n'}
# By a declaration of its own, so that no include shows it.
CALLS_UPWARDS = {'daemon/core/one.c': 'void wharf_two(void);\nvoid wharf_one(void)\n{\n    wharf_two();\n}\n'}
INCLUDES_A_PEER = {'daemon/gpu/three.c': '#include "daemon/cpu/two.h"\n'}
NAMES_IN_A_COMMENT = {'daemon/core/one.c': '/* As wharf_two() does: "daemon/cpu/two.h". */\nint wharf_x;\n'}
# Of three, by includes of headers alone.
CIRCLE_OF_HEADERS = {
    'encoders/a.h': '#include "encoders/b.h"\n',
    'encoders/b.h': '#include "encoders/c.h"\n',
    'encoders/c.h': '#include "encoders/a.h"\n',
}
# Two sources that call each other by way of one header, as a header of a whole folder has it.
CIRCLE_OF_CALLS = {
    'clientlib/all.h': 'void wharf_a(void);\nvoid wharf_b(void);\n',
    'clientlib/a.c': '#include "clientlib/all.h"\nvoid wharf_a(void)\n{\n    wharf_b();\n}\n',
    'clientlib/b.c': '#include "clientlib/all.h"\nvoid wharf_b(void)\n{\n    wharf_a();\n}\n',
}
# A static function of the same name is another one.
SAME_NAME = {
    'clientlib/all.h': 'void wharf_a(void);\nvoid wharf_b(void);\n',
    'clientlib/a.c': '#include "clientlib/all.h"\nvoid wharf_a(void)\n{\n    wharf_b();\n}\n',
    'clientlib/b.c': 'static void wharf_a(void)\n{\n}\nvoid wharf_b(void)\n{\n    wharf_a();\n}\n',
}


# One word more than allowed, and no more when marks of tables are left out.
LONG_PAGE = {'README.md': 'word ' * 1001}
PAGE_OF_TABLES = {'README.md': '| word ' * 1000 + '|\n'}

ALTITUDE, CIRCLES = tree_check.rule_daemon_goes_by_altitude, tree_check.rule_no_circles
PAGES = tree_check.rule_pages_are_short
# What the rule is asked, of which tree, and what its first line has to begin with: None, nothing.
CASES = (
    ('altitude_of_a_good_tree', ALTITUDE, GOOD, None),
    ('no_circle_in_a_good_tree', CIRCLES, GOOD, None),
    ('include_upwards_is_found', ALTITUDE, {**GOOD, **INCLUDES_UPWARDS},
     'daemon/core/one -> daemon/cpu/two: includes it'),
    ('call_upwards_is_found', ALTITUDE, {**GOOD, **CALLS_UPWARDS},
     'daemon/core/one -> daemon/cpu/two: wharf_two'),
    ('include_of_a_peer_is_found', ALTITUDE, {**GOOD, **INCLUDES_A_PEER},
     'daemon/gpu/three.c -> daemon/cpu/two: includes it'),
    ('comments_are_no_uses', ALTITUDE, {**GOOD, **NAMES_IN_A_COMMENT}, None),
    ('circle_of_two_units_is_found', CIRCLES, {**GOOD, **INCLUDES_UPWARDS},
     'circle of 2: daemon/core/one daemon/cpu/two'),
    ('circle_of_headers_is_found', CIRCLES, CIRCLE_OF_HEADERS,
     'circle of 3: encoders/a.h encoders/b.h encoders/c.h'),
    ('circle_of_calls_is_found', CIRCLES, CIRCLE_OF_CALLS,
     'circle of 2: clientlib/a.c clientlib/b.c'),
    ('static_name_is_no_circle', CIRCLES, SAME_NAME, None),
    ('long_page_is_found', PAGES, LONG_PAGE, 'README.md: 1001 words, more than 1000'),
    ('marks_of_tables_are_no_words', PAGES, PAGE_OF_TABLES, None),
)


def first_line(rule, tree):
    """What the rule says first of a tree: {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in tree.items():
            os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(folder, path), 'w', encoding='utf-8') as file:
                file.write(text)
        here = os.getcwd()
        os.chdir(folder)
        try:
            return next(iter(rule(tree_check.list_files('.'))), None)
        finally:
            os.chdir(here)


def main():
    failed = 0
    print(f'1..{len(CASES)}')
    for number, (name, rule, tree, expected) in enumerate(CASES, 1):
        said = first_line(rule, tree)
        failed += said != expected
        print(f'{"ok" if said == expected else "not ok"} {number} - {name}')
        if said != expected:
            print(f'# said: {said}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
