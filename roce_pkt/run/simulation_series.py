"""Time series of a simulation: queues of ports and rates of flows, as Parquet or JSON lines.

One row for each sample and port (`queue_bytes`) or flow (`rate_bps`, `target_bps`, `alpha`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np

from roce_pkt.errors import InputError
from roce_pkt.run.simulation_names import Names
from roce_pkt.units import PS_PER_NS

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SeriesWriter(Protocol):
    """Takes blocks of samples as `simulate` gives them."""

    def __call__(self, times: NDArray[Any], queues: NDArray[Any], rates: NDArray[Any], names: Names) -> None:
        """Write one block."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


def _senders(names: Names) -> list[int]:
    """Halves that send data, one a flow."""
    pairs = names.built.pairs
    reads = [f.traffic.verb == "read" for f in pairs.flows]
    return [int(r if back else q) for q, r, back in zip(pairs.requester, pairs.responder, reads, strict=True)]


class JsonLines:
    """Samples as JSON lines.

    Args:
        stream: Where they go.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def __call__(self, times: NDArray[Any], queues: NDArray[Any], rates: NDArray[Any], names: Names) -> None:
        """Write one block."""
        flows = [(half, names.flow(half)._asdict()) for half in _senders(names)]
        for at, time_ps in enumerate(times.tolist()):
            time_ns = time_ps // PS_PER_NS
            lines = [
                {"time_ns": time_ns, "port": name, "queue_bytes": int(queue)}
                for name, queue in zip(names.ports, queues[at].tolist(), strict=True)
                if not name.startswith("host")
            ]
            for half, flow in flows:
                rate, target, alpha = (
                    float(rates[at, half][name]) for name in ("rate_bps", "target_bps", "alpha")
                )
                lines.append(
                    {"time_ns": time_ns, "flow": flow, "rate_bps": rate, "target_bps": target, "alpha": alpha}
                )
            self._stream.write("".join(json.dumps(line) + "\n" for line in lines).encode())

    def close(self) -> None:
        """Nothing is held back."""


class Parquet:
    """Samples as a Parquet file, a row group a block.

    Args:
        stream: Where it goes.
    """

    def __init__(self, stream: BinaryIO) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise InputError(
                "Parquet needs pyarrow: pip install 'roce-pkt[parquet]'; or name a .jsonl file"
            ) from error
        self._pa = pa
        number, text = pa.float64(), pa.dictionary(pa.int32(), pa.string())
        fields = [("time_ns", pa.int64()), ("port", text), ("flow", text), ("queue_bytes", pa.int64())]
        self._schema = pa.schema(fields + [(n, number) for n in ("rate_bps", "target_bps", "alpha")])
        self._writer = pq.ParquetWriter(stream, self._schema, compression="zstd")

    def __call__(self, times: NDArray[Any], queues: NDArray[Any], rates: NDArray[Any], names: Names) -> None:
        """Write one block."""
        pa, senders = self._pa, _senders(names)
        switches = [i for i, name in enumerate(names.ports) if not name.startswith("host")]
        stamps = times // PS_PER_NS
        labels = [str(names.flow(half)) for half in senders]
        chosen = rates[:, senders]
        empty = len(times) * len(switches), len(times) * len(senders)

        def column(ports: Any, flows: Any, kind: Any) -> Any:
            left = pa.nulls(empty[0], kind) if ports is None else pa.array(ports, kind)
            right = pa.nulls(empty[1], kind) if flows is None else pa.array(flows, kind)
            return pa.concat_arrays([left, right])

        def coded(words: list[str], *, first: bool) -> Any:
            many = np.tile(np.arange(len(words), dtype=np.int32), len(times))
            indices = column(many if first else None, None if first else many, pa.int32())
            return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string()))

        stamped = column(np.repeat(stamps, len(switches)), np.repeat(stamps, len(senders)), pa.int64())
        columns = [
            stamped,
            coded([names.ports[i] for i in switches], first=True),
            coded(labels, first=False),
            column(queues[:, switches].ravel(), None, pa.int64()),
            *(column(None, chosen[n].ravel(), pa.float64()) for n in ("rate_bps", "target_bps", "alpha")),
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


def series_writer(path: str, stream: BinaryIO) -> SeriesWriter:
    """The writer a file's name asks for: `.parquet`, or `.jsonl`.

    Raises:
        InputError: Another name, or Parquet without pyarrow.
    """
    match Path(path).suffix:
        case ".parquet":
            return Parquet(stream)
        case ".jsonl":
            return JsonLines(stream)
        case other:
            raise InputError(f"{path}: {other or 'no suffix'} is no time series; name it .parquet or .jsonl")
