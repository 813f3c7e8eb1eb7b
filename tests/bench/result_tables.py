# SPDX-License-Identifier: Apache-2.0
"""Tables of results, made of the rows in tests/bench/results.

Of rows that tell the same thing the last one counts, and beside it the peer's of the same date and
revision; where that run had none, the peer's last one, which the line under the table then says.  Means
are geometric.
"""
import json
import math
import pathlib

RESULTS = pathlib.Path(__file__).resolve().parent / 'results'
RANDOMS = ('rand_10', 'rand_50', 'rand_100', 'rand_200', 'rand_500')
DATA = ('dickens', 'hrg', 'cd2', 'taxi.csv', 'tpc', 'nci', 'tpt', 'mc0', 'mc3', 'tc2')
COLUMNS = ('mc0', 'mc3', 'tpc', 'tpt', 'cd2', 'tc2', 'hrg')


def rows_of(kind):
    """The rows of all files DATE-KIND.jsonl, in the order of their dates."""
    rows = []
    for path in sorted(RESULTS.glob(f'????-??-??-{kind}.jsonl')):
        with open(path, encoding='utf-8') as file:
            rows += map(json.loads, file)
    return rows


def number(value):
    """Three digits, or as many as stand before the point."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f'{value:.{digits}f}'


def mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def table(head, lines):
    yield '| ' + ' | '.join(head) + ' |'
    yield '|' + ' --- |' * len(head)
    for line in lines:
        yield '| ' + ' | '.join(line) + ' |'


# What was measured before it was a commit, by what the rows call it: results/README.md has all such names.
MEASURED_BEFORE = {'0a1ef74-preload': '0a1ef74 with one-shot calls of libzstd and liblz4',
                   'eb1e362-uniform': 'eb1e362 with what is 5cbb51b',
                   '8c30fc7-lz-block': '8c30fc7 with what is 8019687'}


def codec_of(row):
    return row.get('codec', '')


def revisions(rows, what=codec_of):
    """Dates and revisions of rows, in words; if there are several, each with what its rows are."""
    found = {}
    for row in rows:
        found.setdefault((row['date'], row['revision']), set()).add(what(row))
    for (date, revision), codecs in sorted(found.items()):
        whose = f'{", ".join(sorted(codecs))}: ' if len(found) > 1 else ''
        yield f'{whose}{date}, revision {MEASURED_BEFORE.get(revision, revision)}'


def source(file, rows, peers=(), what=codec_of):
    """Where the figures are from: a line, which says of a peer's when they are of another run."""
    runs = {(row['date'], row['revision']) for row in rows}
    others = [row for row in peers if (row['date'], row['revision']) not in runs]
    text = f'{file}, {"; ".join(revisions(rows, what))}'
    if others:
        text += f'; nvCOMP in another run: {"; ".join(revisions(others))}'
    yield ''
    yield f'<sub>Rows: {text}.</sub>'


# ---- device decoders --------------------------------------------------------------------------


def speed_rows(codec, peer, level=None):
    """{data: row, or (row, the peer's)}: chunks of 128 KiB, 512 MiB of output; of one level, if told."""
    found, peers, last_peers = {}, {}, {}
    rows = [row for row in rows_of('gpu') if row['mode'] == 'speed' and row['chunk'] == 128 << 10
            and row['chunks'] == 4096]
    for row in rows:
        if row['peer'] == 'nvcomp' and row['codec'] == peer:
            peers[row['data'], row['date'], row['revision']] = last_peers[row['data']] = row
    for row in rows:
        if row['peer'] != 'wharf' or row['codec'] != codec:
            continue
        # The kernels that the public call takes for so many chunks.
        if row.get('gpu_kernel', 'own') not in ('own', 'crew') or row.get('any_codec'):
            continue
        if level and row.get('level') != level:
            continue
        if not peer:
            found[row['data']] = row
        elif row['data'] in last_peers:
            found[row['data']] = (row, peers.get((row['data'], row['date'], row['revision']),
                                                 last_peers[row['data']]))
    return found


def ratio(pair):
    return pair[0]['GBps_median'] / pair[1]['GBps_median']


