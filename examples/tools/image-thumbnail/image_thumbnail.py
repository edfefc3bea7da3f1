"""image:thumbnail: makes an image smaller with Pillow, which `requirements.txt` beside this script pins.

Reads one JSON object from standard input, prints one JSON object; a problem is one line on standard error and exit code 1.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import sys
import warnings
from pathlib import Path
from typing import NoReturn, cast

from PIL import Image, ImageOps

FORMATS = {"png": "PNG", "jpeg": "JPEG"}
READ = ("PNG", "JPEG", "GIF", "BMP", "WEBP")
MAX_BYTES = 10_000_000
MAX_PIXELS = 40_000_000


def fail(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(1)


def read_request() -> dict[str, object]:
    try:
        request = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    except (ValueError, RecursionError):
        fail("the input is not JSON in UTF-8")
    if not isinstance(request, dict):
        fail("the input must be a JSON object with an 'image_path' or 'image_data'")
    return cast("dict[str, object]", request)


def whole_number(request: dict[str, object], name: str, default: int) -> int:
    value = request.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1024:
        fail(f"'{name}' must be a whole number from 1 to 1024")
    return value


def image_bytes(request: dict[str, object]) -> bytes:
    path, data = request.get("image_path"), request.get("image_data")
    if (path is None) == (data is None):
        fail("give either 'image_path' or 'image_data'")
    if data is not None:
        if not isinstance(data, str) or len(data) > MAX_BYTES * 4 // 3 + 4:
            fail(f"'image_data' must be Base64 of at most {MAX_BYTES} bytes")
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            fail("'image_data' is not Base64; give it without line breaks and without 'data:image/png;base64,'")
    if not isinstance(path, str) or path.startswith("/") or ".." in path.split("/") or "\0" in path or "\\" in path:
        fail("'image_path' must be a path below the tool's folder, such as 'images/kettle.png'")
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        known = ", ".join(sorted(str(one) for one in Path("images").glob("*.png")))
        fail(f"there is no image {path!r}; there are: {known}")
    if len(content) > MAX_BYTES:
        fail(f"the image is larger than {MAX_BYTES} bytes")
    return content


def open_image(content: bytes) -> Image.Image:
    # An image that unpacks to far more than its bytes is refused before it is decoded.
    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    try:
        image = Image.open(io.BytesIO(content), formats=READ)
        image.load()
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        fail(f"the image has more than {MAX_PIXELS} pixels")
    except Exception:  # Pillow's readers raise whatever a broken file makes them
        fail(f"this is no image that can be read; give one of {', '.join(READ)}")
    return image


def main() -> None:
    request = read_request()
    box = (whole_number(request, "max_width", 128), whole_number(request, "max_height", 128))
    form = request.get("format", "png")
    if not isinstance(form, str) or form not in FORMATS:
        fail(f"'format' must be one of {', '.join(FORMATS)}")
    image = open_image(image_bytes(request))
    original = {"width": image.width, "height": image.height, "format": (image.format or "").lower()}
    image = ImageOps.exif_transpose(image)
    has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    image = image.convert("RGBA" if has_alpha else "RGB")
    image.thumbnail(box, Image.Resampling.LANCZOS)
    if form == "jpeg" and has_alpha:
        white = Image.new("RGB", image.size, "white")
        white.paste(image, mask=image.getchannel("A"))
        image = white
    target = io.BytesIO()
    image.save(target, FORMATS[form], optimize=True)
    content = target.getvalue()
    result = {
        "width": image.width,
        "height": image.height,
        "format": form,
        "bytes": len(content),
        "image_data": base64.b64encode(content).decode("ascii"),
        "original": original,
    }
    print(json.dumps(result))


main()
