"""What a parcel costs: two cents a gram, half as much again where it may break."""

import json
import sys

asked = json.load(sys.stdin)
if asked["grams"] > 30_000:
    print("A parcel has at most 30000 grams; send several.", file=sys.stderr)
    sys.exit(1)
cents = asked["grams"] * 2
if asked.get("fragile"):
    cents += cents // 2
print(
    json.dumps({"id": f"Q-{cents}", "town": asked["town"], "grams": asked["grams"], "cents": cents}, ensure_ascii=False)
)
