"""The counts of `tamis stats` by PySpark: `python spark_counts.py log.jsonl …`, on this machine or by `spark-submit` on a cluster.

Needs `pip install pyspark` and a Java runtime, and Tamis on every machine.
"""

import json
import os
import sys

from pyspark.sql import SparkSession

from tamis.protocols import Counts, count


def counted(lines):
    """The counts of one partition."""
    records = map(json.loads, lines)
    yield count((record["content"], record.get("model", "")) for record in records)


def merged(one, other):
    one.merge(other)
    return one


def main(files):
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.appName("tamis").getOrCreate()
    parts = spark.sparkContext.textFile(",".join(files)).mapPartitions(counted)
    print(json.dumps(parts.treeReduce(merged).data()) if files else json.dumps(Counts().data()))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
