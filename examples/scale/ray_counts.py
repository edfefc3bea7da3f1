"""The counts of `tamis stats` by Ray Data: `python ray_counts.py log.jsonl …`, on this machine or on a cluster of Ray's.

Needs `pip install 'ray[data]'`, and Tamis on every machine.
"""

import json
import pickle
import sys

import ray

from tamis.protocols import Counts, count


def counted(batch):
    """The counts of some lines, as one row."""
    records = [json.loads(line) for line in batch["text"]]
    found = count((record["content"], record.get("model", "")) for record in records)
    return {"counts": [pickle.dumps(found)]}


def main(files):
    total = Counts()
    for row in ray.data.read_text(files).map_batches(counted, batch_size=4096).iter_rows():
        total.merge(pickle.loads(row["counts"]))
    print(json.dumps(total.data()))


if __name__ == "__main__":
    main(sys.argv[1:])