def beside_nvcomp(pairs, names):
    """GB/s of both and the ratio, a column for each data set."""
    rates = [[pairs[name][i]['GBps_median'] for name in names] for i in range(2)]
    yield from table(['', *names, 'mean'], [
        ['wharf', *map(number, rates[0]), number(mean(rates[0]))],
        ['nvCOMP 6.0', *map(number, rates[1]), number(mean(rates[1]))],
        ['ratio', *(f'{ratio(pairs[name]):.1f}' for name in names),
         f'{mean(rates[0]) / mean(rates[1]):.1f}']])
    yield from source('gpu.jsonl', *zip(*(pairs[name] for name in names)))


def deflate_gpu():
    pairs = speed_rows('deflate', 'deflate')
    yield from beside_nvcomp(pairs, [name for name in DATA if name in pairs])


def zstd_gpu():
    pairs = speed_rows('zstd', 'zstd')
    yield from beside_nvcomp(pairs, [name for name in DATA if name in pairs])


def rans_gpu():
    pairs = speed_rows('rans', 'ans', 11)
    yield from beside_nvcomp(pairs, [name for name in (*RANDOMS, *DATA) if name in pairs])


def lz_gpu():
    lines, used = [], []
    for codec, title in (('lz4', 'LZ4'), ('snappy', 'Snappy')):
        pairs = speed_rows(codec, codec)
        rates = [pairs[name][0]['GBps_median'] for name in DATA]
        ratios = [ratio(pairs[name]) for name in DATA]
        lines.append([title, *map(number, rates), number(mean(rates))])
        lines.append(['ratio', *(f'{value:.2f}' for value in ratios), f'{mean(ratios):.2f}'])
        used += [pairs[name] for name in DATA]
    yield from table(['', *DATA, 'mean'], lines)
    yield from source('gpu.jsonl', *zip(*used))


def rle_gpu():
    found = {codec: speed_rows(codec, None) for codec in ('rle1', 'rle2')}
    rates = {codec: [rows[name]['GBps_median'] for name in COLUMNS]
             for codec, rows in found.items()}
    yield from table(['', *COLUMNS, 'mean'], [
        [codec, *map(number, rates[codec]), number(mean(rates[codec]))] for codec in rates])
    yield from source('gpu.jsonl', [found[codec][name] for codec in found for name in COLUMNS])


# ---- sizes ------------------------------------------------------------------------------------


def rans_sizes():
    rows = {(row['data'], row['variation'], row['level']): row for row in rows_of('rans-sizes')
            if row['model'] == 'wharf'}
    names = ('rand_10', 'rand_50', 'rand_100', 'rand_200', 'rand_500', 'dickens')

    def whole(name, level):
        row = rows[name, 'single', level]
        return f'{row["in_nbytes"] / 1000:,.0f} ({row["paper_kb"]:,.0f})'

    def more(name, variation, level):
        row = rows[name, variation, level]
        return f'+{row["over_single_nbytes"] / 1000:.1f} ({row["paper_over_kb"]:.1f})'

    yield from table(
        ['', 'one stream, n = 11', 'n = 16', '2176 splits, n = 11', 'n = 16',
         '2176 partitions, n = 11', 'n = 16'],
        [[name, whole(name, 11), whole(name, 16),
          more(name, 'recoil large', 11), more(name, 'recoil large', 16),
          more(name, 'conventional large', 11), more(name, 'conventional large', 16)]
         for name in names])


# ---- processors -------------------------------------------------------------------------------


def cpu_deflate_rows():
    return {(row['data'], row['level']): row for row in rows_of('cpu')
            if row['what'] == 'decode' and row['codec'] == 'deflate' and row['threads'] == 1
            and row['peer'].startswith('libdeflate')}


def cpu_deflate():
    rows = cpu_deflate_rows()
    levels = sorted({level for _, level in rows})
    yield from table(['', *DATA], [
        [f'level {level}', *(f'{rows[name, level]["times_peer"]:.2f}' for name in DATA)]
        for level in levels])
    yield from source('cpu.jsonl', rows.values())


def cat_rows():
    return {(row['peer'].split()[0] + ' -@2' * ('-@2' in row['peer']), row['data']): row
            for row in rows_of('cpu') if row['what'].startswith('cat')}


CAT_TITLES = {'zcat': 'one member, zcat', 'bgzip': 'BGZF, `bgzip -dc`', 'bgzip -@2': 'BGZF, `bgzip -@2 -dc`'}


def cat_cpu():
    rows = cat_rows()
    names = [name for name in DATA if ('zcat', name) in rows]
    yield from table(['', *names], [
        [title, *(f'{rows[peer, name]["times_peer"]:.1f}' for name in names)]
        for peer, title in CAT_TITLES.items()])
    yield from source('cpu.jsonl', rows.values())


