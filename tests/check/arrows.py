# SPDX-License-Identifier: Apache-2.0
"""arrows.py: which file of the tree depends on which, and the circles of these.

A *unit* is a header with the source of the same name beside it, or either alone.  An *arrow* leads
from one unit to another that it includes, or that defines a function or a variable which it names.
So a header whose names several sources define is no detour round the rule: who calls one of them
depends on the source that has it.  A *circle* is units that all depend on each other.

Sources are read as text, not compiled.  A name that several files define (one for each engine, or
for each processor) is an arrow to all of them in the same folder, and to none elsewhere.
"""
import os
import re

SOURCES = ('.c', '.cc', '.cu')
HEADERS = ('.h', '.cuh')
# Folders where plain includes are looked for, as the Makefile has them.
INCLUDE_FOLDERS = ('', 'proto/', 'encoders/')

COMMENT_OR_TEXT = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
FUNCTION = re.compile(r'^[\w\s*]*?\b(\w+) ?\(')
VARIABLE = re.compile(r'^(?:const )?(?:struct |enum )?\w+ \**(?:const )?(\w+)(?:\[[^\]]*\])* ?(?:=.*)?$')
TYPE = re.compile(r'^(?:struct|enum|union) \w+(?: \{\})?$')
# Every program has the one or the other.
ENTRY_POINTS = {'main', 'LLVMFuzzerTestOneInput'}


def without_comments(text):
    """The code, with all string literals empty."""
    return COMMENT_OR_TEXT.sub(lambda found: ' ' if found[0][0] == '/' else '""', text)


def statements(code):
    """Declarations and definitions at file scope; {} stands for a body."""
    code = re.sub(r'extern\s+""\s*\{', '', DIRECTIVE.sub('', code))
    outer, depth = [], 0
    for part in re.split(r'([{}])', code):
        if part == '{':
            depth += 1
            outer += ['{};'] if depth == 1 else []
        elif part == '}':
            depth = max(0, depth - 1)
        elif depth == 0:
            outer.append(part)
    return (' '.join(statement.split()) for statement in ''.join(outer).split(';'))


def defined_names(code):
    """Functions and variables that are defined here, each with whether it is static."""
    for statement in statements(code):
        if re.search(r'\b(?:typedef|extern)\b', statement):
            continue
        is_static = bool(re.search(r'\bstatic\b', statement))
        function = FUNCTION.match(statement)
        if function and '=' not in statement.split('(')[0]:
            if statement.endswith('{}') and function[1] not in ENTRY_POINTS:
                yield function[1], is_static
            continue
        variable = VARIABLE.match(statement)
        if variable and not TYPE.match(statement):
            yield variable[1], is_static


class Arrows:
    """of[unit]: the units that it depends on, each with why: the name, or an include."""

    def __init__(self, paths, read):
        self.files = {path for path in paths if path.endswith(SOURCES + HEADERS)}
        self.by_name = {}
        for path in sorted(self.files):
            self.by_name.setdefault(os.path.basename(path), path)
        texts = {path: read(path) for path in self.files}
        code = {path: without_comments(text) for path, text in texts.items()}
        declared = {name for path in self.files if path.endswith(HEADERS)
                    for name in re.findall(r'\w+', code[path])}
        self.definers, own = {}, {}
        for path in sorted(self.files):
            own[path] = dict(defined_names(code[path]))
            for name, is_static in own[path].items() if path.endswith(SOURCES) else ():
                # Outside tests any other name is another library's, which is defined in its place.
                if name in declared and not is_static and \
                        (name.startswith('wharf_') or path.startswith('tests/')):
                    self.definers.setdefault(name, set()).add(path)
        self.of = {}
        for path in sorted(self.files):
            self.add_includes(path, texts[path])
            if path.endswith(SOURCES):
                # A type of the same name is no use of it.
                code_of_values = re.sub(r'\b(?:struct|enum|union) \w+', '', code[path])
                self.add_uses(path, set(re.findall(r'\w+', code_of_values)) - own[path].keys())

    def unit(self, path):
        stem, ending = os.path.splitext(path)
        others = SOURCES if ending in HEADERS else HEADERS
        return stem if any(stem + other in self.files for other in others) else path

    def add(self, path, target, why):
        arrows = self.of.setdefault(self.unit(path), {})
        if self.unit(target) != self.unit(path):
            arrows.setdefault(self.unit(target), why)

    def add_includes(self, path, text):
        self.of.setdefault(self.unit(path), {})
        for included in INCLUDE.findall(text):
            found = [folder + included for folder in INCLUDE_FOLDERS
                     if folder + included in self.files]
            if not found and '/' not in included and included in self.by_name:
                found = [self.by_name[included]]
            if found:
                self.add(path, found[0], 'includes it')

    def add_uses(self, path, names):
        for name in sorted(names & self.definers.keys()):
            definers = self.definers[name]
            if len(definers) > 1:
                definers = {other for other in definers
                            if os.path.dirname(other) == os.path.dirname(path)}
            for definer in sorted(definers):
                # Programs of tests define what they replace.
                if definer.startswith('tests/') <= path.startswith('tests/'):
                    self.add(path, definer, name)

    def circles(self):
        """Tarjan's strongly connected components of more than one unit."""
        index, lowest, stack, on_stack, found = {}, {}, [], set(), []

        def visit(unit):
            index[unit] = lowest[unit] = len(index)
            stack.append(unit)
            on_stack.add(unit)
            for target in self.of.get(unit, ()):
                if target not in index:
                    visit(target)
                    lowest[unit] = min(lowest[unit], lowest[target])
                elif target in on_stack:
                    lowest[unit] = min(lowest[unit], index[target])
            if lowest[unit] != index[unit]:
                return
            circle = set()
            while unit not in circle:
                circle.add(stack.pop())
            on_stack.difference_update(circle)
            if len(circle) > 1:
                found.append(sorted(circle))

        for unit in sorted(self.of):
            if unit not in index:
                visit(unit)
        return sorted(found)

    def within(self, circle):
        """One line for each arrow of a circle."""
        for unit in circle:
            for target, why in sorted(self.of[unit].items()):
                if target in circle:
                    yield f'{unit} -> {target}: {why}'
