# SPDX-License-Identifier: Apache-2.0
"""orc_file.py: as much of ORC files as it takes to get integer streams out of them and into them.

streams(data) lists the streams of a file; write(...) makes a file of one column around given
streams.  By the ORC specification v1, with protobuf messages as lists of (field, value).
"""
import zlib

MAGIC = b'ORC'
COMPRESSIONS = ('none', 'zlib', 'snappy', 'lzo', 'lz4', 'zstd')
KINDS = ('present', 'data', 'length', 'dictionary_data', 'dictionary_count', 'secondary',
         'row_index', 'bloom_filter', 'bloom_filter_utf8')
TYPES = ('boolean', 'tinyint', 'smallint', 'int', 'bigint', 'float', 'double', 'string', 'binary',
         'timestamp', 'array', 'map', 'struct', 'union', 'decimal', 'date', 'varchar', 'char')


# -- protobuf

def varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def take_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7


def message(*fields):
    """Of (number, value): an integer, bytes, or a list of either for a repeated field."""
    out = bytearray()
    for number, value in fields:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, bytes):
                out += varint(number << 3 | 2) + varint(len(item)) + item
            else:
                out += varint(number << 3) + varint(item)
    return bytes(out)


def parse(data):
    """{number: [values]}"""
    fields, at = {}, 0
    while at < len(data):
        key, at = take_varint(data, at)
        if key & 7 == 0:
            value, at = take_varint(data, at)
        elif key & 7 == 1:
            value, at = data[at:at + 8], at + 8
        else:
            nbytes, at = take_varint(data, at)
            value, at = data[at:at + nbytes], at + nbytes
        fields.setdefault(key >> 3, []).append(value)
    return fields


def first(fields, number, default=0):
    return fields.get(number, [default])[0]


# -- reading

def uncompress(data, compression):
    """None for a compression that Python does not bring."""
    if compression == 'none':
        return data
    if compression != 'zlib':
        return None
    out, at = b'', 0
    while at < len(data):
        header = int.from_bytes(data[at:at + 3], 'little')
        piece = data[at + 3:at + 3 + (header >> 1)]
        out += piece if header & 1 else zlib.decompress(piece, -15)
        at += 3 + (header >> 1)
    return out


class File:
    def __init__(self, data):
        self.data = data
        postscript = parse(data[-1 - data[-1]:-1])
        self.compression = COMPRESSIONS[first(postscript, 2)]
        end = len(data) - 1 - data[-1]
        self.footer = parse(self.uncompressed(data[end - first(postscript, 1):end]))
        self.n_rows = first(self.footer, 6)
        self.types = [TYPES[first(parse(t), 1)] for t in self.footer.get(4, [])]

    def uncompressed(self, data):
        out = uncompress(data, self.compression)
        if out is None:
            raise NotImplementedError(self.compression)
        return out

    def streams(self):
        """Of every stream with data: (stripe, kind, column, is_version_2, its bytes)."""
        for number, stripe in enumerate(map(parse, self.footer.get(3, []))):
            at = first(stripe, 1)
            index_nbytes, data_nbytes = first(stripe, 2), first(stripe, 3)
            footer_at = at + index_nbytes + data_nbytes
            footer = parse(self.uncompressed(self.data[footer_at:footer_at + first(stripe, 4)]))
            encodings = [first(parse(e), 1) for e in footer.get(2, [])]
            for stream in map(parse, footer.get(1, [])):
                kind, column, nbytes = KINDS[first(stream, 1)], first(stream, 2), first(stream, 3)
                if kind in KINDS[:6]:
                    yield (number, kind, column, encodings[column] >= 2,
                           self.uncompressed(self.data[at:at + nbytes]))
                at += nbytes


# -- writing

def write(type_name, n_rows, streams, is_version_2):
    """A file with the struct of one column `v`, in one stripe; streams is [(kind, bytes)]."""
    body = b''.join(data for _, data in streams)
    encodings = [message((1, 0)), message((1, 2 if is_version_2 else 0))]
    stripe_footer = message(
        (1, [message((1, KINDS.index(kind)), (2, 1), (3, len(data))) for kind, data in streams]),
        (2, encodings), (3, b'UTC'))
    stripe = message((1, len(MAGIC)), (2, 0), (3, len(body)), (4, len(stripe_footer)), (5, n_rows))
    root = message((1, TYPES.index('struct')), (2, 1), (3, b'v'))
    footer = message(
        (1, len(MAGIC)), (2, len(MAGIC) + len(body) + len(stripe_footer)), (3, stripe),
        (4, [root, message((1, TYPES.index(type_name)))]), (6, n_rows),
        (7, [message((1, n_rows)), message((1, n_rows))]), (8, 0))
    postscript = message((1, len(footer)), (2, 0), (3, 1 << 16), (4, b'\0' + (b'\x0c' if is_version_2
                                                                        else b'\x0b')),
                         (5, 0), (6, 6 if is_version_2 else 0), (8000, MAGIC))
    return MAGIC + body + stripe_footer + footer + postscript + bytes([len(postscript)])
