#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""alerts_test.py [--build FOLDER]: each rule of systemd/wharf.rules.yml, by what it is to tell of.

A test provokes the condition in a daemon of its own, scrapes before and after by `wharf stats
--scrape`, and evaluates the rule's expression on the text.  Nothing fires where all is well.
"""
import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zlib

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
sys.path.insert(0, os.path.join(TOP, 'tests', 'lib'))
sys.dont_write_bytecode = True
import alert_rules  # noqa: E402  pylint: disable=wrong-import-position
import wharf_client as wc  # noqa: E402  pylint: disable=wrong-import-position

RULES = alert_rules.read_rules(os.path.join(TOP, 'systemd', 'wharf.rules.yml'))
HEALTHY = '[gpu]\nengine = cpu\n[cpu]\nworkers = 1\n'


class Service:
    """A daemon in a folder of its own, and what was scraped of it."""

    def __init__(self, build, folder, config):
        self.build, self.folder, self.scrapes, self.process = build, folder, [], None
        self.socket, self.metrics = f'{folder}/s', f'{folder}/s.metrics'
        self.configure(config)

    def configure(self, config):
        with open(f'{self.folder}/config', 'w', encoding='ascii') as file:
            file.write(config)

    def start(self):
        with open(f'{self.folder}/log', 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                [f'{self.build}/wharfd', '--socket', self.socket, '--config', f'{self.folder}/config'],
                stderr=log)
        self.wait_for('serves with')

    def says(self):
        with open(f'{self.folder}/log', encoding='utf-8') as log:
            return log.read()

    def wait_for(self, text):
        self.until(lambda: text in self.says())

    def until(self, condition):
        end = time.monotonic() + wc.PATIENCE_S
        while not condition():
            assert time.monotonic() < end, self.says()
            time.sleep(0.005)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            assert self.process.wait(wc.PATIENCE_S) == 0

    def scrape(self):
        path = f'{self.folder}/scrape.{len(self.scrapes)}'
        with open(path, 'wb') as file:
            subprocess.run([f'{self.build}/wharf', 'stats', f'--scrape={self.metrics}'], stdout=file,
                           check=True)
        self.scrapes.append(path)
        return path

    def value(self, selector):
        """The sum of all samples that it selects, now."""
        return sum(alert_rules.fires(selector, [self.scrape()]).values())

    def fires(self, alert):
        """The label sets that the rule holds for, on all that was scraped."""
        return [dict(key) for key in alert_rules.fires(RULES[alert], self.scrapes)]


def nothing_fires_where_all_is_well(service):
    service.start()
    client = wc.Client(service.socket)
    service.scrape()
    client.run(opcode=1, user_data=1)
    service.scrape()
    client.close()
    for alert in RULES:
        assert service.fires(alert) == [], alert


def down(service):
    """Nobody is there; it is there; it has stopped, and scraping does not start it."""
    service.scrape()
    assert service.fires('WharfDown') == [{}]
    service.start()
    service.scrape()
    assert service.fires('WharfDown') == []
    # One that hangs says nothing within a second.
    service.process.send_signal(signal.SIGSTOP)
    service.scrape()
    service.process.send_signal(signal.SIGCONT)
    assert service.fires('WharfDown') == [{}]
    service.stop()
    assert not os.path.exists(service.metrics)
    service.scrape()
    assert service.fires('WharfDown') == [{}]


def metrics_old(service):
    """The file stays as it was when it was written last, and says that all is well."""
    service.start()
    written = service.scrape()
    with open(written, encoding='utf-8') as file:
        text = file.read()
    for age_s, expected in ((60, []), (600, [{'file': '/var/lib/node_exporter/wharf.prom'}])):
        os.utime(written, (time.time() - age_s,) * 2)
        with open(f'{service.folder}/exporter', 'w', encoding='utf-8') as file:
            # As node_exporter shows what it has read.
            file.write(text.replace('# EOF\n', '') + '# HELP node_textfile_mtime_seconds When.\n'
                       '# TYPE node_textfile_mtime_seconds gauge\nnode_textfile_mtime_seconds'
                       '{file="/var/lib/node_exporter/wharf.prom"} ' + f'{os.stat(written).st_mtime}\n')
        service.scrapes = [f'{service.folder}/exporter']
        assert service.fires('WharfMetricsOld') == expected, service.fires('WharfMetricsOld')
        assert service.fires('WharfDown') == []


def restarts(service):
    # Every program that Prometheus knows of has this one.
    assert not any('process_' in rule for rule in RULES.values())
    for _ in range(4):
        service.start()
        service.scrape()
        service.stop()
    assert service.fires('WharfRestarts') == [{}]


def configuration_refused(service):
    service.start()
    service.scrape()
    service.configure('[quota]\nweight = none\n')
    service.process.send_signal(signal.SIGHUP)
    service.wait_for('the configuration stays as it was')
    taken = service.value('wharf_config_last_reload_success_timestamp_seconds')
    assert service.fires('WharfConfigurationRefused') == [{}]
    service.configure(HEALTHY)
    service.process.send_signal(signal.SIGHUP)
    service.wait_for('read the configuration again')
    assert service.value('wharf_config_last_reload_success_timestamp_seconds') > taken
    assert service.fires('WharfConfigurationRefused') == []


def gpu_lost(service):
    """One that is missing from the start on, though the engine is `auto`; the log says so too."""
    service.configure('[gpu]\nengine = auto\ndevice = 0\nexpected = 2\nstart_timeout = 100ms\n')
    service.start()
    service.wait_for('of 2 GPUs that are expected ')
    service.scrape()
    assert service.fires('WharfGpuLost') == [{}]


def gpu_workers_end(service):
    service.configure('[gpu]\nengine = simt\ndevice = 0\n')
    service.start()
    service.scrape()
    assert service.fires('WharfGpuLost') == []
    os.kill(int(re.search(r'GPU 0: worker (\d+) is ready', service.says())[1]), signal.SIGKILL)
    service.until(lambda: service.value('wharf_gpu_workers_ended_total') == 1)
    assert service.fires('WharfGpuWorkersEnd') == [{'gpu': '0'}]


def quota_nearly_used(service):
    service.configure(HEALTHY + '[quota]\nmax_connections = 20\n')
    service.start()
    clients = [wc.Connection(service.socket) for _ in range(18)]
    service.until(lambda: service.value('wharf_connections') == 18)
    assert service.fires('WharfQuotaNearlyUsed') == []
    clients.append(wc.Connection(service.socket))
    service.until(lambda: service.value('wharf_connections') == 19)
    assert service.fires('WharfQuotaNearlyUsed') == [
        {'tenant': f'uid:{os.getuid()}', 'limit': 'max_connections'}]
    for client in clients:
        client.close()


def total_nearly_used(service):
    service.configure(HEALTHY + '[total]\nowners = 1\nmax_connections = 20\n')
    service.start()
    clients = [wc.Connection(service.socket) for _ in range(19)]
    service.until(lambda: service.value('wharf_all_connections') == 19)
    assert service.fires('WharfTotalNearlyUsed') == [{'limit': 'max_connections'}]
    for client in clients:
        client.close()


def refuses(service):
    service.configure(HEALTHY + '[quota]\nmax_arena = 1M\n')
    service.start()
    service.scrape()
    try:
        wc.Client(service.socket, arena_nbytes=2 << 20)
        raise AssertionError('the arena was not refused')
    except wc.Refused:
        pass
    service.scrape()
    assert service.fires('WharfRefuses') == [{'limit': 'max_arena'}]
    assert service.value(f'wharf_refused_total{{limit="max_arena",tenant="uid:{os.getuid()}"}}') == 1


def interactive_jobs_slow(service):
    """Many at once that take long, by one worker."""
    nbytes = 24 << 20
    stream = zlib.compress(bytes(nbytes), 1)
    service.start()
    service.scrape()
    client = wc.Client(service.socket, arena_nbytes=nbytes + (1 << 20))
    client.arena.write(0, stream)
    for number in range(60):
        client.submit(opcode=2, job_class=1, codec=2, user_data=number, src_nbytes=len(stream),
                      dst_offset=1 << 20, dst_nbytes=nbytes, publish=number == 59)
    assert {done['result'] for done in client.wait(60)} == {0}
    client.close()
    service.scrape()
    assert service.fires('WharfInteractiveJobsSlow') == [{'class': 'interactive'}]


def log_incomplete(service):
    """More messages about clients than are written."""
    service.start()
    service.scrape()
    for _ in range(40):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.connect(service.socket)
            client.send(b'garbage')
            try:
                while client.recv(4096):
                    pass
            except ConnectionResetError:
                pass
    service.scrape()
    assert service.fires('WharfLogIncomplete') == [{'reason': 'limit'}]


TESTS = {'WharfDown': down, 'WharfMetricsOld': metrics_old, 'WharfRestarts': restarts,
         'WharfConfigurationRefused': configuration_refused,
         'WharfGpuLost': gpu_lost, 'WharfGpuWorkersEnd': gpu_workers_end,
         'WharfQuotaNearlyUsed': quota_nearly_used, 'WharfTotalNearlyUsed': total_nearly_used,
         'WharfRefuses': refuses, 'WharfInteractiveJobsSlow': interactive_jobs_slow,
         'WharfLogIncomplete': log_incomplete, None: nothing_fires_where_all_is_well}
assert set(TESTS) == {*RULES, None}, 'a rule without a test, or a test without a rule'


def run(test, build):
    """What went wrong, as lines of a comment; nothing if it is good."""
    with tempfile.TemporaryDirectory(prefix='wharf-alerts.') as folder:
        service = Service(build, folder, HEALTHY)
        try:
            test(service)
            service.stop()
            return ''
        except Exception as error:  # pylint: disable=broad-exception-caught
            said = service.says() if service.process else ''
            return re.sub('^', '# ', f'{error!r}\nthe daemon said:\n{said}', flags=re.M) + '\n'
        finally:
            if service.process:
                service.process.kill()
                service.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    build = os.path.join(TOP, parser.parse_args().build)
    failed = 0
    print(f'1..{len(TESTS)}')
    for number, test in enumerate(TESTS.values(), 1):
        wrong = run(test, build)
        failed += wrong != ''
        print(f'{wrong}{"not ok" if wrong else "ok"} {number} - {test.__name__}', flush=True)
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
