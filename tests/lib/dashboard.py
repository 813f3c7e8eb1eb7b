# SPDX-License-Identifier: Apache-2.0
"""dashboard.py: reads systemd/wharf.dashboard.json, and what its queries name."""
import json
import os
import re

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'systemd', 'wharf.dashboard.json')
# Prometheus adds it to what a daemon says.
MACHINE = 'instance=~"$instance"'
SELECTOR = re.compile(r'\b(wharf_\w+|process_\w+)(\{[^}]*\})?')
BY = re.compile(r'\bby \(([^)]*)\)')


def read():
    with open(PATH, encoding='utf-8') as file:
        return json.load(file)


def panels(dashboard):
    """Those that show something."""
    return [panel for panel in dashboard['panels'] if panel['type'] != 'row']


def queries(dashboard):
    """(panel's title, expression, legend)"""
    return [(panel['title'], target['expr'], target['legendFormat'])
            for panel in panels(dashboard) for target in panel['targets']]


def for_daemon(expression):
    """As it is asked of one daemon's own words: without the machine, and Grafana's range as some minutes."""
    expression = re.sub(r'\{' + re.escape(MACHINE) + r',? *', '{', expression).replace('{}', '')
    return expression.replace('$__rate_interval', '5m').replace('sum by (instance) ', 'sum by (version) ')


def selectors(expression):
    """(metric, labels of its matchers)"""
    return [(match[1], re.findall(r'(\w+)(?:=~|!=|!~|=)', match[2] or '')) for match in SELECTOR.finditer(expression)]


def labels_named(expression, legend):
    """Those that it sums by, and those of the legend."""
    found = {label.strip() for match in BY.finditer(expression) for label in match[1].split(',')}
    return found | set(re.findall(r'\{\{(\w+)\}\}', legend))
