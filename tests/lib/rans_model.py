# SPDX-License-Identifier: Apache-2.0
"""rans_model.py: rans streams as encoders/rans/rans_format.h has them, in Python's own integers.

decode(stream) gives the symbols, or raises Bad with result, reason and bit; encode(...) makes
streams, good ones and, by what it is told, others.  Both were written from that page alone and
share no line with the code in C: they verify vectors.
"""
LANES = 32
LOW = 1 << 16


class Bad(Exception):
    """A failure: reason, bit, result."""

    def __init__(self, reason, bit, result='bad_data'):
        super().__init__(reason, bit, result)
        self.reason, self.bit, self.result = reason, bit, result


def words_of(data):
    return [data[i] | data[i + 1] << 8 for i in range(0, len(data) - 1, 2)]


def bytes_of(words):
    return b''.join(word.to_bytes(2, 'little') for word in words)


# ---- models ------------------------------------------------------------------------------------

def blocks_of(alphabet):
    return [range(i, min(i + 32, alphabet)) for i in range(0, alphabet, 32)]


def pack_model(distributions, widths=None):
    """`widths` are those to write, in place of the least ones."""
    alphabet = len(distributions[0])
    blocks = [(f, block) for f in distributions for block in blocks_of(alphabet)]
    least = [max(f[i] for i in block).bit_length() for f, block in blocks]
    widths = widths or least
    bits = [(width, 5) for width in widths]
    for (f, block), width in zip(blocks, widths):
        bits += [(f[i], width) for i in block]
    number = at = 0
    for value, width in bits:
        number |= value << at
        at += width
    return number.to_bytes((at + 7) // 8, 'little')


def unpack_model(data, n, alphabet, n_distributions):
    number, at = int.from_bytes(data, 'little'), 0

    def take(width):
        nonlocal at
        at += width
        return number >> at - width & (1 << width) - 1

    blocks = blocks_of(alphabet)
    if 5 * len(blocks) * n_distributions > 8 * len(data):
        raise Bad('rans_model', 8 * 16)
    widths = [take(5) for _ in range(len(blocks) * n_distributions)]
    nbits = at + sum(w * len(blocks[i % len(blocks)]) for i, w in enumerate(widths))
    if max(widths) > 17 or (nbits + 7) // 8 != len(data):
        raise Bad('rans_model', 8 * 16)
    rows = [[] for _ in range(n_distributions)]
    for i, width in enumerate(widths):
        rows[i // len(blocks)] += [take(width) for _ in blocks[i % len(blocks)]]
    if any(not 0 < sum(row) <= 1 << n for row in rows):
        raise Bad('rans_model', 8 * 16)
    return rows


class Table:
    """One distribution: symbol, frequency and first slot of each slot."""

    def __init__(self, frequencies):
        self.frequency, self.first, self.slots = frequencies, [], []
        for symbol, f in enumerate(frequencies):
            self.first.append(len(self.slots))
            self.slots += [symbol] * f


# ---- decoding ----------------------------------------------------------------------------------

class Body:
    def __init__(self, data, bit):
        self.words, self.at, self.bit = words_of(data), 0, bit
        if len(data) % 2:
            raise Bad('input_truncated', bit)
        self.states = [self.take(16) << 16 | self.take(16) for _ in range(LANES)]
        self.n_splits = self.take(self.take(4) + 1)
        self.n_symbols = self.take(self.take(5) + 1)
        if self.n_splits == 0 or self.n_symbols > 1 << 31:
            raise Bad('rans_header', bit)
        m = self.n_splits
        n_groups = -(-self.n_symbols // LANES)
        if m > 1:
            width = self.take(5) + 1
            cuts = [self.signed(width) for _ in range(m - 1)]
            width = self.take(5) + 1
            groups = [self.signed(width) for _ in range(m - 1)]
            offsets = []
            for _ in range(m - 1):
                width = self.take(4) + 1
                offsets.append([self.take(width) for _ in range(LANES)])
        at = self.at // 16 + 1 + LANES * (m - 1)
        if at > len(self.words):
            raise Bad('input_truncated', bit)
        split_states = self.words[at - LANES * (m - 1):at]
        self.words_at, self.words = at, self.words[at:]
        self.splits = []
        word, group = len(self.words), -1
        for s in range(1, m):
            cut = cuts[s - 1] + (m - s) * -(-len(self.words) // m)
            base = groups[s - 1] + s * -(-n_groups // m)
            starts = [base + offset for offset in offsets[s - 1]]
            if not 0 <= cut < word or min(starts) <= group or max(starts) >= n_groups:
                raise Bad('rans_split', bit)
            word, group = cut, max(starts)
            self.splits.append((cut, starts, split_states[LANES * (s - 1):LANES * s]))

    def take(self, nbits):
        value = 0
        for at in range(self.at, self.at + nbits):
            if at // 16 >= len(self.words):
                raise Bad('input_truncated', self.bit)
            value = value << 1 | self.words[at // 16] >> 15 - at % 16 & 1
        self.at += nbits
        return value

    def signed(self, nbits):
        sign = self.take(1)
        return (-1 if sign else 1) * self.take(nbits)

    def bit_of(self, next_word):
        return self.bit + 16 * (self.words_at + next_word + 1)


def check_window(body, split, group, takes, states, next_word):
    """Rule 7's look at a split: `takes` are the lanes that take a word in this group."""
    cut, starts, wanted = split
    first = min(starts)
    for lane in range(LANES):
        seen = group > first or any(starts[k] == first for k in range(lane + 1))
        if group == starts[lane]:
            if first == group and next(k for k in range(LANES) if starts[k] == first) == lane:
                if next_word != cut:
                    return False
            if lane not in takes or states[lane] != wanted[lane]:
                return False
        elif group < starts[lane] and lane in takes and seen:
            return False
        if lane in takes:
            next_word -= 1
    return True


def walk(body, n, tables, indexes):
    states, next_word = list(body.states), len(body.words) - 1
    if min(states) < LOW:
        raise Bad('rans_state', body.bit)
    symbols, splits = [], list(body.splits)
    for group in range(-(-body.n_symbols // LANES)):
        bit = body.bit_of(next_word)
        lanes = range(min(LANES, body.n_symbols - LANES * group))
        for lane in lanes:
            table = tables[indexes[LANES * group + lane] if indexes else 0]
            slot = states[lane] & (1 << n) - 1
            if slot >= len(table.slots):
                raise Bad('rans_symbol', bit)
            symbol = table.slots[slot]
            states[lane] = (table.frequency[symbol] * (states[lane] >> n) + slot -
                            table.first[symbol])
            symbols.append(symbol)
        takes = [lane for lane in lanes if states[lane] < LOW]
        if splits and group >= min(splits[0][1]):
            if not check_window(body, splits[0], group, takes, states, next_word):
                raise Bad('rans_split', bit)
            if group == max(splits[0][1]):
                splits.pop(0)
        if len(takes) > next_word + 1:
            raise Bad('input_truncated', bit)
        for lane in takes:
            states[lane] = states[lane] << 16 | body.words[next_word]
            next_word -= 1
    if next_word >= 0:
        raise Bad('rans_words_left', body.bit_of(next_word))
    if any(state != LOW for state in states):
        raise Bad('rans_state', body.bit_of(-1))
    return symbols


def decode(stream, symbol_nbytes, room=None):
    """The symbols as bytes; `room` is how many bytes there are for them."""
    if len(stream) < 16:
        raise Bad('input_truncated', 0)
    version, n, nbytes, flags = stream[:4]
    n_distributions, alphabet = (w + 1 for w in words_of(stream[4:8]))
    sizes = [int.from_bytes(stream[i:i + 4], 'little') for i in (8, 12)]
    most = 65536 if sizes[0] else 1 << 24
    if version != 1:
        raise Bad('rans_version', 0, 'unsupported')
    if (not 8 <= n <= 16 or nbytes not in (1, 2) or flags or n_distributions > 256 or
            alphabet > 256 ** nbytes or n_distributions << n > most or
            n_distributions * alphabet > most or (n_distributions == 1 and sizes[1])):
        raise Bad('rans_header', 0)
    at = 16
    for size in sizes:
        if size > len(stream) - at:
            raise Bad('input_truncated', 8 * at)
        at += size
    body = Body(stream[at:], 8 * at)
    indexes = stream[at - sizes[1]:at]
    if n_distributions > 1 and (len(indexes) != body.n_symbols or
                                any(i >= n_distributions for i in indexes)):
        raise Bad('rans_header', 8 * at)
    if nbytes != symbol_nbytes:
        raise Bad('rans_header', 0)
    rows = unpack_model(stream[16:16 + sizes[0]], n, alphabet, n_distributions)
    if room is not None and nbytes * body.n_symbols > room:
        raise Bad('output_full', 8 * at, 'output_too_small')
    symbols = walk(body, n, [Table(row) for row in rows], indexes)
    return b''.join(symbol.to_bytes(nbytes, 'little') for symbol in symbols)


# ---- encoding ----------------------------------------------------------------------------------

class Coded:
    """All parts of a body, to be changed before it is written."""

    def __init__(self, symbols, n, rows, indexes=b'', n_splits=1):
        tables = [Table(row) for row in rows]
        n_groups = -(-len(symbols) // LANES)
        self.n_symbols, self.n_groups = len(symbols), n_groups
        self.words, self.states, self.splits = [], [LOW] * LANES, []
        start, low = [None] * LANES, [0] * LANES
        places = {s * n_groups // n_splits for s in range(1, n_splits)}
        for i in reversed(range(len(symbols))):
            table, lane = tables[indexes[i] if indexes else 0], i % LANES
            f, state = table.frequency[symbols[i]], self.states[lane]
            if state >= f << 32 - n:
                self.words.append(state & 0xffff)
                state >>= 16
                start[lane], low[lane] = i // LANES, state
            self.states[lane] = (state // f << n) + state % f + table.first[symbols[i]]
            if lane == 0 and i // LANES in places and None not in start:
                before = self.splits[0][1] if self.splits else None
                if before is None or max(start) < min(before):
                    self.splits.insert(0, [len(self.words) - 1, list(start), list(low)])

    def fields(self):
        """Items 1 to 8, as (value, bits)."""
        m = len(self.splits) + 1
        yield from ((state, 32) for state in self.states)
        for value, nbits in ((m, 4), (self.n_symbols, 5)):
            yield from sized([value], nbits)
        if m == 1:
            return
        yield from signed_series([split[0] - (m - s) * -(-len(self.words) // m)
                                  for s, split in enumerate(self.splits, 1)])
        yield from signed_series([min(split[1]) - s * -(-self.n_groups // m)
                                  for s, split in enumerate(self.splits, 1)])
        for split in self.splits:
            yield from sized([start - min(split[1]) for start in split[1]], 4)

    def body(self):
        number = nbits = 0
        for value, width in self.fields():
            number, nbits = number << width | value, nbits + width
        n_words = nbits // 16 + 1
        number <<= 16 * n_words - nbits
        words = [number >> 16 * (n_words - 1 - i) & 0xffff for i in range(n_words)]
        for split in self.splits:
            words += split[2]
        return bytes_of(words + self.words)


def sized(values, length_nbits):
    width = max(1, max(values).bit_length())
    return [(width - 1, length_nbits)] + [(value, width) for value in values]


def signed_series(values):
    width = max(1, max(abs(value) for value in values).bit_length())
    yield width - 1, 5
    for value in values:
        yield int(value < 0), 1
        yield abs(value), width


def header(n, nbytes, alphabet, n_distributions, model_nbytes, indexes_nbytes, version=1, flags=0):
    return (bytes([version, n, nbytes, flags]) + bytes_of([n_distributions - 1, alphabet - 1]) +
            model_nbytes.to_bytes(4, 'little') + indexes_nbytes.to_bytes(4, 'little'))


def stream(coded, n, nbytes, rows, indexes=b'', model=None):
    model = pack_model(rows) if model is None else model
    return (header(n, nbytes, len(rows[0]), len(rows), len(model), len(indexes)) + model +
            bytes(indexes) + coded.body())


def even_frequencies(counts, n):
    """Frequencies that add up to 2^n: shares of the counts, at least 1 where there is one."""
    total, n_slots = sum(counts), 1 << n
    rows = [max(1, c * n_slots // total) if c else 0 for c in counts]
    while sum(rows) != n_slots:
        largest = rows.index(max(rows))
        rows[largest] += n_slots - sum(rows) if sum(rows) < n_slots else -1
    return rows
