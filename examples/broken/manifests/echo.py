"""The script of the broken manifests: gives its input back. It is sound; the manifests are not."""

import json
import sys

json.dump(json.load(sys.stdin), sys.stdout)
