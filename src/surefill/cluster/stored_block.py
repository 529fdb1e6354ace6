"""A block of rows that lies in a folder, with its rows' labels, and writes what was learnt of its rows."""

from __future__ import annotations

from pathlib import Path

from surefill.cluster.shards import read_shard, shard_folder
from surefill.completion.bayes.row_block import RowBlock
from surefill.io.numpy_files import read_npy
from surefill.io.parquet_writer import parquet_file


class StoredBlock(RowBlock):
    """The block ``index`` of a folder of shards."""

    def __init__(self, folder: Path, index: int) -> None:
        super().__init__(read_shard(folder, index))
        self._place, self._index = shard_folder(folder, index), index

    def write(self, name: str, label: str, output: str) -> int:
        """Write a line for each row: its label, its bias, its factors and its noise precision; gives how many."""
        state = self.get(name)
        labels = read_npy(self._place / "row_labels.npy")[state["ids"]]
        strength, draws, strayed = state["strength"], state["draws"][:-1], state["strayed"][:-1]
        columns = {label: labels, "bias": state["mean"][:-1, 0]}
        columns |= {f"factor_{a}": state["mean"][:-1, a] for a in range(1, state["mean"].shape[1])}
        columns["noise_precision"] = (strength + draws) / (strength + strayed)
        path = Path(output) / f"part-{self._index:06d}.parquet"
        with parquet_file(path.with_suffix(".part")) as sink:
            sink.write(columns)
        path.with_suffix(".part").replace(path)
        return len(labels)
