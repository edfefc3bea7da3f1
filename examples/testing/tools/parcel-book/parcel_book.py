"""Books a parcel: gives back the number, and the label."""

import json
import sys

asked = json.load(sys.stdin)
print(json.dumps({"booked": asked["quote"], "label": asked.get("note", "")}, ensure_ascii=False))
