# SPDX-License-Identifier: Apache-2.0
"""Tables and plots of the study of assist warps (assist-study), made of its rows."""
from result_tables import mean, number, rows_of, source, table
from svg_bars import bars

CODECS = ('bdi', 'fpc', 'cpack', 'best', 'palette')
WAYS = ('ideal', 'hardware', 'groups', 'assists', 'load', 'picked')
BLUE, LIGHT_BLUE, GREEN, LIGHT_GREEN, GREY = '#2f5f9e', '#7fb0dd', '#5c9400', '#a9cf5c', '#bdbdbd'
# The paper's mean gain of its 27 programs, in simulation, by codec: CABA-BDI, -FPC, -C-Pack.
PAPER = {'bdi': 1.417, 'fpc': 1.207, 'cpack': 1.352}
NAMES = {'memory-python': 'memory of Python', 'memory-sqlite': 'memory of SQLite', 'memory-compiler': 'memory of cc1',
         'taxi2018_19.pickup_epoch.i64': 'taxi pickup time', 'taxi2018_19.duration_s.i32': 'taxi duration',
         'taxi2018_19.fare_cents.i32': 'taxi fare', 'epinions.src.i32': 'epinions source'}


def data_of(row):
    return NAMES.get(row['data'], row['data'])


def last_of(what, key):
    """{key(row): row}, of rows that tell the same the last one."""
    return {key(row): row for row in rows_of('assist') if row['what'] == what}


def part_rows(part):
    """{(consumer, codec, data): {how: row}}"""
    found = {}
    for row in rows_of('assist'):
        if row['what'] == 'assist study' and row['part'] == part:
            found.setdefault((row['consumer'], row['codec'], row['data']), {})[row['how']] = row
    return found


def all_rows(cases):
    return [row for ways in cases.values() for row in ways.values()]


def source_of_runs(rows):
    """Device, repetitions, and how far apart they were."""
    spreads = sorted((row['ms_max'] - row['ms_min']) / row['ms_median'] for row in rows)
    devices = ' and '.join(sorted({row['device'] for row in rows}))
    runs = ' or '.join(sorted({str(row['runs']) for row in rows}))
    yield from source(f'assist.jsonl, {devices}, medians of {runs} runs, whose range is {100 * spreads[len(spreads) // 2]:.0f} % '
                      f'of the median in the middle case and {100 * spreads[-1]:.0f} % at most', rows, what=lambda row: '')


# ---- ratios --------------------------------------------------------------------------------------


def size_rows():
    return last_of('line sizes', lambda row: (row['data'], row['codec'], row['line_nbytes']))


def assist_sizes():
    rows = {key[:2]: row for key, row in size_rows().items() if key[2] == 128}
    names = list(dict.fromkeys(name for name, _ in rows))

    def line(name):
        return [data_of(rows[name, CODECS[0]]), *(f'{rows[name, codec]["ratio_bursts"]:.2f}; '
                                                  f'{rows[name, codec]["ratio_packed"]:.2f}' for codec in CODECS)]
    means = [f'{mean(rows[name, codec]["ratio_bursts"] for name in names):.2f}; '
             f'{mean(rows[name, codec]["ratio_packed"] for name in names):.2f}' for codec in CODECS]
    yield from table(['', *CODECS], [*map(line, names), ['geometric mean', *means]])
    yield from source('assist.jsonl, lines of 128 bytes', list(rows.values()), what=lambda row: '')


def assist_weights():
    """Of weights in bf16: sizes in percent."""
    lines = [[f'palette, lines of {nbytes}', f'{100 * row["packed_nbytes"] / row["raw_nbytes"]:.1f} %']
             for (name, codec, nbytes), row in size_rows().items() if (name, codec) == ('weights', 'palette')]
    rans = last_of('exponent sizes', lambda row: row['data'])['weights']
    lines.append(['exponents as one stream of rANS, the rest as it is', f'{100 * rans["packed_nbytes"] / rans["raw_nbytes"]:.1f} %'])
    yield from table(['weights in bf16', 'size'], lines)
    yield from source('assist.jsonl', [rans], what=lambda row: '')


def sizes_plot():
    rows = {key[:2]: row for key, row in size_rows().items() if key[2] == 128}
    values = {(data_of(row), codec): row['ratio_bursts'] for (_, codec), row in rows.items()}
    return bars('Ratio in bursts of 32 bytes, lines of 128 bytes', list(dict.fromkeys(name for name, _ in values)),
                dict(zip(CODECS, (BLUE, LIGHT_BLUE, GREEN, LIGHT_GREEN, GREY))), values, lambda value: f'{value:.2f}',
                left=130)


# ---- consumers -----------------------------------------------------------------------------------


def gain_lines(cases, columns):
    for (consumer, codec, _), ways in cases.items():
        raw = ways['raw']
        cells = [f'{ways[how]["gain"]:.2f}' if how in ways else '' for how in columns if how != 'picked']
        if 'picked' in ways:
            cells.append(f'{ways["picked"]["gain"]:.2f}, {ways["picked"]["picked"]}')
        yield [f'{consumer}, {codec}, {data_of(raw)}', f'{raw["ratio"]:.2f}', number(raw['GBps_raw']), *cells]


def mean_cells(cases, ways):
    return [f'{mean(case[how]["gain"] for case in cases.values()):.2f}'
            if all(how in case for case in cases.values()) else '' for how in ways]


def gains(part):
    cases = part_rows(part)
    ways = [how for how in WAYS if any(how in case for case in cases.values())]
    lines = list(gain_lines(cases, ways))
    lines.append(['geometric mean', '', '', *mean_cells(cases, ways)])
    yield from table(['consumer, codec, data', 'ratio', 'raw, GB/s', *ways], lines)
    yield from source_of_runs(all_rows(cases))


