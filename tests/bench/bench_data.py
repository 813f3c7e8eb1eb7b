# SPDX-License-Identifier: Apache-2.0
"""The data sets that benchmarks run on: columns made by a program, and real files."""
import datetime
import gzip
import os
import pathlib
import platform
import random
import subprocess
import zipfile

COLUMNS = ('mc0', 'mc3', 'tpc', 'tpt', 'cd2', 'tc2', 'hrg')
# As columns.c says; the other files are bytes.
TYPES = {'mc0': 'u64', 'mc3': 'u32', 'tpc': 'i8', 'tpt': 'u8', 'cd2': 'u32', 'tc2': 'u64',
         'hrg': 'u8'}
OTHERS = ('dickens', 'nci', 'taxi.csv')
# Bytes that are exponentially distributed over the byte range, with the rate that the name ends
# with: the data of the paper on Recoil.
RANDOMS = ('rand_10', 'rand_50', 'rand_100', 'rand_200', 'rand_500')
RANDOM_NBYTES = 10_000_000
SEED = 1


def cpu_name():
    for line in pathlib.Path('/proc/cpuinfo').read_text(encoding='ascii').splitlines():
        if line.startswith('model name'):
            return line.partition(':')[2].strip()
    return platform.machine()


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def circumstances(revision=None, compiler=None):
    """What is the same for all rows of a run; what is not given is asked for."""
    return {
        'date': datetime.date.today().isoformat(),
        'cpu': cpu_name(),
        'cores': len(os.sched_getaffinity(0)),
        'kernel': platform.release(),
        'compiler': compiler or output_of('gcc', '--version').splitlines()[0],
        'revision': revision or output_of('git', 'describe', '--always', '--dirty'),
    }


def unpacked(path):
    """The contents of a file as it is, of a .gz, or of the one member of a .zip."""
    if path.suffix == '.zip':
        with zipfile.ZipFile(path) as archive:
            return archive.read(archive.namelist()[0])
    if path.suffix == '.gz':
        return gzip.decompress(path.read_bytes())
    return path.read_bytes()


def find_other(folder, name):
    """The contents of a data set found by its name, at any depth; or None."""
    for suffix in ('', '.zip', '.gz'):
        for path in sorted(folder.rglob(name + suffix)):
            return unpacked(path)
    if name == 'taxi.csv':
        # The trips' own files, one a month.
        months = sorted(folder.rglob('*tripdata*.csv.gz'))
        if months:
            return b''.join(unpacked(path) for path in months)
    return None


def make_random(folder, name, nbytes=RANDOM_NBYTES):
    """The path of one of RANDOMS, which is made where it is missing: the same on every machine."""
    path = folder / name
    if not path.exists() or path.stat().st_size != nbytes:
        folder.mkdir(parents=True, exist_ok=True)
        source, rate = random.Random(SEED), int(name.partition('_')[2]) / 256
        path.write_bytes(bytes(min(255, int(source.expovariate(rate))) for _ in range(nbytes)))
    return path


def make_data(columns_program, folder, data_folder, complain, column_nbytes=16 << 20,
              other_nbytes=None):
    """Paths of the data sets, which are made in `folder` where they are missing, the others cut
    off at other_nbytes.  What is not in data_folder (or None) is complained of and left out."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name in COLUMNS:
        path = folder / name
        if not path.exists() or path.stat().st_size != column_nbytes:
            command = [str(columns_program), name, str(column_nbytes), str(SEED)]
            path.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
        paths.append(path)
    for name in OTHERS if data_folder else ():
        path = folder / name
        if not path.exists():
            contents = find_other(pathlib.Path(data_folder), name)
            if contents is None:
                complain(f'no {name} in {data_folder}')
                continue
            path.write_bytes(contents[:other_nbytes])
        paths.append(path)
    return paths
