"""Characters that nobody sees: one table, each set for a character class of a pattern, and for what it is there.

The sets differ on purpose: what a reader passes over must never be what a protocol reads as text, and what is refused in names, or
shown escaped, is more. Whoever needs a further set makes it here. Must not know protocols.
"""

from __future__ import annotations

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"
"""Without a width, anywhere."""
IN_LAYOUT = f"\u00ad{ZERO_WIDTH}\u200e\u200f"
"""What models and editors leave in the layout of TAM and VCP; never a letter, digit or blank. Single characters, no ranges."""
IN_TAGS = f"{IN_LAYOUT}\u202a\u202b\u202c\u202d\u202e"
"""What may stand around the names of ACTION's tags and attributes: marks of direction too. Single characters, no ranges."""
IN_MARKERS = "\u00ad\u200b-\u200f\u2060-\u2064\ufeff"
"""What readers of any dialect pass over inside a marker, so that a text without life must not have it there."""
IN_JSON = "\u00a0\u3000\u200b-\u200f\u2060\ufeff"
"""What the JSON that models write has between its tokens: blanks that JSON does not know too."""
BEHIND_JSON = "\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff"
"""What may stand between the last bracket of a JSON document and a comment."""
NOT_IN_NAMES = "\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
"""What ids, names and paths must not have, and no record shows as it is."""
LINE_SEPARATORS = "\u2028\u2029"
"""What some systems read as a line's end."""
HIDING = "\u00ad\u200b\u2060-\u2064\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f"
"""What hides words from a person who reads a text that a model is given; joiners, which scripts need, are none of it."""
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Unicode's default ignorable characters: what marks of contexts are read through."""
UNSHOWN = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0d"
    "\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""What shows nothing, or changes how its neighbours are shown: controls, marks of direction, blanks without width, fillers, tags, selectors of
variants (but the two that emoji have), lone surrogates."""
