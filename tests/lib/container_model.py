#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""container_model.py: wharf containers written and read as encoders/FORMAT.md says.

Made from that page alone, to show that it is enough, and to have another's word on what wharf
writes and reads.  Whole files in memory, one byte string for each, slow and plain.

    container_model.py read FILE [OFFSET LENGTH]    the output, or a part of it, to stdout
    container_model.py write CODEC CHUNK FILE       a container of FILE to stdout
    container_model.py seeds FOLDER                 what tests/fuzz/corpus/container_fuzz holds

Exit status 1 and the reason on standard error where a container is bad.
"""
import pathlib
import struct
import sys
import zlib

MAGIC = b'\x89WHR\r\n\x1a\n'
CHUNK, INDEX, END = b'WCHK', b'WIDX', b'WEND'
CODECS = {'stored': 0, 'deflate': 1, 'zlib': 2, 'gzip': 3}
WBITS = {1: -15, 2: 15, 3: 31}
FANOUT = 256
CHUNK_MAX = 16 << 20


class Bad(Exception):
    pass


def require(truth, reason, place):
    if not truth:
        raise Bad(f'{reason} at byte {place}')


# -- writing

def compress(codec, raw):
    """(codec, payload): stored where it does not shrink."""
    if codec:
        packer = zlib.compressobj(9, zlib.DEFLATED, WBITS[codec])
        payload = packer.compress(raw) + packer.flush()
        if len(payload) < len(raw):
            return codec, payload
    return 0, raw


class Writer:
    def __init__(self, chunk_max, total=None):
        head = MAGIC + struct.pack('<HHIQI', 1, total is not None, chunk_max, total or 0, 0)
        self.previous = zlib.crc32(head)
        self.file = head + struct.pack('<I', self.previous)
        self.levels = [[] for _ in range(10)]  # of (sequence, frame_offset, raw_offset)
        self.n_chunks = self.raw_nbytes = 0

    def frame(self, marker, number, place, payload=b'', raw_nbytes=0, crc=0, parameters=bytes(16)):
        head = marker + struct.pack('<HHIIQQ', number, 0, len(payload), raw_nbytes, *place)
        head += parameters + struct.pack('<III', crc, self.previous, 0)
        self.previous = zlib.crc32(head)
        self.file += head + struct.pack('<I', self.previous) + payload + bytes(-len(payload) % 16)

    def put(self, codec, raw):
        codec, payload = compress(codec, raw)
        self.levels[1].append((self.n_chunks, len(self.file), self.raw_nbytes))
        self.frame(CHUNK, codec, (self.n_chunks, self.raw_nbytes), payload, len(raw),
                   zlib.crc32(raw))
        self.n_chunks += 1
        self.raw_nbytes += len(raw)
        self.write_full_nodes()

    def write_node(self, level):
        entries, self.levels[level] = self.levels[level], []
        sequence, _, raw_offset = entries[0]
        payload = b''.join(struct.pack('<QQ', *entry[1:]) for entry in entries)
        self.levels[level + 1].append((sequence, len(self.file), raw_offset))
        self.frame(INDEX, level, (sequence, raw_offset), payload, 0, zlib.crc32(payload))

    def write_full_nodes(self):
        for level in range(1, 9):
            if len(self.levels[level]) == FANOUT:
                self.write_node(level)

    def finish(self):
        level = 1
        while any(self.levels[level + 1:]) or len(self.levels[level]) > 1:
            if self.levels[level]:
                self.write_node(level)
                self.write_full_nodes()
            level += 1
        root = self.levels[level][0][1] if self.levels[level] else 0
        self.frame(END, 0, (self.n_chunks, self.raw_nbytes),
                   parameters=struct.pack('<QQ', root, len(self.file) + 64))
        return self.file


def write(codec, chunk_nbytes, raw, has_total=True):
    writer = Writer(chunk_nbytes, len(raw) if has_total else None)
    for at in range(0, len(raw), chunk_nbytes):
        writer.put(codec, raw[at:at + chunk_nbytes])
    return writer.finish()


# -- reading

class Frame:
    def __init__(self, file, place):
        head = file[place:place + 64]
        require(len(head) == 64, 'cut off', place)
        (self.marker, self.number, flags, self.payload_nbytes, self.raw_nbytes, self.sequence,
         self.raw_offset, self.parameters, self.crc, self.previous, reserved, self.header_crc,
         ) = struct.unpack('<4sHHIIQQ16sIIII', head)
        require(self.header_crc == zlib.crc32(head[:60]), 'damaged header', place)
        require(self.marker in (CHUNK, INDEX, END) and not flags and not reserved, 'version', place)
        self.place = place
        self.end = place + 64 + self.payload_nbytes + -self.payload_nbytes % 16
        require(self.end <= len(file), 'cut off', place)
        self.payload = file[place + 64:place + 64 + self.payload_nbytes]
        require(not any(file[place + 64 + self.payload_nbytes:self.end]), 'padding', place)

    def entries(self):
        require(self.crc == zlib.crc32(self.payload), 'damaged node', self.place)
        return list(struct.iter_unpack('<QQ', self.payload))

    def output(self):
        require(self.number in CODECS.values() and not any(self.parameters), 'codec', self.place)
        require(1 <= self.raw_nbytes <= CHUNK_MAX and self.payload, 'sizes', self.place)
        if self.number == 0:
            raw = self.payload
        else:
            require(self.payload_nbytes < self.raw_nbytes <= 1032 * self.payload_nbytes, 'sizes',
                    self.place)
            unpacker = zlib.decompressobj(WBITS[self.number])
            raw = unpacker.decompress(self.payload, self.raw_nbytes + 1)
            require(unpacker.eof and not unpacker.unused_data, 'payload', self.place)
        require(len(raw) == self.raw_nbytes and zlib.crc32(raw) == self.crc, 'output', self.place)
        return raw


def read_file_header(file, place):
    head = file[place:place + 32]
    require(MAGIC.startswith(head[:8]), 'magic', place)
    require(len(head) == 32, 'cut off', place)
    version, flags, chunk_max, total, reserved, crc = struct.unpack('<HHIQII', head[8:])
    require(crc == zlib.crc32(head[:28]), 'damaged file header', place)
    require(version == 1 and flags in (0, 1) and not reserved, 'version', place)
    require(1 <= chunk_max <= CHUNK_MAX and (flags or not total), 'file header', place)
    return crc, chunk_max, total if flags else None


def read_member(file, place):
    """(output, place behind it).  The same member is written again, and must be the same."""
    previous, chunk_max, total = read_file_header(file, place)
    again = Writer(chunk_max, total)
    output, at = [], place + 32
    while True:
        frame = Frame(file, at)
        require(frame.previous == previous, 'chain', at)
        previous, at = frame.header_crc, frame.end
        if frame.marker == END:
            break
        if frame.marker == INDEX:
            frame.entries()
            continue
        require(frame.raw_nbytes <= chunk_max, 'chunk size', frame.place)
        output.append(frame.output())
        again.levels[1].append((again.n_chunks, len(again.file), again.raw_nbytes))
        again.frame(CHUNK, frame.number, (again.n_chunks, again.raw_nbytes), frame.payload,
                    frame.raw_nbytes, frame.crc)
        again.n_chunks += 1
        again.raw_nbytes += frame.raw_nbytes
        again.write_full_nodes()
    output = b''.join(output)
    require(total in (None, len(output)), 'total', place)
    require(again.finish() == file[place:at], 'not as the format has it', place)
    return output, at


def read(file):
    output, place = read_member(file, 0)
    while place < len(file):
        more, place = read_member(file, place)
        output += more
    return output


def find_chunk(file, member, end, target):
    """The chunk that holds the member's output byte, by the index."""
    root, _ = struct.unpack('<QQ', end.parameters)
    frame = Frame(file, member + root)
    while frame.marker == INDEX:
        entries = frame.entries()
        child, _ = max((entry for entry in entries if entry[1] <= target), key=lambda e: e[1])
        frame = Frame(file, member + child)
    require(frame.marker == CHUNK and frame.raw_offset <= target < frame.raw_offset +
            frame.raw_nbytes, 'index', frame.place)
    return frame