def callers_cpu():
    rows = {row['program']: row for row in rows_of('callers')}

    def share(row):
        whole = row['taken_nbytes'] + row['declined_nbytes']
        return f"{100 * row['taken_nbytes'] / whole:.1f} % of {whole / (1 << 20):.1f} MiB"

    yield from table(['program', 'taken', 'seconds without', 'with', 'speedup'], [
        [name, share(row), f"{row['peer_min_s']:.3f}", f"{row['min_s']:.3f}", f"{row['times_peer']:.2f}"]
        for name, row in rows.items()])
    yield from source('callers.jsonl', rows.values())


PRELOAD_LIBRARIES = ('zlib', 'zlib, calls of 8 KiB', 'libdeflate', 'libzstd', 'liblz4')


def preload_cells(rows, what):
    """Of each size of buffers the mean over data of how many times as fast, with the least and the most."""
    sizes = sorted({row['chunk_nbytes'] for row in rows if row['what'] == what})
    for size in sizes:
        ratios = [row['times_peer'] for row in rows if (row['what'], row['chunk_nbytes']) == (what, size)]
        yield f'{mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})'


def preload_cpu():
    rows = list({(row['what'], row['data'], row['chunk_nbytes']): row for row in rows_of('preload')}.values())
    single = [row for row in rows if row['chunk_nbytes']]
    lines = [[f'{library}{", declined" * (way != "preload")}', row['peer'], *preload_cells(rows, f'{way}: {library}')]
             for way in ('preload', 'preload declines') for library in PRELOAD_LIBRARIES
             for row in [next(row for row in single if row['what'] == f'{way}: {library}')]]
    yield from table(['calls of', 'beside', '16 KiB', '64 KiB', '1 MiB'], lines)
    yield from source('preload.jsonl', single)


def preload_gzip():
    rows = {(row['what'].partition(', ')[2], row['data']): row for row in rows_of('preload')
            if not row['chunk_nbytes']}
    names = list(dict.fromkeys(name for _, name in rows))
    ways = list(dict.fromkeys(way for way, _ in rows))

    def cells(way, member):
        values = [rows[way, name][member] for name in names]
        return [f'{value:.2f}' for value in (*values, mean(values))]

    yield from table(['', *names, 'mean'], [line for way in ways for line in (
        [way, *cells(way, 'times_peer')], [f'{way}, at most', *cells(way, 'times_peer_at_most')])])
    yield from source('preload.jsonl', rows.values())


# ---- several processes ------------------------------------------------------------------------

SHARE_KINDS = {
    ('nvcomp', 'contexts'): 'nvCOMP, a context each', ('nvcomp', 'mps'): 'nvCOMP under MPS',
    ('libdeflate', ''): 'libdeflate', ('wharf', 'gpu'): 'wharfd, GPU alone',
    ('wharf', 'gpu, batches'): 'wharfd, GPU alone, batches',
    ('wharf', 'gpu, under mps'): 'wharfd under MPS, GPU alone',
    ('wharf', 'cpu'): 'wharfd, CPU alone', ('wharf', 'auto'): 'wharfd, any engine',
    ('wharf', 'auto, batches'): 'wharfd, any engine, batches',
    ('wharf', 'auto, one call'): 'wharf_decompress, any engine',
}
SHARE_CASES = [(data, chunks) for data in ('mc0', 'dickens') for chunks in (1, 16)]


def last_share():
    """The rows of the last run, of one revision, that had nvCOMP in it."""
    rows = [row for row in rows_of('gpu-share') if row['mode'] == 'share' and not row.get('setting')]
    last = [row for row in rows if row['peer'] == 'nvcomp'][-1]
    return {(row['peer'], row['how'], row['data'], row['chunks']): row for row in rows
            if (row['date'], row['revision']) == (last['date'], last['revision'])}


def share_gpu():
    rows = last_share()
    names = [f'{data}, {chunks}' for data, chunks in SHARE_CASES]
    lines = []
    for (peer, how), title in SHARE_KINDS.items():
        cells = []
        for data, chunks in SHARE_CASES:
            row = rows.get((peer, how, data, chunks))
            cells.append(f'{number(row["GBps_median"])}; {number(row["p99_us_median"] / 1000)}; '
                         f'{number(row["cpu_s_per_GB_median"])}' if row else '')
        if any(cells):
            lines.append([title, *cells])
    yield from table(['GB/s; p99 in ms; CPU s/GB', *names], lines)
    yield from source('gpu-share.jsonl', rows.values())


