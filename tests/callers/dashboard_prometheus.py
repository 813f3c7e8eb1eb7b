#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""dashboard_prometheus.py [--build FOLDER]: the dashboard's queries and the alert rules, in Debian's Prometheus.

promtool looks at the rules and at a daemon's metrics.  Prometheus scrapes them, from a server of this program's own on
the loopback, and answers each query of systemd/wharf.dashboard.json.  Skipped where Prometheus is not installed.  Reports
in the Test Anything Protocol.
"""
import argparse
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import dashboard  # noqa: E402  pylint: disable=wrong-import-position
import private_daemon  # noqa: E402  pylint: disable=wrong-import-position
import wharf_client as wc  # noqa: E402  pylint: disable=wrong-import-position

RULES = os.path.join(TOP, 'systemd', 'wharf.rules.yml')
CONFIGURATION = '''
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs: [{{job_name: wharf, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}]
'''


def scrape(build, daemon):
    return subprocess.run([f'{build}/wharf', 'stats', f'--scrape={daemon.socket}.metrics'], check=True,
                          stdout=subprocess.PIPE).stdout


def serve(build, daemon):
    """The daemon's metrics by HTTP; each scrape finds that some more was done."""
    client = wc.Client(daemon.socket, arena_nbytes=1 << 20)
    stream = zlib.compress(bytes(5000))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # pylint: disable=invalid-name
            client.arena.write(0, stream)
            client.submit(opcode=2, job_class=1, codec=2, user_data=1, src_nbytes=len(stream), dst_offset=1 << 16,
                          dst_nbytes=5000, publish=True)
            client.wait(1)
            text = scrape(build, daemon)
            self.send_response(200)
            self.send_header('Content-Type', 'text/plain; version=0.0.4')
            self.send_header('Content-Length', str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Prometheus:
    def __init__(self, folder, target):
        with open(f'{folder}/configuration', 'w', encoding='ascii') as file:
            file.write(CONFIGURATION.format(rules=RULES, port=target))
        server = http.server.HTTPServer(('127.0.0.1', 0), http.server.BaseHTTPRequestHandler)
        self.address = f'127.0.0.1:{server.server_address[1]}'
        server.server_close()
        with open(f'{folder}/log', 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                ['prometheus', f'--config.file={folder}/configuration', f'--storage.tsdb.path={folder}/data',
                 f'--web.listen-address={self.address}'], stdout=log, stderr=log)

    def ask(self, query):
        """The result's samples; an error of the query's is raised."""
        url = f'http://{self.address}/api/v1/query?' + urllib.parse.urlencode({'query': query})
        try:
            with urllib.request.urlopen(url, timeout=wc.PATIENCE_S) as answer:
                return json.load(answer)['data']['result']
        except urllib.error.HTTPError as error:
            raise AssertionError(f'{query}: {error.read().decode()}') from None

    def wait_for_scrapes(self, n):
        end = time.monotonic() + 2 * wc.PATIENCE_S
        while time.monotonic() < end:
            try:
                found = self.ask('count_over_time(wharf_up[5m])')
                if found and int(found[0]['value'][1]) >= n:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError('Prometheus does not scrape')

    def end(self):
        self.process.terminate()
        self.process.wait()


def promtool(*words, text=None):
    done = subprocess.run(['promtool', 'check', *words], input=text, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()


def promtool_takes_metrics_and_rules(build, daemon, _):
    promtool('metrics', text=scrape(build, daemon))
    promtool('rules', RULES)


def prometheus_answers_each_query(_, __, prometheus):
    prometheus.wait_for_scrapes(4)
    for title, expression, legend in dashboard.queries(dashboard.read()):
        found = prometheus.ask(expression.replace('$instance', '.*').replace('$__rate_interval', '5m'))
        assert found, f'{title}: {expression}: it has no samples'
        for label in re.findall(r'\{\{(\w+)\}\}', legend):
            assert all(label in one['metric'] for one in found), f'{title}: {label} is not in {found[0]["metric"]}'


def prometheus_evaluates_each_rule(_, __, prometheus):
    with urllib.request.urlopen(f'http://{prometheus.address}/api/v1/rules', timeout=wc.PATIENCE_S) as answer:
        rules = [rule for group in json.load(answer)['data']['groups'] for rule in group['rules']]
    assert len(rules) > 8, rules
    for rule in rules:
        assert rule['health'] in ('ok', 'unknown') and not rule.get('lastError'), rule
        assert rule['state'] == 'inactive', rule


TESTS = promtool_takes_metrics_and_rules, prometheus_answers_each_query, prometheus_evaluates_each_rule


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    build = os.path.join(TOP, parser.parse_args().build)
    failed = 0
    print(f'1..{len(TESTS)}', flush=True)
    if not shutil.which('prometheus') or not shutil.which('promtool'):
        for number, test in enumerate(TESTS, 1):
            print(f'ok {number} - {test.__name__} # SKIP Prometheus is not installed')
        return 0
    daemon = private_daemon.Daemon(f'{build}/wharfd', sections='[gpu]\nengine = simt\ndevice = 0\n')
    with tempfile.TemporaryDirectory() as folder:
        server = serve(build, daemon)
        prometheus = Prometheus(folder, server.server_address[1])
        try:
            for number, test in enumerate(TESTS, 1):
                word = 'ok'
                try:
                    test(build, daemon, prometheus)
                except AssertionError as error:
                    word, failed = 'not ok', failed + 1
                    print(re.sub('^', '# ', str(error) or repr(error), flags=re.M))
                print(f'{word} {number} - {test.__name__}', flush=True)
        finally:
            prometheus.end()
            server.shutdown()
            daemon.remove()
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
