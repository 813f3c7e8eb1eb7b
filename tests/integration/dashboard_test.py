#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""dashboard_test.py [--build FOLDER]: every query of systemd/wharf.dashboard.json, on a real daemon's metrics.

A daemon with the GPU's code does work, good and bad, and refuses some.  Each query then has samples; each metric is
there, and so is each label that a query or a legend names.  Reports in the Test Anything Protocol.
"""
import argparse
import os
import re
import subprocess
import sys
import zlib

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import alert_rules  # noqa: E402  pylint: disable=wrong-import-position
import dashboard  # noqa: E402  pylint: disable=wrong-import-position
import private_daemon  # noqa: E402  pylint: disable=wrong-import-position
import prometheus  # noqa: E402  pylint: disable=wrong-import-position
import wharf_client as wc  # noqa: E402  pylint: disable=wrong-import-position

DASHBOARD = dashboard.read()
# Of Prometheus' own.
ADDED = {'instance'}


def work(daemon):
    """Good data and bad, and an arena that is refused."""
    client = wc.Client(daemon.socket, arena_nbytes=1 << 20)
    stream = zlib.compress(bytes(5000))
    for data, result in (stream, 0), (bytes(1) + stream[1:], 1):
        client.arena.write(0, data)
        client.submit(opcode=2, job_class=1, codec=2, user_data=1, src_nbytes=len(data), dst_offset=1 << 16,
                      dst_nbytes=5000, publish=True)
        done, = client.wait(1)
        assert (done['result'] == 0) == (result == 0), done
    try:
        wc.Client(daemon.socket, arena_nbytes=2 << 20)
        raise AssertionError('the arena was not refused')
    except wc.Refused:
        pass
    return client


def scrape(build, daemon, name):
    path = f'{daemon.folder}/{name}'
    with open(path, 'wb') as file:
        subprocess.run([f'{build}/wharf', 'stats', '--socket', daemon.socket, '--prometheus'], stdout=file, check=True)
    return path


def check_query(paths, expression, legend):
    """What is wrong with it, or ''."""
    metrics = {}
    for family in prometheus.read(paths[-1]).values():
        for suffix, labels, _ in family.samples:
            metrics.setdefault(family.name + suffix, set()).update(labels)
    there = set(ADDED)
    for metric, labels in dashboard.selectors(expression):
        if metric not in metrics:
            return f'{metric} is no metric'
        if 'instance' not in labels:
            return f'{metric} is not of the machines that were chosen'
        if unknown := set(labels) - metrics[metric] - ADDED:
            return f'{metric} has no label {unknown}'
        there |= metrics[metric]
    if unknown := dashboard.labels_named(expression, legend) - there:
        return f'there is no label {unknown}'
    found = alert_rules.fires(dashboard.for_daemon(expression), paths)
    if not found:
        return 'it has no samples'
    legends = set(re.findall(r'\{\{(\w+)\}\}', legend)) - ADDED
    if any(legends - {name for name, _ in key} for key in found):
        return f'the legend names {legends}, and there is {next(iter(found))}'
    return ''


def queries_have_samples(paths):
    for title, expression, legend in dashboard.queries(DASHBOARD):
        wrong = check_query(paths, expression, legend)
        assert not wrong, f'{title}: {expression}: {wrong}'


def check_takes_no_other_query(paths):
    """Else what it says of the dashboard's would say little."""
    machine = dashboard.MACHINE
    for expression, legend in ((f'wharf_upp{{{machine}}}', ''), ('wharf_up', ''),
                               (f'wharf_up{{{machine}, colour="red"}}', ''), (f'wharf_up{{{machine}}}', '{{tenant}}'),
                               (f'sum by (colour) (wharf_up{{{machine}}})', ''),
                               (f'sum by (engine) (wharf_jobs_total{{{machine}}})', '{{tenant}}'),
                               (f'wharf_up{{{machine}}} > 1', '')):
        assert check_query(paths, expression, legend), expression
    for expression in 'wharf_up{', 'rate(wharf_up)', 'sum(wharf_up)', 'wharf_up wharf_up', 'topk(1, wharf_up)':
        try:
            alert_rules.fires(expression, paths)
        except (AssertionError, AttributeError):
            continue
        raise AssertionError(f'{expression} was taken')


def panels_are_whole(_):
    """What Grafana needs of each, and what people do; none lies over another one."""
    numbers, places = [], set()
    for panel in DASHBOARD['panels']:
        numbers.append(panel['id'])
        place = panel['gridPos']
        assert place['x'] + place['w'] <= 24, panel['title']
        cells = {(x, y) for x in range(place['x'], place['x'] + place['w'])
                 for y in range(place['y'], place['y'] + place['h'])}
        assert not cells & places, f'{panel["title"]} lies over another panel'
        places |= cells
    assert len(set(numbers)) == len(numbers)
    titles = [panel['title'] for panel in dashboard.panels(DASHBOARD)]
    assert len(set(titles)) == len(titles) and len(titles) > 15, titles
    for panel in dashboard.panels(DASHBOARD):
        assert panel['description'].endswith('.') and panel['fieldConfig']['defaults']['unit'], panel['title']
        assert panel['datasource'] == {'type': 'prometheus', 'uid': '${datasource}'}, panel['title']
        names = [target['refId'] for target in panel['targets']]
        assert names and len(set(names)) == len(names), panel['title']
    assert [one['name'] for one in DASHBOARD['templating']['list']] == ['datasource', 'instance']


TESTS = queries_have_samples, check_takes_no_other_query, panels_are_whole


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    build = os.path.join(TOP, parser.parse_args().build)
    failed = 0
    print(f'1..{len(TESTS)}')
    daemon = private_daemon.Daemon(f'{build}/wharfd', sections='[gpu]\nengine = simt\ndevice = 0\n'
                                   '[quota]\nmax_arena = 1M\n')
    try:
        paths = [scrape(build, daemon, 'before')]
        client = work(daemon)
        paths.append(scrape(build, daemon, 'after'))
        client.close()
        # A counter that is new has no increase yet.
        client = work(daemon)
        paths.append(scrape(build, daemon, 'later'))
        client.close()
        for number, test in enumerate(TESTS, 1):
            word = 'ok'
            try:
                test(paths)
            except AssertionError as error:
                word, failed = 'not ok', failed + 1
                print(re.sub('^', '# ', str(error) or repr(error), flags=re.M))
            print(f'{word} {number} - {test.__name__}', flush=True)
    finally:
        daemon.remove()
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
