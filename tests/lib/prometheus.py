#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/lib/prometheus.py: reads the text format of Prometheus, and takes nothing that is not by it.

    prometheus.py check FILE            says what is wrong and where
    prometheus.py value FILE METRIC [LABEL=VALUE...]
                                        the sum of the samples that have these labels
    prometheus.py same FILE JSON        whether `wharf stats --json` says the same
    prometheus.py grown BEFORE AFTER    whether all counters are as large as they were, or larger
"""
import json
import math
import re
import sys

NAME = r'[a-zA-Z_:][a-zA-Z0-9_:]*'
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
HELP = re.compile(rf'# HELP ({NAME}) ((?:[^\\\n]|\\[\\n])*)')
TYPE = re.compile(rf'# TYPE ({NAME}) (counter|gauge|histogram|untyped)')
SAMPLE = re.compile(rf'({NAME})(?:\{{(.*)\}})? (\S+)')
VALUE = re.compile(r'NaN|[+-]Inf|-?\d+(\.\d+)?(e[+-]?\d+)?')


class Wrong(Exception):
    """What is wrong with a text."""


def read_labels(text):
    labels, at = {}, 0
    while text and at < len(text):
        match = LABEL.match(text, at)
        if not match:
            raise Wrong(f'no label at {text[at:]!r}')
        name, value = match.groups()
        if name in labels:
            raise Wrong(f'label {name} twice')
        labels[name] = re.sub(r'\\(.)', lambda m: '\n' if m[1] == 'n' else m[1], value)
        at = match.end()
        if at < len(text):
            if text[at] != ',' or at + 1 == len(text):
                raise Wrong(f'no comma between labels at {text[at:]!r}')
            at += 1
    return labels


def suffixes(kind):
    return ('_bucket', '_sum', '_count') if kind == 'histogram' else ('',)


class Family:
    """A metric with its samples: (suffix, labels, value)."""

    def __init__(self, name, help_text):
        self.name, self.help, self.kind, self.samples, self.seen = name, help_text, None, [], set()

    def add(self, name, labels, value):
        if not self.kind:
            raise Wrong(f'{name} before its TYPE')
        for suffix in suffixes(self.kind):
            if name == self.name + suffix:
                key = (suffix, *sorted(labels.items()))
                if key in self.seen:
                    raise Wrong(f'{name} {labels} twice')
                self.seen.add(key)
                if ('le' in labels) != (suffix == '_bucket'):
                    raise Wrong(f'{name} {labels}: le is for buckets')
                self.samples.append((suffix, labels, value))
                return
        raise Wrong(f'{name} is no sample of {self.name}, a {self.kind}')

    def groups(self):
        """Of a histogram: by labels without le, [buckets, sum, count]."""
        groups = {}
        for suffix, labels, value in self.samples:
            key = tuple(sorted((n, v) for n, v in labels.items() if n != 'le'))
            group = groups.setdefault(key, [[], None, None])
            if suffix == '_bucket':
                group[0].append((labels['le'], value))
            else:
                group[1 if suffix == '_sum' else 2] = value
        return groups

    def check(self):
        if not self.samples or not self.kind:
            raise Wrong(f'{self.name} has no samples')
        if (self.kind == 'counter') != self.name.endswith('_total'):
            raise Wrong(f'{self.name} is a {self.kind}: counters alone end in _total')
        if self.kind == 'counter' and any(v < 0 for _, _, v in self.samples):
            raise Wrong(f'{self.name} counts below 0')
        for key, (buckets, total, count) in (self.groups() if self.kind == 'histogram' else {}).items():
            bounds = [float(le) for le, _ in buckets]
            counts = [value for _, value in buckets]
            if bounds != sorted(set(bounds)) or not bounds or bounds[-1] != math.inf:
                raise Wrong(f'{self.name} {key}: buckets {bounds}')
            if counts != sorted(counts) or counts[-1] != count or total is None:
                raise Wrong(f'{self.name} {key}: counts {counts} of {count}')


def read(path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    families, family = {}, None
    # Of a scrape, the line that tells that it is whole.
    text = text.removesuffix('# EOF\n')
    if text and not text.endswith('\n'):
        raise Wrong('the last line does not end')
    for number, line in enumerate(text.split('\n')[:-1], 1):
        try:
            if match := HELP.fullmatch(line):
                if match[1] in families:
                    raise Wrong(f'{match[1]} comes twice')
                family = families[match[1]] = Family(*match.groups())
            elif match := TYPE.fullmatch(line):
                if not family or family.name != match[1] or family.kind:
                    raise Wrong('TYPE does not follow its HELP')
                family.kind = match[2]
            elif (match := SAMPLE.fullmatch(line)) and VALUE.fullmatch(match[3]) and family:
                family.add(match[1], read_labels(match[2]), float(match[3]))
            else:
                raise Wrong('neither HELP nor TYPE nor sample')
        except Wrong as wrong:
            raise Wrong(f'line {number}: {wrong}: {line!r}') from None
    for family in families.values():
        family.check()
    if not families:
        raise Wrong('there is nothing')
    return families


def value_of(families, metric, wanted):
    pairs = dict(pair.split('=', 1) for pair in wanted)
    total = 0
    for family in families.values():
        for suffix, labels, value in family.samples:
            if family.name + suffix == metric and pairs.items() <= labels.items():
                total += value
    return f'{total:.10g}'


def from_json(path):
    """The same as (name, kind, help, {labels: value or [buckets, sum, count]})."""
    with open(path, encoding='utf-8') as file:
        document = json.load(file)
    for family in document['families']:
        samples = {}
        for sample in family['samples']:
            key = tuple(sorted(sample['labels'].items()))
            samples[key] = sample.get('value')
            if family['type'] == 'histogram':
                buckets = [(b['le'], b['count']) for b in sample['buckets']]
                samples[key] = [buckets, sample['sum'], sample['count']]
        yield family['name'], family['type'], family['help'], samples


def from_families(families):
    for family in families.values():
        samples = {tuple(sorted(labels.items())): value for _, labels, value in family.samples}
        yield (family.name, family.kind, family.help.replace('\\\\', '\\'),
               family.groups() if family.kind == 'histogram' else samples)


# What goes by time or by the asking itself.
RESTLESS = ('process_cpu_seconds_total', 'process_resident_memory_bytes',
            'process_virtual_memory_bytes', 'process_open_fds', 'wharf_log_messages_total',
            'wharf_uptime_seconds', 'wharf_connections_total', 'wharf_sessions_total',
            'wharf_doorbells_total', 'wharf_workers_busy', 'wharf_all_connections_total',
            'wharf_all_sessions_total', 'wharf_all_doorbells_total')


def same(families, path):
    one, other = ([f for f in fs if f[0] not in RESTLESS]
                  for fs in (from_families(families), from_json(path)))
    if one != other:
        raise Wrong(f'not the same: {[pair for pair in zip(one, other) if pair[0] != pair[1]]}')


def grown(before, after):
    for name, family in before.items():
        later = {(s, *sorted(l.items())): v for s, l, v in after[name].samples}
        for suffix, labels, value in family.samples:
            now = later.get((suffix, *sorted(labels.items())))
            if family.kind != 'gauge' and (now is None or now < value):
                raise Wrong(f'{name}{suffix} {labels} went from {value} to {now}')


def main():
    command, path, *rest = sys.argv[1:]
    try:
        families = read(path)
        if command == 'value':
            print(value_of(families, rest[0], rest[1:]))
        elif command == 'same':
            same(families, rest[0])
        elif command == 'grown':
            grown(families, read(rest[0]))
    except Wrong as wrong:
        print(f'{path}: {wrong}', file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
