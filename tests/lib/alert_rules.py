# SPDX-License-Identifier: Apache-2.0
"""alert_rules.py: reads alert rules and evaluates their expressions, and a dashboard's, on scraped text.

It knows of PromQL what systemd/wharf.rules.yml and wharf.dashboard.json use, and takes nothing else: selectors with
equal and matching labels, ranges, `/`, a number less a vector, comparisons, `or`, time, absent, changes, increase, rate,
histogram_quantile and sum by.  A range is what was scraped so far, whatever its length, and takes one second.
"""
import math
import re
import time

import prometheus

TOKEN = re.compile(r'\s*(?:(\d+(?:\.\d+)?)|([a-zA-Z_:]\w*)|"([^"]*)"|(==|!=|=~|<=|>=|[<>(){}\[\],=/-]))')
RANGE = re.compile(r'\s*\d+[smhd]\s*\]')
COMPARE = {'==': lambda a, b: a == b, '!=': lambda a, b: a != b, '<': lambda a, b: a < b,
           '>': lambda a, b: a > b, '<=': lambda a, b: a <= b, '>=': lambda a, b: a >= b}


def read_rules(path):
    """{alert: expression}; every rule has a summary and a description."""
    rules, alert = {}, None
    with open(path, encoding='utf-8') as file:
        text = file.read()
    for line in text.split('\n'):
        if match := re.fullmatch(r' +- alert: (\w+)', line):
            alert = match[1]
        elif match := re.fullmatch(r' +expr: (.*)', line):
            assert alert not in rules, f'{alert} comes twice'
            rules[alert] = match[1]
    for word in ('alert', 'expr', 'summary', 'description', 'labels'):
        assert len(re.findall(rf'\b{word}:', text)) == len(rules), word
    return rules


class Evaluator:
    """Of one expression on scrapes, the last of which is now.  A vector is {labels: value}, the
    labels a sorted tuple; a number stays one."""

    def __init__(self, text, scrapes):
        self.text, self.at, self.scrapes = text, 0, scrapes

    def peek(self):
        match = TOKEN.match(self.text, self.at)
        return match[0].strip() if match else None

    def take(self, expected=None):
        match = TOKEN.match(self.text, self.at)
        assert match and expected in (None, match[0].strip()), f'{self.text}: at {self.at}'
        self.at = match.end()
        return match[0].strip()

    def value(self):
        value = self.comparison()
        while self.peek() == 'or':
            self.take()
            value = {**self.comparison(), **value}
        assert not self.text[self.at:].strip(), f'{self.text}: at {self.at}'
        return value

    def comparison(self):
        left = self.difference()
        if self.peek() not in COMPARE:
            return left
        compare = COMPARE[self.take()]
        return self.match(left, self.quotient(), lambda a, b: a if compare(a, b) else None)

    def difference(self):
        left = self.quotient()
        if self.peek() != '-':
            return left
        self.take()
        return {key: left - value for key, value in self.quotient().items()}

    def quotient(self):
        left = self.term()
        while self.peek() == '/':
            self.take()
            left = self.match(left, self.term(),
                              lambda a, b: a / b if b else math.copysign(math.inf, a) if a else math.nan)
        return left

    @staticmethod
    def match(left, right, combine):
        if not isinstance(right, dict):
            pairs = [(key, value, right) for key, value in left.items()]
        else:
            pairs = [(key, value, right[key]) for key, value in left.items() if key in right]
        values = [(key, combine(a, b)) for key, a, b in pairs]
        return {key: value for key, value in values if value is not None}

    def term(self):
        word = self.take()
        if word[0].isdigit():
            return float(word)
        if word == 'sum':
            return self.sum_by()
        if self.peek() != '(':
            return self.select(word)[-1]
        self.take('(')
        result = getattr(self, f'call_{word}')()
        self.take(')')
        return result

    def sum_by(self):
        self.take('by')
        self.take('(')
        labels = [self.take()]
        while self.peek() == ',':
            self.take()
            labels.append(self.take())
        self.take(')')
        self.take('(')
        result = {}
        for key, value in self.comparison().items():
            kept = tuple((name, text) for name, text in key if name in labels)
            result[kept] = result.get(kept, 0.0) + value
        self.take(')')
        return result

    def select(self, name):
        """The metric in each scrape."""
        wanted = {}
        if self.peek() == '{':
            self.take()
            while self.peek() != '}':
                label = self.take()
                matches = self.take() == '=~'
                text = self.take()[1:-1]
                wanted[label] = re.compile(text if matches else re.escape(text))
                if self.peek() == ',':
                    self.take()
            self.take('}')
        return [{tuple(sorted(labels.items())): value for family in scrape.values()
                 for suffix, labels, value in family.samples
                 if family.name + suffix == name and
                 all(text.fullmatch(labels.get(label, '')) for label, text in wanted.items())}
                for scrape in self.scrapes]

    def series(self):
        vectors = self.select(self.take())
        self.take('[')
        match = RANGE.match(self.text, self.at)
        assert match, f'{self.text}: no range'
        self.at = match.end()
        return vectors

    @staticmethod
    def call_time():
        return time.time()

    def call_absent(self):
        return {} if self.comparison() else {(): 1.0}

    def call_changes(self):
        vectors = self.series()
        return {key: float(sum(a[key] != b[key] for a, b in zip(vectors, vectors[1:])
                               if key in a and key in b)) for key in vectors[-1]}

    def call_increase(self):
        """Over what was scraped: one sample alone is no range.  A counter that goes back began anew."""
        vectors, result = self.series(), {}
        for key in vectors[-1]:
            values = [vector[key] for vector in vectors if key in vector]
            if len(values) > 1:
                result[key] = sum(b - a if b >= a else b for a, b in zip(values, values[1:]))
        return result

    def call_rate(self):
        return self.call_increase()

    def call_histogram_quantile(self):
        quantile = float(self.take())
        self.take(',')
        histograms = {}
        for key, count in self.term().items():
            labels = dict(key)
            bound = float(labels.pop('le'))
            histograms.setdefault(tuple(sorted(labels.items())), []).append((bound, count))
        return {key: self.quantile_of(sorted(buckets), quantile)
                for key, buckets in histograms.items()}

    @staticmethod
    def quantile_of(buckets, quantile):
        total = buckets[-1][1]
        if not total:
            return math.nan
        before = (0.0, 0.0)
        for bound, count in buckets:
            if count >= quantile * total:
                if bound == math.inf:
                    return before[0]
                return before[0] + (bound - before[0]) * (quantile * total - before[1]) / (count - before[1])
            before = (bound, count)
        return math.inf


def fires(expression, paths):
    """The label sets for which the expression holds on these scrapes, files in order."""
    return Evaluator(expression, [prometheus.read(path) for path in paths]).value()