# Loads, by what the rows call them.
LOADS = (('all that it can do', 'full load'), ('where it likes', 'any engine'))


def load_of(row):
    load = row['load']
    for said, name in LOADS:
        load = load.replace(said, name)
    return load


def tenant_gpu():
    rows = [row for row in rows_of('gpu-share') if row['mode'] == 'tenant']
    # Of its last day: settings of earlier ones mean something else by now.
    rows = [row for row in rows if row['date'] == rows[-1]['date']]
    rows = list({(row['load'], row['setting']): row for row in rows}.values())
    yield from table(['load on the GPU', 'settings', 'p50, us', 'p99, us', "load's speed"], [
        [load_of(row), f'`{row["setting"]}`' if row['setting'] else '',
         number(row['tenant_p50_us']) + (f' ({number(row["tenant_p50_us_min"])} to '
                                         f'{number(row["tenant_p50_us_max"])})' if 'tenants' in row else ''),
         number(row['tenant_p99_us']),
         f'{number(row["GBps"])} GB/s' if 'GBps' in row else ''] for row in rows])
    yield from source('gpu-share.jsonl', rows,
                      what=lambda row: 'of several processes' if 'tenants' in row else 'of one')


# ---- through the daemon to a GPU ---------------------------------------------------------------


DAEMON_TITLES = {'deflate': 'Deflate', 'rle1': 'rle1', 'rle2': 'rle2'}


def daemon_rows():
    """{(codec, data): row}: one client, on one GPU of an H100's host, with 2048 chunks of 128 KiB in flight."""
    return {(row['codec'], row['data']): row for row in rows_of('gpu-daemon')
            if row['what'] == 'daemon flood' and row['asked'] == 'gpu' and row['chunk_nbytes'] == 128 << 10
            and (row['clients'], row['depth'], row['batch']) == (1, 2048, 0) and row['codec'] in DAEMON_TITLES
            and not row.get('setting') and 'gpus' not in row and 'H100' in row['device']}


def daemon_data():
    rows = daemon_rows()
    yield from table(['', *DATA], [
        [title, *(number(rows[codec, name]['gbps']) if (codec, name) in rows else '' for name in DATA)]
        for codec, title in DAEMON_TITLES.items()])
    yield from source('gpu-daemon.jsonl', list(rows.values()))


# ---- several hosts: calculated, of one host's figures -------------------------------------------

NETWORKS_GBIT = (25, 100, 400)
STORE_GBPS = 100


def host_rows():
    """[(engine, data, row, GB/s of output, GB of output for one of input)]"""
    flood, share = daemon_rows(), last_share()
    for name in 'dickens', 'mc0':
        row = flood['deflate', name]
        yield 'GPU', name, row, row['gbps'], row['ratio']
        cpu = share['wharf', 'cpu', name, 16]
        yield f'{cpu["cores"]} cores', name, cpu, cpu['GBps_median'], row['ratio']


def hosts_calculated():
    rows = list(host_rows())
    lines = []
    for engine, name, _, out, ratio_of in rows:
        rates = [min(out, gbit / 8 * ratio_of) for gbit in NETWORKS_GBIT]
        hosts = math.ceil(STORE_GBPS * ratio_of / min(out, NETWORKS_GBIT[1] / 8 * ratio_of))
        lines.append([f'{name}, {engine}', f'{ratio_of:.1f}', number(out), number(8 * out / ratio_of),
                      *(number(rate) for rate in rates), str(hosts)])
    yield from table(['data, engine', 'ratio', 'measured: GB/s', 'calculated: Gbit/s in',
                      *(f'GB/s at {gbit} Gbit/s' for gbit in NETWORKS_GBIT), 'hosts'], lines)
    # The page is no page of results, and names no revisions.
    days = {'gpu-daemon' if engine == 'GPU' else 'gpu-share': row['date'] for engine, _, row, *_ in rows}
    yield ''
    yield f'<sub>Rows: {"; ".join(f"{name}.jsonl, {day}" for name, day in days.items())}.</sub>'


# ---- all of them in a few lines ----------------------------------------------------------------


def spread(ratios):
    return f'{mean(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})'


