"""The sentences of a Python docstring, in any of the usual styles. Must not know what is made of them."""

from __future__ import annotations


class Docstring:
    """The sentences of a docstring: what the function does, its parameters, what it returns."""

    def __init__(self, text: str) -> None:
        self.text = ""
        self.parameters: dict[str, str] = {}
        self.returns = ""
        if not text:
            return
        from docstring_parser import ParseError, parse

        try:
            read = parse(text)
        except ParseError:
            self.text = " ".join(text.split())
            return
        parts = (read.short_description, read.long_description)
        self.text = " ".join(" ".join(part.split()) for part in parts if part)
        for item in read.params:
            if item.description:
                self.parameters[item.arg_name.lstrip("*")] = " ".join(item.description.split())
        if read.returns is not None and read.returns.description:
            self.returns = " ".join(read.returns.description.split())
