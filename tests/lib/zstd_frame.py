# SPDX-License-Identifier: Apache-2.0
"""Writes zstd frames (RFC 8878) from their parts, whatever they are, and says what they decode to.

An encoder looks for good parts; this takes any, so that every mode and every edge can be had.
Sequences are (literals, offset value, match length), in the RFC's sense: values 1 to 3 repeat.
"""
import struct

MAGIC, SKIPPABLE = 0xfd2fb528, 0x184d2a50
BLOCK_MAX = 128 << 10
RAW, RLE, COMPRESSED, RESERVED = range(4)
TREE, REPEAT = 2, 3   # literals; RAW and RLE as for blocks
USUAL, ONE, DESCRIBED, AGAIN = range(4)   # modes of tables

LITERAL_LENGTHS = [(n, 0) for n in range(16)] + [
    (16, 1), (18, 1), (20, 1), (22, 1), (24, 2), (28, 2), (32, 3), (40, 3), (48, 4), (64, 6)] + [
    (1 << n, n) for n in range(7, 17)]
MATCH_LENGTHS = [(n, 0) for n in range(3, 35)] + [
    (35, 1), (37, 1), (39, 1), (41, 1), (43, 2), (47, 2), (51, 3), (59, 3), (67, 4), (83, 4),
    (99, 5)] + [((1 << n) + 3, n) for n in range(7, 17)]
OFFSETS = [(1 << n, n) for n in range(32)]

USUAL_COUNTS = [
    (6, [4, 3] + 11 * [2] + [1, 1, 1] + 9 * [2] + [3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1]),
    (5, [1, 1, 1, 1, 1, 1, 2, 2, 2] + 15 * [1] + 5 * [-1]),
    (6, [1, 4, 3, 2, 2, 2, 2, 2, 2] + 37 * [1] + 7 * [-1])]
KINDS = [LITERAL_LENGTHS, OFFSETS, MATCH_LENGTHS]
MOST_LOGS = [9, 8, 9]


def number_bytes(value, count):
    return value.to_bytes(count, 'little')