def assist_consumers():
    yield from gains('consumers')


def assist_cached():
    yield from gains('cached')


def assist_hog():
    yield from gains('hog')


def assist_codecs():
    """Means by codec, beside the paper's."""
    cases = part_rows('consumers')
    lines = []
    for codec in CODECS:
        own = {key: ways for key, ways in cases.items() if key[1] == codec}
        if own:
            paper = f'{PAPER[codec]:.2f}' if codec in PAPER else ''
            lines.append([codec, str(len(own)), *mean_cells(own, ('ideal', 'groups', 'assists', 'picked')), paper])
    lines.append(['all', str(len(cases)), *mean_cells(cases, ('ideal', 'groups', 'assists', 'picked')), '1.42'])
    yield from table(['codec', 'consumers', 'ideal', 'groups', 'assists', 'picked', 'the paper, simulated'], lines)
    yield from source_of_runs(all_rows(cases))


def assist_moved():
    """Memory's bytes and the rate at which they move, as figure 9 has it in percent."""
    cases = part_rows('consumers')
    lines = []
    for (consumer, codec, _), ways in cases.items():
        cells = []
        for how in ('raw', 'groups', 'assists', 'load'):
            row = ways[how]
            cells.append(f'{row["moved_nbytes"] / 1e6:.0f}; {number(row["moved_nbytes"] / row["ms_median"] / 1e6)}')
        lines.append([f'{consumer}, {codec}, {data_of(ways["raw"])}', *cells])
    yield from table(['MB; GB/s of memory', 'raw', 'groups', 'assists', 'load'], lines)
    yield from source_of_runs(all_rows(cases))


def gains_plot(title, part, ways):
    cases = part_rows(part)
    values, groups = {}, []
    for (consumer, codec, _), case in cases.items():
        groups.append(f'{consumer}, {codec}, {data_of(case["raw"])}')
        for how in ways:
            if how in case:
                values[groups[-1], how] = case[how]['gain']
    return bars(title, groups, dict(zip(ways, (GREY, GREEN, BLUE, LIGHT_BLUE))), values, lambda value: f'{value:.2f}',
                left=215)


# ---- link, energy, latency -----------------------------------------------------------------------

LINK_WAYS = ('raw by copy engine', 'compressed by copy engine', 'raw by kernel', 'compressed by kernel')


def assist_link():
    cases = part_rows('link')
    lines = [[codec, f'{ways[LINK_WAYS[0]]["ratio"]:.2f}', *(number(ways[how]['GBps_raw']) for how in LINK_WAYS)]
             for (_, codec, _), ways in cases.items()]
    yield from table(['GB/s of output', 'ratio', *LINK_WAYS], lines)
    yield from source_of_runs(all_rows(cases))


def link_plot():
    cases = part_rows('link')
    values = {(codec, how): ways[how]['GBps_raw'] for (_, codec, _), ways in cases.items() for how in LINK_WAYS}
    return bars("From the host's memory to the GPU's, GB/s of output", [codec for _, codec, _ in cases],
                dict(zip(LINK_WAYS, (GREY, BLUE, LIGHT_GREEN, LIGHT_BLUE))), values, number)


def energy_rows():
    return last_of('assist energy', lambda row: (row['consumer'], row['codec'], row['data'], row['how']))


def assist_energy():
    rows = energy_rows()
    ways = [how for how in ('raw', *WAYS) if any(key[3] == how for key in rows)]
    lines = []
    for case in dict.fromkeys(key[:3] for key in rows):
        raw = rows[(*case, 'raw')]
        cells = [f'{rows[(*case, how)]["joules_per_GB"]:.3f}; {rows[(*case, how)]["watts"]:.0f}' if (*case, how) in rows else ''
                 for how in ways]
        lines.append([f'{case[0]}, {case[1]}, {data_of(raw)}', *cells])
    yield from table(['J for 10^9 bytes of output; W', *ways], lines)
    yield from source('assist.jsonl', list(rows.values()), what=lambda row: '')


def latency_rows():
    return last_of('an interactive chunk beside background compression', lambda row: row['what']) | last_of(
        'an interactive chunk beside compression without a throttle', lambda row: row['what'])


def assist_latency():
    rows = list(latency_rows().values())
    lines = [['alone', number(rows[0]['peer_p50_us']), number(rows[0]['peer_p99_us']), '']]
    lines += [[row['what'].removeprefix('an interactive chunk '), number(row['p50_us']), number(row['p99_us']),
               f'{row["compressed_gbps"]:.2f} GB/s'] for row in rows]
    yield from table(['an interactive chunk of 64 KiB', 'p50, us', 'p99, us', 'compressed meanwhile'], lines)
    yield from source(f'assist.jsonl, {rows[0]["cores"]} cores, {rows[0]["samples"]} chunks each', rows, what=lambda row: '')


ASSIST_TABLES = {
    'assist-sizes': assist_sizes, 'assist-weights': assist_weights, 'assist-codecs': assist_codecs, 'assist-consumers': assist_consumers,
    'assist-moved': assist_moved, 'assist-hog': assist_hog, 'assist-cached': assist_cached, 'assist-link': assist_link,
    'assist-energy': assist_energy, 'assist-latency': assist_latency,
}


def assist_plots():
    ways = ('ideal', 'hardware', 'groups', 'assists')
    return {
        'assist-sizes.svg': sizes_plot(),
        'assist-consumers.svg': gains_plot('Speed relative to the raw array', 'consumers', ways),
        'assist-link.svg': link_plot(),
    }
