# SPDX-License-Identifier: Apache-2.0
import io
from collections.abc import Buffer
from types import TracebackType
from typing import Any

class Writer(io.BufferedIOBase):
    name: Any
    def write(self, data: Buffer, /) -> int: ...
    def discard(self) -> None: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None: ...

class TextWriter(io.TextIOWrapper):
    @property
    def buffer(self) -> Writer: ...  # type: ignore[override]
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None: ...