class Bits:
    """What is read backwards: (value, count) in the order in which they are read."""

    def __init__(self):
        self.value, self.count = 1, 0

    def add(self, value, count):
        assert 0 <= value < 1 << count or count == value == 0
        self.value, self.count = self.value << count | value, self.count + count

    def bytes(self):
        return number_bytes(self.value, self.count // 8 + 1)


class ForwardBits:
    def __init__(self):
        self.value, self.count = 0, 0

    def add(self, value, count):
        assert 0 <= value < 1 << count
        self.value, self.count = self.value | value << self.count, self.count + count

    def bytes(self):
        return number_bytes(self.value, (self.count + 7) // 8)


# ---- FSE ----------------------------------------------------------------------------------------

def counts_bytes(log, counts):
    """The description of a table."""
    bits, left, at = ForwardBits(), 1 << log, 0
    bits.add(log - 5, 4)
    while left > 0:
        count, value = counts[at], counts[at] + 1
        most = left + 1
        n = most.bit_length()
        half = 1 << n - 1
        short = 2 * half - 1 - most
        if value < short:
            bits.add(value, n - 1)
        else:
            bits.add(value if value < half else value + short, n)
        left -= abs(count)
        at += 1
        if count == 0:
            zeros = 0
            while counts[at + zeros] == 0:
                zeros += 1
            at += zeros
            while zeros >= 3:
                bits.add(3, 2)
                zeros -= 3
            bits.add(zeros, 2)
    return bits.bytes()


class Table:
    """A table's states: symbol, bits and the least next state of each."""

    def __init__(self, log, counts):
        size = 1 << log
        symbols, top = [None] * size, size
        for symbol, count in enumerate(counts):
            if count == -1:
                top -= 1
                symbols[top] = symbol
        at = 0
        for symbol, count in enumerate(counts):
            for _ in range(max(count, 0)):
                symbols[at] = symbol
                at = (at + (size >> 1) + (size >> 3) + 3) % size
                while at >= top:
                    at = (at + (size >> 1) + (size >> 3) + 3) % size
        nexts = [abs(count) for count in counts]
        self.log, self.symbols, self.states, self.of = log, symbols, [], {}
        for state, symbol in enumerate(symbols):
            n = log + 1 - nexts[symbol].bit_length()
            self.states.append((n, (nexts[symbol] << n) - size))
            nexts[symbol] += 1
            self.of.setdefault(symbol, []).append(state)

    def before(self, symbol, state):
        """The state of this symbol from which that state can come."""
        for candidate in self.of[symbol]:
            n, least = self.states[candidate]
            if least <= state < least + (1 << n):
                return candidate
        raise AssertionError

    def walk(self, symbols):
        """The states for these symbols."""
        states = [self.of[symbols[-1]][0]]
        for symbol in reversed(symbols[:-1]):
            states.append(self.before(symbol, states[-1]))
        return states[::-1]


def one_symbol(symbol):
    table = Table(0, [0] * symbol + [1])
    return table


def counts_for(symbols, log, rng=None):
    """Counts with a state for each of the symbols and, with rng, for a few others."""
    counts = [0] * (max(symbols) + 1)
    for symbol in symbols:
        counts[symbol] += 1
    used = sorted(set(symbols))
    size = 1 << log
    assert len(used) <= size
    total = sum(counts)
    for symbol in used:
        counts[symbol] = max(1, counts[symbol] * size // total)
    while sum(counts) > size:
        counts[max(used, key=lambda s: counts[s])] -= 1
    counts[max(used, key=lambda s: counts[s])] += size - sum(counts)
    if rng:
        for symbol in used:
            if counts[symbol] == 1 and rng.random() < 0.5:
                counts[symbol] = -1
    return counts


# ---- literals -----------------------------------------------------------------------------------

def weights_for(lengths):
    """Weights of literals 0 to the last, of code lengths (0: none)."""
    most = max(lengths)
    return [most + 1 - n if n else 0 for n in lengths]


def plain_weights_bytes(weights):
    """All but the last, four bits each."""
    said = weights[:-1]
    assert 1 <= len(said) <= 128
    padded = said + [0]
    return bytes([127 + len(said)] +
                 [padded[i] << 4 | padded[i + 1] for i in range(0, len(said), 2)])


def coded_weights_bytes(weights, log=6):
    """All but the last by two states in turn."""
    said = weights[:-1]
    counts = counts_for(said, log)
    table = Table(log, counts)
    # What ends the stream are bits that are not there: neither state may go on without one.
    turns = [table.walk(said[0::2]), table.walk(said[1::2])]
    bits = Bits()
    bits.add(turns[0][0], log)
    bits.add(turns[1][0], log)
    for i in range(len(said) - 2):
        states = turns[i & 1]
        n, least = table.states[states[i // 2]]
        bits.add(states[i // 2 + 1] - least, n)
    last = turns[len(said) & 1][(len(said) - 2) // 2]
    if table.states[last][0] == 0:
        raise ValueError('the last state but one takes no bits')
    body = counts_bytes(log, counts) + bits.bytes()
    assert len(body) < 128
    return bytes([len(body)]) + body


def codes_for(weights):
    """Code and length of each literal, the rarest first."""
    log = (sum(1 << w >> 1 for w in weights)).bit_length() - 1
    assert sum(1 << w >> 1 for w in weights) == 1 << log
    codes, at = {}, 0
    for weight in range(1, log + 1):
        for literal, own in enumerate(weights):
            if own == weight:
                n = log + 1 - weight
                codes[literal] = (at >> weight - 1, n)
                at += 1 << weight - 1
    return codes


def stream_bytes(literals, codes):
    bits = Bits()
    for literal in literals:
        bits.add(*codes[literal])
    return bits.bytes()


def literals_header(kind, size, packed=None, form=None):
    """form: the two bits of the size's format; None: the shortest."""
    if packed is None:
        if form is None:
            form = 0 if size < 32 else 1 if size < 4096 else 3
        if form in (0, 2):
            return number_bytes(kind | form << 2 | size << 3, 1)
        return number_bytes(kind | form << 2 | size << 4, 2 if form == 1 else 3)
    n = 10 if form < 2 else 14 if form == 2 else 18
    return number_bytes(kind | form << 2 | size << 4 | packed << 4 + n, (4 + 2 * n) // 8)


def raw_literals(literals, form=None):
    return literals_header(RAW, len(literals), form=form) + bytes(literals)


def rle_literals(literal, count, form=None):
    return literals_header(RLE, count, form=form) + bytes([literal])


def coded_literals(literals, weights, description, form=None, streams=None):
    """With a tree or, where description is None, with the one before."""
    codes = codes_for(weights)
    size = len(literals)
    if form is None:
        form = 0 if size < 6 else 1 if size < 1024 else 2 if size < 16384 else 3
    if streams is None:
        if form == 0:
            streams = stream_bytes(literals, codes)
        else:
            each = (size + 3) // 4
            parts = [stream_bytes(literals[i * each:(i + 1) * each if i < 3 else size], codes)
                     for i in range(4)]
            streams = b''.join(struct.pack('<H', len(part)) for part in parts[:3]) + b''.join(parts)
    body = (description or b'') + streams
    n = 10 if form < 2 else 14 if form == 2 else 18
    if len(body) >= 1 << n:
        form += 2 if form == 1 else 1
    return literals_header(REPEAT if description is None else TREE, size, len(body), form) + body


# ---- sequences ----------------------------------------------------------------------------------

def code_of(kind, value):
    for code in reversed(range(len(kind))):
        if kind[code][0] <= value:
            return code, value - kind[code][0], kind[code][1]
    raise AssertionError


def sequences_number(count):
    if count < 128:
        return bytes([count])
    if count < 0x7f00:
        return bytes([128 + (count >> 8), count & 255])
    return b'\xff' + struct.pack('<H', count - 0x7f00)


class Tables:
    """The tables of a frame's blocks, one after the other."""

    def __init__(self):
        self.tables = [None, None, None]

    def set(self, modes, codes, logs, rng=None):
        """Makes them; returns the modes' byte and the descriptions."""
        described = b''
        for kind in range(3):
            mode = modes[kind]
            if mode == USUAL:
                self.tables[kind] = Table(*USUAL_COUNTS[kind])
            elif mode == ONE:
                self.tables[kind] = one_symbol(codes[kind][0])
                described += bytes([codes[kind][0]])
            elif mode == DESCRIBED:
                counts = counts_for(codes[kind], logs[kind], rng)
                self.tables[kind] = Table(logs[kind], counts)
                described += counts_bytes(logs[kind], counts)
        return bytes([modes[0] << 6 | modes[1] << 4 | modes[2] << 2]) + described


def sequences_section(sequences, tables, modes=(USUAL, USUAL, USUAL), logs=(6, 5, 6), rng=None,
                      extra_bits=0):
    """sequences: (number of literals, offset value, match length)."""
    if not sequences:
        return b'\x00'
    coded = [[code_of(kind, sequence[i]) for sequence in sequences]
             for i, kind in ((0, LITERAL_LENGTHS), (1, OFFSETS), (2, MATCH_LENGTHS))]
    head = tables.set(modes, [[code[0] for code in codes] for codes in coded], logs, rng)
    walks = [table.walk([code[0] for code in codes]) for table, codes in zip(tables.tables, coded)]
    bits = Bits()
    for kind in range(3):
        bits.add(walks[kind][0], tables.tables[kind].log)
    for i in range(len(sequences)):
        for kind in (1, 2, 0):
            bits.add(*coded[kind][i][1:])
        if i + 1 < len(sequences):
            for kind in (0, 2, 1):
                n, least = tables.tables[kind].states[walks[kind][i]]
                bits.add(walks[kind][i + 1] - least, n)
    bits.add(0, extra_bits)
    return sequences_number(len(sequences)) + head + bits.bytes()


def resolve(last, value, has_literals):
    """The offset that a value means; `last` are the three last ones, which it changes."""
    if value > 3:
        last[:] = [value - 3, last[0], last[1]]
        return last[0]
    which = value - has_literals
    offset = last[0] - 1 if which == 3 else last[which]
    if which == 1:
        last[:] = [offset, last[0], last[2]]
    elif which > 1:
        last[:] = [offset, last[0], last[1]]
    return offset


def execute(output, start, literals, sequences, last):
    """Adds a block's output; `start` is where the frame's begins."""
    at = 0
    for count, value, length in sequences:
        output += literals[at:at + count]
        at += count
        offset = resolve(last, value, count > 0)
        assert 0 < offset <= len(output) - start
        for _ in range(length):
            output.append(output[-offset])
    output += literals[at:]


# ---- blocks and frames --------------------------------------------------------------------------

def block(kind, body, is_last=False, size=None):
    return number_bytes((len(body) if size is None else size) << 3 | kind << 1 | is_last, 3) + body


def frame_header(content=None, content_nbytes=None, window=None, dictionary=None, checksum=False,
                 reserved=0, unused=0):
    """content_nbytes: in how many bytes the size is said; window: its byte, None: single segment."""
    sizes = {None: 0, 1: 0, 2: 1, 4: 2, 8: 3}
    numbers = {None: 0, 1: 1, 2: 2, 4: 3}
    number, number_nbytes = dictionary or (None, None)
    single = window is None
    descriptor = (sizes[content_nbytes] << 6 | single << 5 | unused << 4 | reserved << 3 |
                  checksum << 2 | numbers[number_nbytes])
    header = struct.pack('<IB', MAGIC, descriptor)
    if not single:
        header += bytes([window])
    if number_nbytes:
        header += number_bytes(number, number_nbytes)
    if content_nbytes:
        header += number_bytes(content - (256 if content_nbytes == 2 else 0), content_nbytes)
    return header


def skippable(body, which=0):
    return struct.pack('<II', SKIPPABLE + which, len(body)) + body


def xxh64(data):
    """XXH64 with seed 0."""
    mask = (1 << 64) - 1
    p1, p2, p3, p4, p5 = (0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
                          0x85ebca77c2b2ae63, 0x27d4eb2f165667c5)

    def rotate(value, n):
        return (value << n | value >> 64 - n) & mask

    def mix(lane, word):
        return rotate((lane + word * p2) & mask, 31) * p1 & mask

    at, total = 0, p5
    if len(data) >= 32:
        lanes = [(p1 + p2) & mask, p2, 0, -p1 & mask]
        while len(data) - at >= 32:
            words = struct.unpack_from('<4Q', data, at)
            lanes = [mix(lane, word) for lane, word in zip(lanes, words)]
            at += 32
        total = sum(rotate(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) & mask
        for lane in lanes:
            total = ((total ^ mix(0, lane)) * p1 + p4) & mask
    total = (total + len(data)) & mask
    while len(data) - at >= 8:
        total = (rotate(total ^ mix(0, struct.unpack_from('<Q', data, at)[0]), 27) * p1 + p4) & mask
        at += 8
    if len(data) - at >= 4:
        word = struct.unpack_from('<I', data, at)[0]
        total = (rotate(total ^ word * p1 & mask, 23) * p2 + p3) & mask
        at += 4
    for byte in data[at:]:
        total = rotate(total ^ byte * p5 & mask, 11) * p1 & mask
    total = (total ^ total >> 33) * p2 & mask
    total = (total ^ total >> 29) * p3 & mask
    return total ^ total >> 32


def checksum(output):
    return struct.pack('<I', xxh64(bytes(output)) & 0xffffffff)