# What a device decoder is compared with: title, codec, nvCOMP's, level.
GPU_CODECS = (('Deflate', 'deflate', 'deflate', None), ('LZ4', 'lz4', 'lz4', None),
              ('Snappy', 'snappy', 'snappy', None), ('zstd', 'zstd', 'zstd', None),
              ('rANS', 'rans', 'ans', 11))


def gpu_means():
    """{title: (wharf's GB/s, nvCOMP's)} of all data that both have."""
    found = {}
    for title, codec, peer, level in GPU_CODECS:
        pairs = speed_rows(codec, peer, level).values()
        found[title] = tuple(mean(pair[i]['GBps_median'] for pair in pairs) for i in range(2))
    return found


def on_gpu():
    """Lines of the summary: device decoders beside nvCOMP's."""
    for title, codec, peer, level in GPU_CODECS:
        rates = [number(rate) for rate in gpu_means()[title]]
        where = f'{title} on a GPU' + (f', {level} bits' if level else '')
        yield [where, f'{rates[0]} GB/s', f'nvCOMP 6.0: {rates[1]} GB/s',
               spread([ratio(pair) for pair in speed_rows(codec, peer, level).values()])]


def run_lengths():
    for codec in ('rle1', 'rle2'):
        rate = mean(row['GBps_median'] for row in speed_rows(codec, None).values())
        yield [f"ORC's run lengths on a GPU, {codec}", f'{number(rate)} GB/s', 'nvCOMP has none', 'no peer']


def shared_text():
    rows = last_share()
    rates = [rows[(*kind, 'dickens', 16)]['GBps_median']
             for kind in (('wharf', 'auto'), ('nvcomp', 'mps'), ('libdeflate', ''))]
    for peer, rate in zip(('nvCOMP under MPS', 'libdeflate in each'), rates[1:]):
        yield ['eight processes on one GPU, text', f'{number(rates[0])} GB/s',
               f'{peer}: {number(rate)} GB/s', f'{rates[0] / rate:.1f}']


def on_processors():
    for title, peer, rows in (
            ('Deflate on one core', 'libdeflate 1.14', list(cpu_deflate_rows().values())),
            ('`wharf cat` of gzip on two cores', 'zcat',
             [row for (peer, _), row in cat_rows().items() if peer == 'zcat'])):
        ours, theirs = (number(mean(row[member] for row in rows)) for member in ('gbps', 'peer_gbps'))
        yield [title, f'{ours} GB/s', f'{peer}: {theirs} GB/s',
               spread([row['times_peer'] for row in rows])]


def summary():
    yield from table(['what', 'wharf', 'beside', 'speedup'], [
        *on_gpu(), *run_lengths(), *shared_text(), *on_processors()])


# ---- beside somebody hostile --------------------------------------------------------------------

STORMS = ('doorbells', 'noops', 'pings', 'stats', 'registrations', 'models', 'hellos', 'connects', 'sessions', 'files')


def last_hostile(*whats):
    """Rows that begin so, of the last revision that has any."""
    rows = [row for row in rows_of('hostile') if row['what'].startswith(whats)]
    return [row for row in rows if (row['date'], row['revision']) == (rows[-1]['date'], rows[-1]['revision'])]


def storms():
    """p99 of what another user waits for, stormed and quiet; in bold what exceeds its limit."""
    found = {(row['data'], row['what']): row for row in rows_of('hostile') if row['what'].startswith('storm: ')}

    def cell(storm, what):
        row = found.get((storm, f'storm: {what}'))
        if not row:
            return ''
        bold = '**' * (row['p99_us'] > row['limit_us'])
        return f'{bold}{row["p99_us"]:.0f}{bold} ({row["peer_p99_us"]:.0f})'

    whats = ('job', 'no-op', 'hello', 'connection')
    yield from table(['storm of', 'lone job', 'no-op', 'Hello', 'new connection (bare loop)'],
                     [[storm, *(cell(storm, what) for what in whats)] for storm in STORMS])
    yield from source('hostile.jsonl', list(found.values()), what=lambda row: row['data'])


