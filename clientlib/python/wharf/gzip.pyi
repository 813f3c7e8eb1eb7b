# SPDX-License-Identifier: Apache-2.0
import gzip as _gzip
from collections.abc import Buffer
from gzip import BadGzipFile as BadGzipFile, compress as compress, open as open

class GzipFile(_gzip.GzipFile): ...

def decompress(data: Buffer) -> bytes: ...