def read_range(file, offset, length):
    """Each chunk of the range is looked up anew, from the last frame of the file."""
    members, place = [], len(file)
    while place > 0:
        end = Frame(file, place - 64)
        require(end.marker == END, 'no end frame', place - 64)
        place -= struct.unpack('<QQ', end.parameters)[1]
        members.insert(0, (place, end))
    output, start = b'', 0
    for place, end in members:
        while start <= offset + len(output) < start + end.raw_offset and len(output) < length:
            target = offset + len(output) - start
            chunk = find_chunk(file, place, end, target)
            output += chunk.output()[target - chunk.raw_offset:]
        start += end.raw_offset
    return output[:length]


# -- seeds

def seeds():
    text = b''.join(b'line %d of a text that packs well\n' % i for i in range(40))
    mixed = Writer(300, 1200)
    for codec in (0, 1, 2, 3):
        mixed.put(codec, text[300 * codec:300 * codec + 300])
    two_levels = Writer(1, 258)
    for i in range(258):
        two_levels.put(0, b'ab'[i % 2:i % 2 + 1])
    whole = write(1, 500, text, has_total=False)
    return {
        'no-chunks': write(0, 1, b'', has_total=False),
        'one-stored': write(0, 5, b'wharf'),
        'total-unknown': whole,
        'deflate': write(1, 500, text),
        'zlib': write(2, 500, text),
        'gzip': write(3, 500, text),
        'mixed-codecs': mixed.finish(),
        'three-members': write(0, 100, text[:300]) + write(0, 9, b'') + write(2, 700, text),
        'two-levels-of-index': two_levels.finish(),
        'cut-in-payload': whole[:200],
        'no-end-frame': whole[:-64],
        'trailing-byte': whole + b'x',
    }


def main(command, *arguments):
    if command == 'read':
        file = pathlib.Path(arguments[0]).read_bytes()
        part = [int(argument) for argument in arguments[1:]]
        sys.stdout.buffer.write(read_range(file, *part) if part else read(file))
    elif command == 'write':
        codec, chunk_nbytes, path = arguments
        raw = pathlib.Path(path).read_bytes()
        sys.stdout.buffer.write(write(CODECS[codec], int(chunk_nbytes), raw))
    elif command == 'seeds':
        for name, file in seeds().items():
            pathlib.Path(arguments[0], name + '.whr').write_bytes(file)


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
    except (Bad, zlib.error) as error:
        sys.exit(f'container_model.py: {error}')
