#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""callers.py [--build FOLDER] [--out FILE] [--repeat N] [PATTERN]: programs that exist, with `wharf run` and without.

Each program reads files that were made for it.  It must give the same output, files and exit status both ways.  The
table says which part of the bytes that zlib was asked for wharf inflated, and the processor time of both, the least of N
runs (3), turn by turn.  Programs that are not installed are skipped and named.  Rows go to FILE, one JSON object a line.
Reports in the Test Anything Protocol.
"""
import argparse
import datetime
import glob
import gzip
import hashlib
import http.server
import json
import os
import platform
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import zlib

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
# Debian's: h5py belongs to it.
PYTHON = '/usr/bin/python3'
STATS = re.compile(r'^wharf-preload: .*: \w+: (\d+) bytes taken, (\d+) declined$', re.M)
TIMES = re.compile(r'\d+\.\d+ ?m?s(ec)?')
MIB = 1 << 20


class Skipped(Exception):
    pass


class Case:
    """`make` puts what is read into the current folder; `command` reads it, and writes to its standard output and to
    files named out*.  At least `least` of what is inflated must be taken."""

    def __init__(self, name, needs, make, command, least=0.0):
        self.name, self.needs, self.make, self.command = name, needs, make, command
        self.least = least


# ---- data ----------------------------------------------------------------------------------------

def text(nbytes):
    """Lines as programs log them: they become a fifth."""
    chance = random.Random(1)
    words = [f'{chance.randrange(10 ** chance.randrange(1, 8))}' for _ in range(4000)]
    lines, size = [], 0
    while size < nbytes:
        line = ' '.join(chance.choices(words, k=12)) + '\n'
        lines.append(line)
        size += len(line)
    return ''.join(lines).encode()[:nbytes]


def write(name, data):
    with open(name, 'wb') as file:
        file.write(data)


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout


def make_gzip():
    write('a.gz', gzip.compress(text(40 * MIB), 6, mtime=0))


def make_small_streams():
    data = text(20 * MIB)
    parts = [zlib.compress(data[i:i + 65536]) for i in range(0, len(data), 65536)]
    write('sizes', ' '.join(str(len(part)) for part in parts).encode())
    write('parts', b''.join(parts))


def make_zip():
    run(PYTHON, '-c', 'import sys, zipfile; z = zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED)\n'
        'data = sys.stdin.buffer.read()\n'
        'for i in range(40): z.writestr(str(i), data[i << 20:i + 1 << 20])', input=text(40 * MIB))


def make_hdf5():
    run(PYTHON, '-c', 'import sys, h5py, numpy\n'
        'data = numpy.frombuffer(sys.stdin.buffer.read(), "u1").reshape(-1, 1024)\n'
        'h5py.File("a.h5", "w").create_dataset("a", data=data, chunks=(256, 1024), compression="gzip", '
        'shuffle=True)', input=text(40 * MIB))


def make_qcow2():
    write('raw', text(40 * MIB))
    run('qemu-img', 'convert', '-c', '-O', 'qcow2', 'raw', 'a.qcow2')
    os.remove('raw')


def make_repository():
    data = text(24 * MIB)
    run('git', 'init', '-q', 'repository')
    for i in range(400):
        write(f'repository/{i}', data[i * 60000:i * 60000 + 60000 + i])
    who = ['-c', 'user.name=a', '-c', 'user.email=a@b']
    run('git', '-C', 'repository', 'add', '.')
    run('git', '-C', 'repository', *who, 'commit', '-qm', 'all')
    run('git', '-C', 'repository', 'repack', '-adq')


def make_bam():
    chance = random.Random(2)
    lines = ['@SQ\tSN:1\tLN:100000000\n']
    for i in range(120000):
        bases = ''.join(chance.choices('ACGT', k=100))
        lines.append(f'r{i}\t0\t1\t{i * 700 + 1}\t60\t100M\t*\t0\t0\t{bases}\t{"I" * 100}\n')
    run('samtools', 'view', '-b', '-o', 'a.bam', '-', input=''.join(lines).encode())
    run('samtools', 'index', 'a.bam')


def make_vcf():
    lines = ['##fileformat=VCFv4.2\n##contig=<ID=1>\n'
             '##INFO=<ID=DP,Number=1,Type=Integer,Description="depth">\n'
             '#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n']
    lines += [f'1\t{i * 31 + 1}\trs{i}\tA\tC\t{i % 97}\tPASS\tDP={i % 211}\n' for i in range(400000)]
    write('a.vcf.gz', run('bgzip', '-c', input=''.join(lines).encode()))
    run('tabix', '-p', 'vcf', 'a.vcf.gz')


def make_tiff():
    """4096 times 4096 pixels, first as raw bytes with a header that GDAL reads."""
    data = bytes((x * y >> 6 ^ x) & 255 for y in range(64) for x in range(4096))
    write('raw.bil', data * 64)
    write('raw.hdr', b'nrows 4096\nncols 4096\nnbands 1\nnbits 8\nlayout bil\n')
    run('gdal_translate', '-q', '-co', 'COMPRESS=DEFLATE', 'raw.bil', 'a.tif')
    os.remove('raw.bil')


POSTGRES = (sorted(glob.glob('/usr/lib/postgresql/*/bin')) or ['/usr/lib/postgresql/bin'])[-1]


def make_dump():
    """A table of a private server, which refuses to run as root."""
    os.chmod('.', 0o755)
    os.mkdir('server')
    who = []
    if os.geteuid() == 0:
        shutil.chown('server', 'postgres')
        who = ['runuser', '-u', 'postgres', '--']
    home = os.path.abspath('server')
    write('table', text(24 * MIB))
    with open(f'{home}/log', 'wb') as log:
        run(*who, f'{POSTGRES}/initdb', '-D', f'{home}/data', '-A', 'trust', '-N', '-U', 'postgres', stderr=log)
        subprocess.run([*who, f'{POSTGRES}/pg_ctl', '-D', f'{home}/data', '-w', '-o', f"-k {home} -h '' -F", 'start'],
                       check=True, stdout=log, stderr=log)
    try:
        at = ['-h', home, '-U', 'postgres']
        run(f'{POSTGRES}/psql', *at, '-c', 'CREATE TABLE lines (line text)')
        run(f'{POSTGRES}/psql', *at, '-c', '\\copy lines from table')
        run(f'{POSTGRES}/pg_dump', *at, '-Fc', '-f', 'a.dump', 'postgres')
    finally:
        run(*who, f'{POSTGRES}/pg_ctl', '-D', f'{home}/data', '-m', 'immediate', 'stop')
    shutil.rmtree(home)
    os.remove('table')


def make_page():
    write('a.gz', gzip.compress(text(20 * MIB), 6, mtime=0))


READ_PARTS = ('import zlib; data = open("parts", "rb").read(); at = 0; n = 0\\n'
              'for size in map(int, open("sizes").read().split()):\\n'
              '    n = zlib.crc32(zlib.decompress(data[at:at + size]), n); at += size\\n'
              'print(n)')
CASES = [
    Case('python3 gzip, whole', [PYTHON], make_gzip,
         f'{PYTHON} -c "import gzip, hashlib; print(hashlib.md5(gzip.open(\'a.gz\').read()).hexdigest())"', 0.9),
    Case('python3 gzip, lines', [PYTHON], make_gzip,
         f'{PYTHON} -c "import gzip; print(sum(len(line) for line in gzip.open(\'a.gz\')))"', 0.9),
    Case('python3 zlib, 64 KiB each', [PYTHON], make_small_streams,
         f'{PYTHON} -c "$(printf \'{READ_PARTS.replace(chr(39), "")}\')"', 0.9),
    Case('python3 zipfile', [PYTHON], make_zip, f'{PYTHON} -m zipfile -t a.zip', 0.9),
    Case('python3 test_zlib', [PYTHON, '/usr/lib/python3.11/test/test_zlib.py'], lambda: None,
         f'{PYTHON} -m unittest -q test.test_zlib 2>&1', 0.9),
    Case('python3 test_gzip', [PYTHON, '/usr/lib/python3.11/test/test_gzip.py'], lambda: None,
         f'{PYTHON} -m unittest -q test.test_gzip 2>&1', 0.9),
    Case('python3 test_zipfile', [PYTHON, '/usr/lib/python3.11/test/test_zipfile.py'], lambda: None,
         f'{PYTHON} -m unittest -q test.test_zipfile 2>&1', 0.9),
    Case('h5py', ['/usr/lib/python3/dist-packages/h5py'], make_hdf5,
         f'{PYTHON} -c "import h5py; print(h5py.File(\'a.h5\')[\'a\'][:].sum())"', 0.9),
    Case('qemu-img convert', ['qemu-img'], make_qcow2, 'qemu-img convert -O raw a.qcow2 out', 0.9),
    Case('git fsck', ['git'], make_repository, 'git -C repository fsck --full --no-progress 2>&1'),
    Case('pg_restore', ['pg_restore', f'{POSTGRES}/initdb'], make_dump, f"{POSTGRES}/pg_restore -f - a.dump | sed '/restrict/d'"),
    Case('samtools view', ['samtools'], make_bam, 'samtools view a.bam'),
    Case('bcftools query', ['bcftools', 'bgzip', 'tabix'], make_vcf,
         "bcftools query -f '%POS %DP\\n' a.vcf.gz"),
    Case('tabix', ['bgzip', 'tabix'], make_vcf, 'tabix a.vcf.gz 1:1-20000000'),
    Case('gdal_translate', ['gdal_translate'], make_tiff, 'gdal_translate -q -of ENVI a.tif out.bil'),
    Case('tiffcp', ['tiffcp', 'gdal_translate'], make_tiff, 'tiffcp -c none a.tif out.tif'),
    Case('curl --compressed', ['curl'], make_page, 'curl -s --compressed http://127.0.0.1:$PORT/a.gz'),
]


# ---- running -------------------------------------------------------------------------------------

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        with open('a.gz', 'rb') as file:
            data = file.read()
        self.send_response(200)
        self.send_header('Content-Encoding', 'gzip')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def run_once(case, wharf, port):
    """What came out, seconds of processors, and bytes taken and declined."""
    for name in os.listdir('.'):
        if name.startswith('out'):
            os.remove(name)
    environment = {**os.environ, 'PORT': str(port), 'LC_ALL': 'C.UTF-8', 'PYTHONDONTWRITEBYTECODE': '1',
                   'WHARF_PRELOAD_STATS': os.path.abspath('stats')}
    write('stats', b'')
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([*wharf, '/bin/sh', '-c', f'exec {case.command}'], env=environment, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    both = done.stdout.decode('latin-1'), done.stderr.decode('latin-1')
    found = hashlib.sha256()
    for words in both:
        found.update(TIMES.sub('', words).encode())
    for name in sorted(os.listdir('.')):
        if name.startswith('out'):
            with open(name, 'rb') as file:
                found.update(file.read())
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    with open('stats', encoding='ascii') as file:
        counts = STATS.findall(file.read())
    taken, declined = (sum(int(pair[i]) for pair in counts) for i in (0, 1))
    return (done.returncode, found.hexdigest()), seconds, taken, declined, both


def measure(case, wharf, repeat, port):
    missing = [need for need in case.needs if not shutil.which(need) and not os.path.exists(need)]
    if missing:
        raise Skipped(f'{missing[0]} is not installed')
    case.make()
    times = [], []
    for _ in range(repeat):
        plain, seconds, *_ = run_once(case, [], port)
        times[0].append(seconds)
        served, seconds, taken, declined, both = run_once(case, wharf, port)
        times[1].append(seconds)
        assert plain == served, f'{plain} without and {served} with:\n{both[0][-2000:]}\n{both[1][-2000:]}'
        # With what the tests' own failures would be, if there were any, both ways are alike.
        assert plain[0] == 0, f'exit status {plain[0]}:\n{both[0][-2000:]}\n{both[1][-2000:]}'
    whole = taken + declined
    assert taken >= case.least * whole and (whole or not case.least), f'{taken} of {whole} bytes were taken'
    return {'program': case.name, 'taken_nbytes': taken, 'declined_nbytes': declined, 'repetitions': repeat,
            'clock': 'processor', 'min_s': round(min(times[1]), 4), 'peer': 'zlib',
            'peer_min_s': round(min(times[0]), 4), 'times_peer': round(min(times[0]) / min(times[1]), 3)}


def first_line(command):
    try:
        return run('sh', '-c', command, stderr=subprocess.DEVNULL).decode().strip().splitlines()[0]
    except (subprocess.CalledProcessError, IndexError):
        return 'unknown'


def of_all_rows():
    return {'date': datetime.date.today().isoformat(), 'bench': 'callers',
            'revision': first_line(f'git -C {TOP} rev-parse --short HEAD'),
            'cpu': first_line("sed -n 's/^model name.*: //p' /proc/cpuinfo"), 'cores': os.cpu_count(),
            'kernel': platform.release()}


def say(row):
    whole = row['taken_nbytes'] + row['declined_nbytes']
    share = f"{100 * row['taken_nbytes'] / whole:5.1f} % of {whole / MIB:6.1f} MiB" if whole else 'asks no zlib'
    print(f"# {row['program']:26} {share:24} {row['peer_min_s']:7.3f} s without {row['min_s']:7.3f} s with "
          f"{row['times_peer']:6.2f} times", flush=True)


def run_case(case, wharf, repeat):
    """In a folder of its own, which a server shows."""
    folder = tempfile.mkdtemp(prefix='wharf-callers.')
    here = os.getcwd()
    os.chdir(folder)
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        return measure(case, wharf, repeat, server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        os.chdir(here)
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.environ.get('BUILD', 'build/release'))
    parser.add_argument('--out')
    parser.add_argument('--repeat', type=int, default=3)
    parser.add_argument('pattern', nargs='?', default='.')
    options = parser.parse_args()
    wharf = [os.path.join(TOP, options.build, 'wharf'), 'run']
    cases = [case for case in CASES if re.search(options.pattern, case.name)]
    rows, failed = [], 0
    print(f'1..{len(cases)}', flush=True)
    for number, case in enumerate(cases, 1):
        word, end = 'ok', ''
        try:
            rows.append({**of_all_rows(), **run_case(case, wharf, options.repeat)})
            say(rows[-1])
        except Skipped as reason:
            end = f' # SKIP {reason}'
        except (AssertionError, subprocess.SubprocessError) as error:
            word, failed = 'not ok', failed + 1
            print(re.sub('^', '# ', str(error), flags=re.M))
        print(f'{word} {number} - {case.name}{end}', flush=True)
    if options.out:
        with open(options.out, 'a', encoding='utf-8') as file:
            file.writelines(json.dumps(row) + '\n' for row in rows)
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
