# SPDX-License-Identifier: Apache-2.0
"""rle_model.py: ORC's run lengths as the specification has them, in Python's own integers.

decode(codec, type_name, stream) gives the values, or raises Bad with the reason and the place.  It
shares no line with the decoders in C; it verifies vectors.
"""
TYPES = ('u8', 'u16', 'u32', 'u64', 'i8', 'i16', 'i32', 'i64')
WIDTHS = tuple(range(1, 25)) + (26, 28, 30, 32, 40, 48, 56, 64)


class Bad(Exception):
    """A failure: reason and, as the second argument, the byte where the run or group begins."""


def type_range(name):
    nbits = int(name[1:])
    return (0, (1 << nbits) - 1) if name[0] == 'u' else (-1 << nbits - 1, (1 << nbits - 1) - 1)


def in_64_bits(value, is_signed):
    """A value modulo 2^64, as a number of that signedness."""
    value %= 1 << 64
    return value - (1 << 64) if is_signed and value >> 63 else value


def unzigzag(number):
    return -(number >> 1) - 1 if number & 1 else number >> 1


class Reader:
    """Takes things from a stream; what is missing raises Bad('input_truncated')."""

    def __init__(self, stream, is_signed):
        self.stream, self.at, self.is_signed = stream, 0, is_signed

    def take(self, nbytes):
        piece = self.stream[self.at:self.at + nbytes]
        if len(piece) < nbytes:
            raise Bad('input_truncated')
        self.at += nbytes
        return piece

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        number = shift = 0
        while True:
            byte = self.byte()
            number |= (byte & 127) << shift
            if number >> 64 or (shift == 63 and byte >= 128):
                raise Bad('rle_varint')
            if byte < 128:
                return number
            shift += 7

    def value(self, number):
        return unzigzag(number) if self.is_signed else number

    def packed(self, count, width):
        nbytes = (count * width + 7) // 8
        bits = int.from_bytes(self.take(nbytes), 'big')
        return [bits >> 8 * nbytes - (i + 1) * width & (1 << width) - 1 for i in range(count)]


def rle1_group(reader):
    control = reader.byte()
    if control >= 128:
        return [reader.value(reader.varint()) for _ in range(256 - control)]
    delta = int.from_bytes(reader.take(1), 'big', signed=True)
    base = reader.value(reader.varint())
    return [base + i * delta for i in range(control + 3)]


def byterle_group(reader):
    control = reader.byte()
    if control >= 128:
        return list(reader.take(256 - control))
    return [reader.byte()] * (control + 3)


def patched_base(reader, width, count):
    third, fourth = reader.take(2)
    patch_width, gap_width, n_patches = WIDTHS[third & 31], (fourth >> 5) + 1, fourth & 31
    base_nbytes = (third >> 5) + 1
    base = int.from_bytes(reader.take(base_nbytes), 'big')
    if n_patches == 0 or patch_width + gap_width > 64:
        raise Bad('rle_patches')
    top = 1 << 8 * base_nbytes - 1
    base = -(base - top) if base & top else base
    offsets = reader.packed(count, width)
    entry_width = min(w for w in WIDTHS if w >= patch_width + gap_width)
    place = 0
    for i, entry in enumerate(reader.packed(n_patches, entry_width)):
        gap = entry >> patch_width & (1 << gap_width) - 1
        place += gap
        if place >= count or (gap == 0 and i > 0):
            raise Bad('rle_patches')
        offsets[place] |= (entry & (1 << patch_width) - 1) << width
    return [base + offset for offset in offsets]


def rle2_run(reader):
    head = reader.byte()
    if head >> 6 == 0:
        number = int.from_bytes(reader.take((head >> 3 & 7) + 1), 'big')
        return [reader.value(number)] * ((head & 7) + 3)
    count = ((head & 1) << 8 | reader.byte()) + 1
    width = WIDTHS[head >> 1 & 31]
    if head >> 6 == 1:
        return [reader.value(number) for number in reader.packed(count, width)]
    if head >> 6 == 2:
        return patched_base(reader, width, count)
    values = [reader.value(reader.varint())]
    delta = unzigzag(reader.varint())
    if width == 1 or count <= 2:
        steps = [delta] * (count - 1)
    else:
        sign = -1 if delta < 0 else 1
        steps = [delta] + [sign * step for step in reader.packed(count - 2, width)]
    for step in steps:
        values.append(values[-1] + step)
    return values


GROUPS = {'rle1': rle1_group, 'rle2': rle2_run, 'byterle': byterle_group, 'boolrle': byterle_group}


def decode(codec, type_name, stream, room=None):
    """The values of a stream: integers, bytes, or for boolrle 0s and 1s.  `room` is how many fit."""
    name = type_name if codec in ('rle1', 'rle2') else 'u8'
    low, high = type_range(name)
    reader = Reader(stream, name[0] == 'i')
    fits = room if codec != 'boolrle' or room is None else (room + 7) // 8
    values = []
    while reader.at < len(stream):
        start = reader.at
        try:
            group = [in_64_bits(v, reader.is_signed) for v in GROUPS[codec](reader)]
            if fits is not None and len(values) + len(group) > fits:
                raise Bad('output_full')
            if not all(low <= v <= high for v in group):
                raise Bad('rle_value')
        except Bad as bad:
            raise Bad(bad.args[0], start) from None
        values += group
    if codec == 'boolrle':
        values = [byte >> bit & 1 for byte in values for bit in range(7, -1, -1)][:room]
    return values


def as_bytes(codec, type_name, values):
    """As a decoder of wharf stores them."""
    nbytes = int(type_name[1:]) // 8 if codec in ('rle1', 'rle2') else 1
    return b''.join((v % (1 << 8 * nbytes)).to_bytes(nbytes, 'little') for v in values)
