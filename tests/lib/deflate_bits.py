# SPDX-License-Identifier: Apache-2.0
"""Deflate streams written bit by bit, good and bad, knowing where each bit stands (RFC 1951)."""

LENGTH_BASES = (3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83,
                99, 115, 131, 163, 195, 227, 258)
LENGTH_EXTRAS = (0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5,
                 5, 0)
DISTANCE_BASES = (1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769,
                  1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577)
DISTANCE_EXTRAS = (0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11,
                   11, 12, 12, 13, 13)
PRECODE_ORDER = (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15)
END = 256

FIXED_LITLEN = {s: 8 if s < 144 else 9 if s < 256 else 7 if s < 280 else 8 for s in range(288)}
FIXED_DISTANCE = {s: 5 for s in range(32)}
# Sixteen words of four bits, one for each length: a header that says every length by itself.
PLAIN_PRECODE = {s: 4 for s in range(16)}


def canonical(lengths):
    """Code words by symbol, {symbol: (word, length)}, of lengths by symbol (section 3.2.2).

    The lengths may be over-subscribed or incomplete: words are only cut to their lengths.
    """
    words, code, previous = {}, 0, 0
    for symbol, length in sorted(lengths.items(), key=lambda item: (item[1], item[0])):
        if length == 0:
            continue
        code <<= length - previous
        previous = length
        words[symbol] = (code & ((1 << length) - 1), length)
        code += 1
    return words


class Stream:
    """A stream under construction; `n` is the number of bits that it has so far."""

    def __init__(self, prefix=b''):
        self.value = int.from_bytes(prefix, 'little')
        self.n = 8 * len(prefix)
        self.litlen = self.distance = None

    def field(self, value, nbits):
        self.value |= (value & ((1 << nbits) - 1)) << self.n
        self.n += nbits
        return self

    def word(self, word, length):
        """A code word, whose most significant bit comes first."""
        for k in reversed(range(length)):
            self.field(word >> k, 1)
        return self

    def align(self, ones=False):
        gap = -self.n % 8
        return self.field((1 << gap) - 1 if ones else 0, gap)

    def raw(self, data):
        assert self.n % 8 == 0
        for byte in data:
            self.field(byte, 8)
        return self

    def bytes(self):
        return self.value.to_bytes((self.n + 7) // 8, 'little')

    # -- blocks

    def stored(self, data, final=True, nlen=None, length=None, ones=False):
        length = len(data) if length is None else length
        self.field(final, 1).field(0, 2).align(ones)
        self.field(length, 16).field(~length if nlen is None else nlen, 16)
        return self.raw(data)

    def fixed(self, final=True):
        self.field(final, 1).field(1, 2)
        self.litlen, self.distance = canonical(FIXED_LITLEN), canonical(FIXED_DISTANCE)
        return self

    def header(self, n_litlen, n_distance, precode, items, final=True, n_precode=19):
        """A dynamic header, of which every part is given.  items: (symbol, extra bits' value)."""
        self.field(final, 1).field(2, 2)
        self.field(n_litlen - 257, 5).field(n_distance - 1, 5).field(n_precode - 4, 4)
        for symbol in PRECODE_ORDER[:n_precode]:
            self.field(precode.get(symbol, 0), 3)
        words = canonical(precode)
        for item in items:
            symbol, extra = item if isinstance(item, tuple) else (item, 0)
            self.word(*words[symbol])
            self.field(extra, {16: 2, 17: 3, 18: 7}.get(symbol, 0))
        return self

    def dynamic(self, litlen, distance, final=True, n_litlen=None, n_distance=None):
        """A dynamic header for code lengths by symbol, each of them said by itself."""
        n_litlen = n_litlen or max(257, *(s + 1 for s in litlen))
        n_distance = n_distance or max([1] + [s + 1 for s in distance])
        items = [litlen.get(s, 0) for s in range(n_litlen)]
        items += [distance.get(s, 0) for s in range(n_distance)]
        self.header(n_litlen, n_distance, PLAIN_PRECODE, items, final)
        self.litlen, self.distance = canonical(litlen), canonical(distance)
        return self

    # -- symbols of the current block's codes

    def literals(self, data):
        for byte in data:
            self.word(*self.litlen[byte])
        return self

    def end(self):
        return self.word(*self.litlen[END])

    def length_symbol(self, symbol, extra):
        return self.word(*self.litlen[symbol]).field(extra, LENGTH_EXTRAS[symbol - 257])

    def distance_symbol(self, symbol, extra):
        return self.word(*self.distance[symbol]).field(extra, DISTANCE_EXTRAS[symbol])

    def match(self, length, distance):
        k = max(i for i, base in enumerate(LENGTH_BASES) if base <= length)
        self.length_symbol(257 + k, length - LENGTH_BASES[k])
        k = max(i for i, base in enumerate(DISTANCE_BASES) if base <= distance)
        return self.distance_symbol(k, distance - DISTANCE_BASES[k])