def neighbours():
    """What is left beside a user who is many uids, and beside somebody who reads all statistics."""
    owners = last_hostile('owners: neighbour')
    yield from table(['neighbour of', 'its speed', 'relative to'], [
        [row['data'], f'{100 * row["times_peer"]:.0f} %',
         row['peer'] if row['peer'].startswith('the ') else f'its speed {"beside " * (row["peer"] != "alone")}{row["peer"]}']
        for row in owners])
    yield from source('hostile.jsonl', owners)
    connections = last_hostile('owners: connection')
    yield ''
    yield from table(['a connection beside', 'p50, us', 'p99, us'], [
        [row['data'], *(f'{row[key]:.0f} ({row["peer_" + key]:.0f})' for key in ('p50_us', 'p99_us'))] for row in connections])
    yield from source('hostile.jsonl', connections)
    scrapes = last_hostile('no-op beside', 'ping beside')
    yield ''
    yield from table(['during `wharf stats --prometheus`', 'tenants, seen', 'p50, us', 'p99, us', 'p99.9, us'], [
        [row['what'].split(' beside')[0], f'{row["tenants"]}, {row["tenants_seen"]}',
         *(f'{row[key]:.0f} ({row["peer_" + key]:.0f})' for key in ('p50_us', 'p99_us', 'p999_us'))]
        for row in scrapes])
    yield from source('hostile.jsonl', scrapes)


HOLDS = {'hold: dead client': 'memory of a dead client', 'hold: connection': 'a connection', 'hold: descriptors': 'descriptors',
         'hold: cancelled chunk': 'a worker from a cancelled chunk'}


def holds():
    """How soon the daemon has back what hostile clients keep."""
    rows = [row for what in HOLDS for row in last_hostile(what)]

    def cell(row, key):
        bold = '**' * (key == 'p99_us' and row['p99_us'] > row['limit_us'])
        return f'{bold}{row[key] / 1000:.3g}{bold} ({row["peer_" + key] / 1000:.3g})'

    yield from table(['of', 'p50, ms', 'p99, ms', 'in brackets'], [
        [f'{HOLDS[row["what"]]}: {row["data"]}', cell(row, 'p50_us'), cell(row, 'p99_us'), row['peer']] for row in rows])
    yield from source('hostile.jsonl', rows)


# ---- damaged chunks --------------------------------------------------------------------------

DAMAGE_CODECS = ('deflate', 'gzip', 'lz4', 'snappy', 'zstd')
DAMAGE_LIBRARIES = ('libwharf', 'libwharf-cuda', 'wharfd', 'nvCOMP')
DAMAGE_COUNTS = ('contexts_killed', 'wrong', 'hangs', 'refused', 'placed')


def damage_line(title, library, rows):
    return [title, library, *(f'{sum(row[count] for row in rows):,}' for count in DAMAGE_COUNTS)]


def bad_bytes():
    """A line for each library of codecs that nvCOMP has, and one for all others together."""
    rows = {(row['codec'], row['library']): row for row in rows_of('damage')}
    lines, used = [], []
    for codec in DAMAGE_CODECS:
        for library in DAMAGE_LIBRARIES:
            if (codec, library) in rows:
                used.append(rows[codec, library])
                lines.append(damage_line(codec, library, used[-1:]))
    for library in DAMAGE_LIBRARIES:
        others = [row for (codec, whose), row in rows.items()
                  if whose == library and codec not in DAMAGE_CODECS]
        used += others
        if others:
            lines.append(damage_line(f'{len(others)} others', library, others))
    yield from table(['codec', 'library', 'contexts killed', 'wrong bytes accepted', 'hangs', 'errors told',
                      'with their place'], lines)
    chunks = ' or '.join(f'{n:,}' for n in sorted({row['chunks'] for row in used}))
    batches = ' or '.join(str(n) for n in sorted({row['batch'] for row in used}))
    devices = ' and '.join(sorted({row['device'] for row in used if row['device'] != 'none'}))
    where = f', on {devices}' if devices else ''
    yield from source(f'damage.jsonl: {chunks} chunks of each codec, {batches} at a time{where}', used,
                      what=lambda row: row['library'])


TABLES = {
    'summary': summary, 'deflate-gpu': deflate_gpu, 'zstd-gpu': zstd_gpu, 'rans-gpu': rans_gpu, 'rle-gpu': rle_gpu,
    'lz-gpu': lz_gpu, 'rans-sizes': rans_sizes,
    'cpu-deflate': cpu_deflate, 'cat': cat_cpu, 'callers': callers_cpu,
    'preload': preload_cpu, 'preload-gzip': preload_gzip,
    'share': share_gpu, 'tenant': tenant_gpu,
    'daemon-data': daemon_data, 'hosts': hosts_calculated, 'bad-bytes': bad_bytes, 'storms': storms, 'neighbours': neighbours,
    'holds': holds,
}
