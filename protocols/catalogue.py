"""The catalogue of findings: every code with its slug, severity and message.

Codes and slugs are stable: hosts switch on them. Each has a page in ``docs/diagnostics.md``. A message says what was found;
the place is in the diagnostic, the remedy in its fix. Must not know documents or LSP.

Severities (ruling 1): an error makes the calls of its block non-executable; a warning runs and is reported; information and
hints never affect an outcome. ``strict`` entries are errors under ``tamis check --strict``.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tamis.protocols.invisible import visible_line
from tamis.protocols.model import Diag, Severity


class Entry(msgspec.Struct, frozen=True):
    """One kind of finding."""

    code: str
    slug: str
    severity: Severity
    message: str
    strict: bool = False
    aliases: tuple[str, ...] = ()
    """Names that a seed uses for it; on the wire ``data.aliases``."""
    off: bool = False
    """True: not said unless ``[lint]`` gives it a level."""


def _e(
    code: str, slug: str, severity: Severity, message: str, *, strict: bool = False, aliases: tuple[str, ...] = ()
) -> Entry:
    return Entry(code, slug, severity, message, strict, aliases)


def _off(code: str, slug: str, severity: Severity, message: str) -> Entry:
    return Entry(code, slug, severity, message, off=True)


_ENTRIES: tuple[Entry, ...] = (
    # Common to all protocols
    _e("TC001", "truncated", "error", "{protocol} block is cut off inside {construct}; not executed"),
    _e(
        "TC002",
        "unterminated-block",
        "warning",
        "No {close} for the block opened here; it ends at {where}",
        strict=True,
    ),
    _e("TC003", "close-without-open", "warning", "{close} without an opening marker"),
    _e("TC004", "marker-spelling", "warning", "Read {raw} as {canonical}", strict=True),
    _e("TC005", "marker-of-other-protocol", "warning", "Block opened as {a} is closed as {b}", strict=True),
    _e("TC006", "nested-block", "warning", "Block opened inside another; inner one taken", strict=True),
    _e("TC007", "second-block-ignored", "warning", "Only the first ACTION block is used; this one is ignored"),
    _e("TC008", "block-in-fence", "information", "Block inside a code fence is taken as a call"),
    _e("TC009", "mention-not-call", "hint", "Looks like a mention of {marker}, not a call"),
    _e("TC010", "escaped-block", "hint", "HTML-escaped block; not executed"),
    _e("TC011", "noise-in-block", "warning", "Text {excerpt} between parameters is ignored"),
    _e("TC012", "empty-block", "error", "Block holds no call"),
    _e("TC013", "zero-width-character", "warning", "Invisible character U+{hex} in {where}"),
    _e("TC014", "control-character", "warning", "Control character U+{hex} in the value of {param}"),
    _e("TC015", "bom", "information", "Byte order mark ignored"),
    _e("TC016", "bidi-or-homoglyph-name", "warning", "Name {raw} has {script} look-alikes or bidi controls"),
    _e("TC017", "in-reasoning", "hint", "Block inside reasoning is not executed"),
    _e("TC018", "quoted-block", "hint", "Block inside {context} is shown, not executed; a call stands outside of it"),
    _e(
        "TC019",
        "fenced-json",
        "hint",
        'Call JSON in a code fence is shown, not executed; the protocol "json" reads it where it is the whole text',
    ),
    _e("TC020", "too-deep", "error", "More than {limit} levels of nesting; block rejected"),
    _e("TC021", "too-large", "error", "More than {limit} characters; block rejected"),
    _e("TC022", "too-many", "error", "More than {limit} {what}; block rejected"),
    _e("TC023", "too-many-problems", "error", "More than {n} problems; block rejected"),
    _e(
        "TC024",
        "document-too-large",
        "information",
        "The document has more than {limit} characters; it is not analysed",
    ),
    _e("TC025", "findings-cut", "information", "More than {limit} findings; {n} more are not shown"),
    _e("TC026", "plug-in-failed", "error", "The plug-in of protocol {protocol} failed: {reason}; block rejected"),
    _e(
        "TC027",
        "unread-dialect",
        "hint",
        "This looks like a call in the form '{dialect}' ({families}), which was not read; {remedy}",
    ),
    _e(
        "TC028",
        "too-many-blocks",
        "error",
        "More than {limit} blocks; the {n} characters from here on are not read, give them as a text of their own",
    ),
    _e(
        "TC029",
        "broken-call-json",
        "warning",
        'This is call JSON with a fault, so that no call of it was read: {reason}; once it is mended, the protocol "json" reads it',
    ),
    _e("TC050", "not-representable", "error", "{what} cannot be written in {protocol}: {why}"),
    _e("TC051", "name-changed-by-protocol", "error", "{protocol} would turn parameter {name} into {other}"),
    _e("TC052", "lost-in-conversion", "warning", "{what} is not carried over to {protocol}: {why}"),
    _e(
        "TC053",
        "tool-renamed",
        "warning",
        "'{name}' can be no tool's name in {protocol}; the tool is called '{other}' there",
    ),
    _e(
        "TC054",
        "type-lost",
        "warning",
        "{what} becomes a text in {protocol}: no schema of the tool gives its type back",
    ),
    _e("TC055", "call-left", "warning", "{what} is left as it is: {why}"),
    _e(
        "TC057",
        "example-left",
        "information",
        "The call of '{tool}' is left as it is: it stands in reasoning or in an example and would not run",
    ),
    _e(
        "TC056",
        "blocks-joined",
        "information",
        "The calls of {n} blocks stand in one: only the first {protocol} block of a text is run",
    ),
    _e("TC060", "duplicate-param", "warning", "{name} given {n} times; {policy}"),
    _e("TC061", "empty-name", "error", "Parameter without a name is ignored"),
    _e(
        "TC062",
        "mark-slip",
        "error",
        "{raw} at the value of {param} is nearly {mark}; write it so",
    ),
    _e(
        "TC063",
        "emptied-value",
        "error",
        "{param} is empty while '{excerpt}' stands beside its marks: write the value between them",
    ),
    # ACTION
    _e("AX101", "no-tool", "error", "ACTION block has no tool element"),
    _e("AX102", "missing-param-close", "warning", "<{name}> is never closed; value ends at {where}", strict=True),
    _e("AX103", "missing-tool-close", "warning", "<{tool}> is never closed", strict=True),
    _e("AX104", "mismatched-close", "warning", "</{got}> closes <{name}>", strict=True),
    _e("AX105", "stray-close", "warning", "</{name}> closes nothing"),
    _e("AX106", "swapped-close", "warning", "</{a}> and </{b}> are in the wrong order", strict=True),
    _e("AX107", "close-case", "warning", "</{got}> differs from <{name}> only in case"),
    _e("AX110", "raw-markup", "warning", "Unescaped {char} in the value of {param}; read as text", strict=True),
    _e("AX111", "raw-ampersand", "warning", "Unescaped & in the value of {param}; read as text", strict=True),
    _e(
        "AX112",
        "own-close-in-value",
        "warning",
        "</{name}> inside the value of {name}; extended to the last one",
        strict=True,
    ),
    _e("AX113", "undefined-entity", "warning", "&{name}; is not an XML entity; kept as written"),
    _e("AX114", "mixed-content", "warning", "Text and elements mixed in {param}; kept as text"),
    _e("AX115", "markup-in-string", "information", "{param} is a string; its markup is kept as text"),
    _e("AX120", "cdata-unterminated", "warning", "CDATA section in {param} is never closed", strict=True),
    _e("AX121", "cdata-early-end", "warning", "]]> inside the section; extended to the last one", strict=True),
    _e("AX122", "cdata-spelling", "warning", "Read {raw} as <![CDATA["),
    _e("AX123", "comment-unterminated", "error", "Comment is never closed"),
    _e("AX124", "comment-dashes", "information", "-- inside a comment"),
    _e("AX125", "processing-instruction", "warning", "Processing instruction ignored"),
    _e("AX126", "doctype", "error", "DTDs and entity declarations are not allowed"),
    _e("AX127", "comment-left-out", "warning", "Comment inside {param} is left out"),
    _e(
        "AX128", "own-tag-alone", "error", "<{name}> holds nothing but an empty <{name}>; what its value was is unclear"
    ),
    _e("AX130", "tag-unclosed-bracket", "warning", "Tag <{name} lacks '>'", strict=True),
    _e("AX131", "tag-space", "warning", "Space after '<' in {raw}"),
    _e("AX132", "missing-slash", "warning", "<{name}> read as </{name}>", strict=True),
    _e("AX133", "name-not-xml", "hint", "{name} is not an XML name; accepted"),
    _e("AX134", "name-with-space", "warning", "Tag name with a space: {raw}", strict=True),
    _e("AX135", "several-tools", "hint", "{n} calls in one ACTION block"),
    _e("AX136", "attribute-ignored", "warning", "Attribute {name} on <{tag}> is not used"),
    _e("AX137", "params-as-attributes", "warning", "Parameters of {tool} given as attributes", strict=True),
    _e("AX138", "value-as-attribute", "warning", "Value of {name} given as attribute", strict=True),
    _e("AX150", "missing-tool-id", "error", "No <tool_id>"),
    _e("AX151", "empty-tool-id", "error", "<tool_id> is empty"),
    _e("AX152", "conflicting-tool-ids", "error", "Two different tool ids: {a}, {b}"),
    _e("AX153", "tool-id-decorated", "warning", "Quotes or backticks around the tool id", strict=True),
    _e("AX154", "tag-alias", "warning", "<{got}> read as <{canonical}>"),
    _e("AX155", "inputs-missing", "warning", "<input> outside <inputs>"),
    _e("AX156", "inputs-unclosed", "warning", "<inputs> is never closed"),
    _e("AX157", "input-without-name", "error", "<input> has no name"),
    _e("AX158", "name-attribute-spelling", "warning", "{attr}= read as name=", strict=True),
    _e("AX159", "attribute-quotes", "warning", "Attribute value {raw} is not in straight quotes", strict=True),
    _e("AX160", "child-as-input", "warning", "<{name}> inside <inputs> read as an input", strict=True),
    _e("AX161", "json-as-inputs", "warning", "JSON object read as inputs", strict=True),
    _e("AX162", "several-id-input-pairs", "warning", "{n} calls in one block"),
    _e(
        "AX163",
        "context-beside-inputs",
        "warning",
        "<{name}> beside <inputs> is no input; it is kept with the call and not given to the tool",
    ),
    _e("AX170", "not-well-formed", "error", "Not well-formed XML: {reason}"),
    # TAM
    _e("TM201", "missing-command", "error", "Block has no command, which names the tool{hint}"),
    _e("TM202", "empty-command", "error", "command is empty"),
    _e("TM203", "duplicate-command", "error", "command{_n} is given twice"),
    _e("TM204", "mixed-command-forms", "warning", "command and command_N together"),
    _e("TM210", "mixed-delimiters", "warning", "{raw} used as delimiter", aliases=("mixed_delimiters_used",)),
    _e(
        "TM211",
        "missing-tail",
        "warning",
        "Value of {key} has no «««; ends before {next}",
        strict=True,
        aliases=("missing_tail_delimiter",),
    ),
    _e("TM212", "short-or-long-delimiter", "warning", "{raw} read as {canonical}", strict=True),
    _e("TM213", "missing-head", "warning", "Value of {key} has no »»»", strict=True),
    _e("TM214", "no-delimiters", "warning", "Value of {key} is not delimited", strict=True),
    _e("TM215", "reversed-delimiters", "warning", "Delimiters are swapped", strict=True),
    _e("TM216", "own-close-in-value", "error", "««« inside the value of {key}; where the value ends is unclear"),
    _e("TM220", "separator", "warning", "{raw} read as ':'"),
    _e("TM221", "key-decoration", "warning", "Quotes, bullet or emphasis around the key {raw}"),
    _e("TM222", "key-normalised", "hint", "{raw} is read as {normal}"),
    _e("TM223", "key-collision", "warning", "{a} and {b} are the same key"),
    _e("TM224", "key-empty-after-normalising", "warning", "Key {raw} has no letters or digits"),
    _e("TM225", "value-dedented", "information", "Indentation of {n} removed from the value"),
    _e("TM226", "separator-after-value", "hint", "{raw} after the value ignored"),
    _e("TM230", "orphan-step-param", "warning", "{key} belongs to step {n}, which has no command"),
    _e("TM231", "unnumbered-param", "warning", "{key} has no step number; {policy}"),
    _e("TM232", "numbered-param-plain-command", "warning", "{key} is numbered but command is not"),
    _e("TM233", "step-out-of-order", "hint", "Steps run in numeric order {list}"),
    _e("TM234", "step-number-form", "warning", "Step number {raw} read as {n}"),
    _e("TM240", "bad-on-error", "warning", "on_error must be stop or continue, not {v}; stop is used"),
    _e("TM241", "bad-retry", "warning", "retry must be a whole number, not {v}; 0 is used"),
    _e("TM242", "unknown-type-hint", "warning", "Unknown type hint {v}"),
    _e("TM243", "hint-without-param", "warning", "type_hint_{p} has no parameter {p}"),
    _e("TM244", "uri-and-value", "warning", "{p} is given by value and by URI; {policy}"),
    _e("TM245", "bad-uri", "warning", "{v} is not a URI"),
    _e("TM246", "common-overridden", "hint", "common_{p} is overridden in step {n}"),
    _e("TM247", "unknown-variable", "hint", "{v} is passed as text; TAM leaves variables to the platform"),
    _e("TM248", "common-left-out", "hint", "common_{p} is left out of step {n}: {tool} does not declare {p}{hint}"),
    _e("TM250", "comment-form", "warning", "{raw} is not a TAM comment; use #"),
    # VCP
    _e("VC301", "missing-end", "warning", "TOOL_REQUEST without END_TOOL_REQUEST; block dropped"),
    _e("VC302", "missing-tool-name", "warning", "Block has no tool_name; dropped"),
    _e("VC303", "empty-tool-name", "error", "tool_name is empty"),
    _e("VC304", "conflicting-tool-name", "warning", "tool_name given twice; the later one is used"),
    _e("VC310", "missing-end-mark", "warning", "Value of {key} has no 「末」; ends before {next}", strict=True),
    _e("VC311", "missing-start-mark", "warning", "Value of {key} has no 「始」", strict=True),
    _e("VC312", "mark-spelling", "warning", "{raw} read as {canonical}", strict=True),
    _e("VC313", "bare-value", "warning", "Value of {key} is not marked", strict=True),
    _e("VC314", "marks-swapped", "warning", "「末」…「始」 read as 「始」…「末」", strict=True),
    _e("VC315", "own-end-in-value", "error", "「末」 inside the value of {key}; where the value ends is unclear"),
    _e("VC316", "escape-extension", "information", "ESCAPE marks are an extension of upstream"),
    _e("VC320", "separator", "warning", "{raw} read as ':'"),
    _e("VC321", "pair-separator", "hint", "{raw} between pairs"),
    _e("VC322", "key-alias", "warning", "{raw} read as tool_name", strict=True),
    _e("VC323", "key-characters", "warning", "Key {raw} has characters outside [A-Za-z0-9_-]"),
    _e("VC324", "key-decoration", "warning", "Quotes, bullet or emphasis around the key {raw}"),
    _e("VC325", "unparsed-text", "error", "Cannot read {excerpt} as a pair"),
    _e("VC326", "definition-or-result-block", "hint", "{marker} is not a request"),
    _e("VC327", "meta-field", "hint", "{key} is read by the host and not passed to the tool"),
    _e("VC328", "inert-spelling", "hint", "{marker} marks an example: the block is shown and never runs"),
    # Calls in JSON: Hermes and call JSON
    _e("HM601", "missing-name", "error", "The call has no name"),
    _e("HM602", "not-a-call", "error", "Cannot read this as a call: {reason}"),
    _e("HM603", "json-syntax", "error", "Invalid JSON in the call: {reason}"),
    _e("HM604", "key-spelling", "warning", "{raw} read as {canonical}", strict=True),
    _e("HM605", "arguments-as-text", "warning", "The arguments are a JSON text; the object in it is read", strict=True),
    _e("HM606", "arguments-not-object", "error", "The arguments must be an object, not {received}"),
    _e("HM607", "trailing-comma", "warning", "Comma without a value behind it is ignored", strict=True),
    _e("HM608", "json-spelling", "warning", "{raw} is written {canonical} in JSON", strict=True),
    _e("HM609", "json-quotes", "warning", "{raw} is not in double quotes", strict=True),
    _e(
        "HM610",
        "raw-control-character",
        "warning",
        "Control character U+{hex} in a string is read as {canonical}",
        strict=True,
    ),
    _e("HM611", "escape-between-values", "warning", "{raw} between values is read as a line break", strict=True),
    _e("HM612", "json-comment", "warning", "Comment in JSON is ignored", strict=True),
    _e("HM613", "duplicate-key", "warning", "Key '{k}' stands twice in this object; the last one counts"),
    _e("HM614", "suspicious-escape", "warning", "{raw} means {meaning} in JSON; a path needs \\\\"),
    _e("HM615", "lone-surrogate", "warning", "Half of a surrogate pair is read as U+FFFD"),
    _e("HM616", "unused-member", "warning", "'{k}' beside the call is not used"),
    _e("HM617", "missing-bracket", "warning", "'{bracket}' is missing at the end of the call", strict=True),
    _e("HM618", "several-calls", "hint", "{n} calls in one block"),
    _e("HM619", "missing-arguments", "warning", "The call has no arguments; an empty object is read", strict=True),
    # Tools, arguments, schemas
    _e("VA401", "unknown-tool", "error", "Unknown tool ID '{id}'{hint}"),
    _e("VA402", "tool-not-allowed", "error", "Tool '{id}' is not in the agent's inventory"),
    _e("VA403", "unknown-parameter", "error", "Unknown parameter '{p}'{hint}"),
    _e("VA404", "missing-parameter", "error", "Missing required parameter '{p}' ({type})"),
    _e("VA405", "not-executable", "error", "The call is not executable: {why}"),
    _e("VA406", "tool-broken", "error", "The file of '{id}' is refused, so it is no tool: {reason}"),
    _e("VA410", "type", "error", "Input parameter '{p}' must be {expected}, got {excerpt}"),
    _e("VA411", "coerced-loosely", "warning", "'{raw}' read as {value}"),
    _e("VA412", "lossy-coercion-refused", "error", "'{raw}' would have to be rounded or cut to be {type}"),
    _e("VA413", "single-for-list", "warning", "One value given for list '{p}'"),
    _e("VA420", "json-syntax", "error", "Invalid JSON in '{p}': {reason}"),
    _e("VA421", "json-truncated", "error", "JSON in '{p}' ends too early"),
    _e("VA422", "json-type", "error", "'{p}' must be {expected}, but the JSON is {received}"),
    _e("VA423", "json-duplicate-key", "warning", "Key '{k}' twice in the JSON of '{p}'"),
    _e("VA424", "json-limits", "error", "JSON in '{p}' is over a limit: {what}"),
    _e("VA430", "enum", "error", "'{v}' is not one of {list}{hint}"),
    _e("VA431", "const", "error", "Must be exactly {expected}, got {excerpt}"),
    _e("VA432", "pattern", "error", "{excerpt} does not match the pattern {expected}"),
    _e("VA433", "minimum", "error", "Input parameter '{p}' must be at least {expected}, got {excerpt}"),
    _e("VA434", "maximum", "error", "Input parameter '{p}' must be at most {expected}, got {excerpt}"),
    _e("VA435", "length", "error", "'{p}' must be {expected} long, it has {received}"),
    _e("VA436", "items", "error", "'{p}' must hold {expected}, it has {received}"),
    _e("VA437", "unique", "error", "The items of '{p}' must differ: {excerpt} stands more than once"),
    _e("VA438", "format", "warning", "{excerpt} is not a {expected}"),
    _e("VA439", "multiple-of", "error", "Input parameter '{p}' must be a multiple of {expected}, got {excerpt}"),
    _e("VA440", "no-alternative", "error", "'{p}' fits none of: {list}"),
    _e("VA441", "unknown-extra-open-schema", "warning", "'{p}' is not declared by {tool}{hint}"),
    _e("VA442", "null-for-optional", "warning", "'{p}' is null, which it cannot be; read as not given"),
    _e("VA450", "schema-invalid", "error", "parameters is not a valid JSON Schema: {reason}"),
    _e("VA451", "remote-ref", "error", "Remote $ref is not allowed"),
    _e("VA452", "schema-keyword-typo", "warning", "'{k}' is not a JSON Schema keyword{hint}"),
    _e("VA453", "example-invalid", "warning", "examples[{i}].input does not satisfy parameters: {reason}"),
    # What was run from the editor
    _e("VA460", "run-failed", "error", "The last run of '{id}' failed: {reason}"),
    _e("VA461", "example-failed", "error", "examples[{i}] did not give its expectedOutput: {reason}"),
    _e("VA462", "not-as-expected", "error", "The last run did not give what is expected here: {reason}"),
    _e(
        "VA463", "answer-awaited", "warning", "A run waits for your answer, by a code action or a lens here: {question}"
    ),
    # Texts that a person runs: variables, results of earlier blocks, secrets, expectations
    _e("VA470", "unknown-variable", "error", "No variable '{name}' in the environment '{environment}'{hint}"),
    _e("VA471", "result-not-before", "error", "The block '{name}' {why}"),
    _e(
        "VA472",
        "secret-misplaced",
        "error",
        "The secret '{name}' can only be the whole value of a parameter marked x-secret; '{p}' is not",
    ),
    _e("VA473", "block-name", "warning", "'{name}' names no block: {why}"),
    _e("VA474", "expectation-unreadable", "error", "What is expected cannot be read: {reason}"),
    # Manifests
    _e("MF500", "unreadable", "error", "{reason}"),
    _e("MF501", "missing-field", "error", "Missing required field '{k}'{why}"),
    _e("MF502", "field-type", "error", "'{p}' must be {expected}, not {received}"),
    _e("MF503", "field-value", "error", "'{v}' is not a value of '{p}': one of {list}{hint}"),
    _e("MF504", "unknown-field", "warning", "Unknown field '{k}'{hint}"),
    _e("MF505", "empty-field", "error", "'{p}' must not be empty"),
    _e("MF506", "tool-id-shape", "error", "'{v}' cannot be {what}: {reason}"),
    _e("MF507", "tool-id-namespace", "hint", "'{v}' has no namespace; the convention is namespace:tool-name"),
    _e("MF508", "version-form", "hint", "'{v}' is not a semantic version (major.minor.patch)"),
    _e("MF509", "description-short", "hint", "Say what the tool does, when to use it, what it takes and what it gives"),
    _e("MF510", "handler-field-unused", "warning", "'{k}' is not used by a handler of type {type}"),
    _e("MF511", "script-path", "error", "'{v}' cannot be the script's path: {reason}"),
    _e("MF512", "path-pattern", "error", "'{v}' cannot be granted: {reason}"),
    _e("MF513", "host-pattern", "error", "'{v}' is not a host pattern: {reason}"),
    _e("MF514", "unknown-capability", "warning", "Unknown capability '{v}'; the tool will be refused{hint}"),
    _e("MF515", "required-undeclared", "warning", "'{k}' is required but not declared in properties{hint}"),
    _e("MF516", "foreign-shape", "error", "This is {shape}, not a Tamis tool manifest; convert it to use it here"),
    _e("MF517", "example-output-invalid", "warning", "examples[{i}].expectedOutput does not satisfy output: {reason}"),
    _e("MF518", "duplicate-entry", "warning", "'{v}' stands twice in '{p}'"),
    _e("MF519", "pattern-backtracking", "warning", "The pattern may take exponential time: {reason}"),
    _e("MF531", "field-range", "error", "'{p}' must be {expected}, not {received}"),
    _e("MF532", "default-invalid", "warning", "The default of '{p}' does not satisfy its schema: {reason}"),
    _e("MF533", "integrity-form", "error", "'{v}' is not of the form sha256-<base64 of 32 bytes>"),
    _e("MF534", "dependency-range", "error", "'{v}' is not a version range"),
    _e("MF535", "parameters-not-object", "error", "parameters must describe an object, not {received}"),
    _e(
        "MF536",
        "custom-runtime",
        "warning",
        "'{v}' is none of {list}; the tool runs only where sandbox.runtimes.{v} says how",
    ),
    _e("MF539", "parameter-mapping", "error", "'{v}' cannot be mapped: {reason}"),
    _e("MF537", "variable-name", "error", "'{v}' cannot be a variable of the tool: {reason}"),
    _e("MF540", "script-missing", "error", "The script '{v}' does not exist beside the manifest{hint}"),
    _e(
        "MF541",
        "duplicate-tool-id",
        "warning",
        "toolId '{v}' version {version} is declared by {other} too; {kept}",
    ),
    _e("MF542", "script-not-a-file", "error", "The script '{v}' is {what}"),
    _e("MF543", "script-packages", "warning", "The packages of {v} cannot be installed: {reason}"),
    _e("MF544", "dependency-missing", "warning", "'{v}' is not registered, so this tool cannot be called{hint}"),
    _e("MF545", "dependency-version", "error", "No version of '{v}' is in {range}; there is {list}"),
    _e("MF546", "dependency-cycle", "error", "'{v}' needs this tool in turn: {way}"),
    _e("MF547", "mcp-server-unknown", "error", "No MCP server '{v}' is configured{hint}; [mcpServers] has {list}"),
    _e(
        "MF549",
        "extension-unusable",
        "error",
        "The schema extension {name} cannot be held against this manifest: {reason}",
    ),
    _e("MF550", "extension-broken", "error", "{what} (schema extension {name})"),
    _e("MF548", "mcp-server-unusable", "error", "The MCP server '{v}' cannot be started: {reason}"),
    # JSON text of manifests and profiles
    _e("MF520", "json-syntax", "error", "{reason}"),
    _e("MF521", "json-unclosed", "error", "The text ends before {open} from line {line} is closed"),
    _e("MF522", "json-string", "error", "{reason}"),
    _e("MF523", "json-number", "error", "{reason}"),
    _e("MF524", "json-duplicate-key-in-file", "warning", "Key '{k}' stands twice in this object; the last one counts"),
    _e("MF525", "json-comment", "hint", "Comments are not JSON; strictJson refuses them"),
    _e("MF526", "json-trailing-comma", "hint", "Trailing commas are not JSON; strictJson refuses them"),
    _e("MF527", "json-lone-surrogate", "warning", "Half of a surrogate pair is read as U+FFFD"),
    _e("MF529", "json-too-many-errors", "error", "More than {n} problems; the rest of the file is not read"),
    _e("MF530", "json-too-deep", "error", "{reason}; the rest of the file is not read"),
    # Lints of the schemas in manifests
    _e("LN701", "schema-dialect", "warning", "'{v}' is {what}; tools' schemas are 2020-12 or draft-07{hint}"),
    _e("LN702", "schema-old-name", "hint", "'{k}' is draft-07's name; 2020-12 calls it '{name}'"),
    _e("LN703", "keyword-of-other-dialect", "warning", "'{k}' does nothing in {dialect}{instead}"),
    _e("LN704", "keyword-for-other-type", "hint", "'{k}' says nothing about {type}; it is for {wanted}"),
    _e("LN705", "empty-range", "warning", "Nothing fits: {low} is {a} and {high} is {b}"),
    _e("LN706", "enum-duplicate", "warning", "{v} stands twice in the enum"),
    _e("LN707", "value-of-other-type", "warning", "{v} can never be given: the type is {type}"),
    _e("LN708", "keyword-without-partner", "hint", "'{k}' does nothing without '{partner}'"),
    _e("LN709", "keyword-beside-ref", "warning", "draft-07 ignores '{k}' beside $ref"),
    _e("LN710", "format-spelling", "hint", "'{v}' is not a format of JSON Schema{hint}"),
    _e("LN711", "type-missing", "hint", "'{p}' does not say its type, so calls give it as text"),
    _e("LN712", "items-missing", "hint", "The list '{p}' does not say what its items are"),
    _e("LN713", "openapi-keyword", "hint", "'{k}' is OpenAPI's and does nothing here; JSON Schema writes {instead}"),
    _e("LN714", "definition-unused", "hint", "No $ref leads to '{k}'"),
    _e("LN715", "default-of-required", "hint", "'{p}' is required, so its default is never used"),
    _e("LN717", "parameter-name", "hint", "'{p}' cannot be written as a parameter's name in {protocol}"),
    _e("LN718", "parameter-names-collide", "warning", "'{a}' and '{b}' are one parameter in {protocol}"),
    _e("LN719", "parameter-name-reserved", "hint", "'{p}' means something else in {protocol}: {meaning}"),
    # Lints of what a model reads
    _e("LN720", "description-placeholder", "warning", "The description still holds '{v}'"),
    _e("LN721", "parameter-undescribed", "hint", "'{p}' has no description; the model has only its name to go by"),
    _e("LN722", "description-repeats-name", "hint", "The description only repeats the name '{name}'"),
    _e(
        "LN723", "description-unknown-parameter", "hint", "The description speaks of '{v}', which is no parameter{hint}"
    ),
    _e(
        "LN724",
        "description-long",
        "hint",
        "The description has about {n} tokens, more than {limit}; every prompt pays for it",
    ),
    _e(
        "LN725",
        "description-hidden-text",
        "warning",
        "The description holds {what}, which a model reads and people do not see",
    ),
    _e(
        "LN726",
        "description-call-marker",
        "information",
        "The description holds {v}, which opens a call; prompts show it escaped",
    ),
    _e("LN727", "not-flat", "hint", "'{p}' is {what}; models fill flat parameters more reliably: {advice}"),
    _e("LN728", "too-many-parameters", "hint", "{n} parameters, more than {limit}; models leave out or mix up so many"),
    _e("LN729", "id-not-portable", "hint", "'{v}' cannot be an XML tag; an alias such as '{alias}' can"),
    _off(
        "LN730",
        "id-not-for-providers",
        "hint",
        "'{v}' is refused by MCP and provider APIs, which take {wanted}; an alias such as '{alias}' is not",
    ),
    _e("LN731", "examples-missing", "hint", "No examples; models copy them, and each can be run"),
    _e("LN732", "example-repeated", "hint", "The input of examples[{i}] is that of examples[{j}]"),
    _off("LN733", "examples-only-required", "hint", "No example gives an optional parameter"),
    _off("LN734", "boolean-negated", "hint", "'{p}' is true when something is not done; models confuse that"),
    _off("LN735", "enum-unexplained", "hint", "The description of '{p}' explains none of its values"),
    _e("LN736", "alias-useless", "hint", "'{v}' is {what} already"),
    _e("LN737", "description-to-write", "information", "The description is still to be written: '{v}'"),
    # Lints of names across manifests
    _e("LN740", "name-taken", "warning", "'{v}' is {what} of {other} too; calls by this name reach {kept}"),
    _e("LN741", "id-look-alike", "warning", "'{v}' differs from '{name}' in {other} only in case or separators"),
    # Lints of scripts
    _e("LN750", "script-suffix", "warning", "'{v}' looks like {kind}, but handler.language is '{language}'"),
    _e(
        "LN751",
        "script-shebang",
        "warning",
        "The script's first line names {program}, but handler.language is '{language}'",
    ),
    _e("LN752", "script-empty", "warning", "The script is empty: a call ends without a result"),
    _e("LN753", "entry-point-missing", "warning", "The script has no function '{v}'{hint}"),
    _e("LN754", "entry-point-arguments", "warning", "{function} {what}"),
    _e("LN755", "script-network", "warning", "The script uses {what}, but allowHosts is empty: it reaches no host"),
    _e("LN756", "script-host", "warning", "The script names {host}, which allowHosts does not hold"),
    _e("LN757", "script-write", "warning", "The script writes '{path}', which allowWrite does not hold"),
    _off("LN758", "script-reads-undeclared", "hint", "The script reads '{p}', which parameters do not declare{hint}"),
    _e("LN759", "script-hash", "warning", "This is not the hash of {what}; calls are refused"),
    _e("LN760", "script-syntax", "warning", "The script cannot be read as {language}: {reason} (line {line})"),
    # Lints of what a tool asks for
    _e(
        "LN761",
        "capability-without-request",
        "warning",
        "'{v}' is required, but {field} asks for nothing: every call is blocked",
    ),
    _e("LN762", "not-granted", "hint", "'{v}' is not granted here: {reason}"),
    _e("LN763", "limit-without-effect", "hint", "{v} is above {name} ({limit}), which holds"),
    _e("LN764", "host-covered", "hint", "'{v}' is covered by '{other}'"),
    _e("LN765", "env-secret", "warning", "The value of '{p}' looks like a key, and 'env' is for what is no secret"),
    # Lints of calls in texts
    _e(
        "LN770",
        "tam-mergeable",
        "hint",
        "This block and the one before could be one with steps (command_1, command_2): one round less",
    ),
    _e("LN771", "tool-deprecated", "hint", "'{id}' is deprecated{instead}"),
    _e("LN772", "parameter-deprecated", "hint", "'{p}' of {id} is deprecated{instead}"),
    _e(
        "LN773",
        "value-inline",
        "hint",
        "'{p}' has {n} characters; a reference (uri_{p}) keeps them out of the conversation",
    ),
    _off("LN774", "request-id-missing", "hint", "The block has no request_id: sent again, it runs again"),
    # Switching findings off
    _e("LN780", "workflow-undescribed", "warning", "'{id}' has no description; the model has only its name to go by"),
    _e("LN790", "ignore-unused", "hint", "Nothing of {code} is found here; this ignores nothing"),
    _e("LN791", "ignore-unknown", "warning", "'{v}' is no rule{hint}"),
    _e("LN792", "ignore-refused", "information", "{code} {why}; it cannot be ignored"),
    _e("LN793", "ignore-shape", "warning", "'x-tamis-ignore' takes a list of rules, or true for all"),
    # What tools are to be portable to (``[lint] targets``)
    _e("TH401", "target-refuses", "warning", "{target} refuses this: {reason}"),
    _e("TH402", "target-loses", "information", "{target} has no place for this: {reason}"),
    _e("TH403", "target-changes", "hint", "The export to {target} changes this: {reason}"),
    # tamis.toml
    _e("ST801", "settings-syntax", "error", "This is no TOML: {reason}; no tool is run until it is mended"),
    _e("ST802", "setting-unknown", "warning", "{reason}"),
    _e("ST803", "setting-wrong", "warning", "{reason}"),
    _e("ST804", "setting-idle", "warning", "{reason}"),
    _e("ST805", "setting-not-in-force", "information", "{reason}"),
    # Agent profiles
    _e("PF601", "profile-type", "error", "'{p}' must be {expected}, not {received}"),
    _e("PF602", "profile-value", "error", "'{v}' is not a value of '{p}': one of {list}{hint}"),
    _e("PF603", "profile-range", "error", "'{p}' must be {expected}, not {received}"),
    _e("PF604", "profile-unknown-field", "warning", "Unknown field '{k}'{hint}"),
    _e("PF605", "unknown-prefix", "warning", "Unknown prefix '{prefix}' in '{id}'{hint}"),
    _e("PF606", "inventory-unknown-tool", "warning", "No tool '{id}' is known{hint}"),
    _e("PF607", "inventory-duplicate", "warning", "'{id}' stands twice in tool_ids_inventory"),
    _e("PF608", "tool-calls-off", "hint", "Without toolCallConfig tool calls are off"),
    _e("PF609", "toggle-unlisted", "warning", "'{id}' is toggled but not in tool_ids_inventory{hint}"),
    _e("PF610", "inventory-id-shape", "error", "'{id}' cannot be a tool id: {reason}"),
    _e("PF611", "workflow-missing", "warning", "No workflow file is there for '{id}'{hint}"),
    _e("PF612", "inventory-missing", "warning", "tool_ids_inventory is missing: every tool counts as listed"),
    _e("PF613", "inventory-host-tool", "information", "'{id}' is not registered here; a host has to register it{hint}"),
    # Workflows
    _e("WF901", "workflow-type", "error", "'{p}' must be {expected}, not {received}"),
    _e("WF902", "workflow-field-missing", "error", "{what} needs '{p}', {expected}"),
    _e("WF903", "workflow-range", "error", "'{p}' must be {expected}, not {received}"),
    _e("WF904", "workflow-unknown-field", "warning", "Unknown field '{k}'{hint}"),
    _e("WF905", "node-type-unknown", "error", "No tool and no kind of node '{v}' is known{hint}"),
    _e("WF906", "node-id-duplicate", "error", "Two nodes have the id '{id}'"),
    _e("WF907", "edge-dangling", "error", "'{v}' names no node{hint}"),
    _e("WF908", "slot-unknown", "error", "'{type}' has no {side} '{v}'{hint}"),
    _e("WF909", "slot-types", "error", "{source} of '{a}' cannot go into {target} of '{b}'"),
    _e("WF910", "graph-cycle", "error", "These nodes wait for each other: {list}"),
    _e("WF911", "node-input-missing", "error", "'{id}' ({type}) needs '{p}', and nothing gives it"),
    _e("WF912", "node-dead", "warning", "Nothing of '{id}' reaches an output; it is run all the same"),
    _e("WF913", "output-unmapped", "error", "No node gives the output '{p}'"),
    _e("WF914", "input-unused", "warning", "The input '{p}' goes into no node"),
    _e("WF915", "slot-taken", "error", "'{p}' of '{id}' gets its value from two places"),
    _e("WF916", "workflow-recursion", "error", "The workflow calls itself: {list}"),
    _e("WF917", "node-value", "error", "'{p}' of '{id}': {reason}"),
    _e("WF918", "slot-type-unknown", "warning", "'{v}' is no data type of slots, so any value is taken{hint}"),
    _e("WF919", "node-config", "error", "'{id}' ({type}): {reason}"),
    _e("WF920", "input-default", "warning", "The default of '{p}' is no {type}"),
    _e("WF921", "mapping-unknown", "error", "'{p}' is no {side} of this workflow{hint}"),
    _e("WF922", "workflow-large", "error", "There are more than {limit} {what}; nothing more is looked at"),
    _e("WF923", "workflow-id-shape", "error", "'{id}' cannot be a tool id: {reason}; rename the file"),
    _e("WF924", "workflow-foreign", "error", "This is {shape}, which its own engine runs: no workflow of Tamis"),
    _e(
        "WF925",
        "output-converted",
        "warning",
        "The output '{p}' is {type}, and {from} gave {received}: it was converted",
    ),
    _e("WF926", "node-type-host", "information", "'{v}' is not registered here; a host has to register it{hint}"),
)

CATALOGUE: dict[str, Entry] = {entry.code: entry for entry in _ENTRIES}


class _Arguments(dict[str, object]):
    """Message arguments; a missing one shows its name instead of raising, a long one is cut."""

    def __missing__(self, key: str) -> str:
        return "{" + key + "}"


_MAX_ARGUMENT = 160


Of = Literal["arguments", "output"]
"""What was checked against a schema: what a call gives a tool, or what a tool gave."""
_WHOLE: dict[Of, str] = {"arguments": "the arguments object", "output": "the output"}


def value_message(diag: Diag, of: Of, *, whole: bool) -> str:
    """``message`` of a finding about a value; ``whole``: about all of it, else about a part of it, ``p``."""
    sentence = CATALOGUE[diag.code].message
    if whole:
        sentence = sentence.replace("Input parameter '{p}'", "'{p}'").replace("'{p}'", _WHOLE[of])
        sentence = sentence[0].upper() + sentence[1:]
    elif of == "output":
        # what a tool gave has no parameters
        sentence = sentence.replace("Input parameter '{p}'", "'{p}'").replace("parameter", "member")
    return message(diag, sentence)


def placed(code: str, text: str, name: str, of: Of) -> str:
    """The sentence of a finding for who sees no place beside it: with the name of the part, where the catalogue's has none."""
    if not name or "{p}" in CATALOGUE[code].message:
        return text
    return f"{'Input parameter ' if of == 'arguments' else ''}'{_in_line(name)}': {text}"


def _in_line(text: str, *, whole: bool = False) -> str:
    if len(text) > _MAX_ARGUMENT and not whole:
        text = text[: _MAX_ARGUMENT - 1] + "…"
    # An editor, a log or a model may show nothing in the place of what a terminal obeys: the quotation says what is there.
    return visible_line(text.replace("\x00", "\\0"))


def message(diag: Diag, sentence: str | None = None) -> str:
    """The sentence of a finding, on one line, with control characters shown and long arguments cut."""
    arguments = _Arguments()
    for name, value in diag.args.items():
        text = value if isinstance(value, str) else str(value)
        arguments[name] = _in_line(text, whole=name in ("list", "hint", "reason"))
    sentence = CATALOGUE[diag.code].message if sentence is None else sentence
    if "subject" in arguments:
        # One sentence for both schemas of a manifest: it is listed with the first of them.
        sentence = sentence.replace("parameters", "{subject}", 1)
    return sentence.format_map(arguments)


def severity(diag: Diag, *, strict: bool = False) -> Severity:
    """The severity in force: the finding's own, else the catalogue's, raised where strict reading asks for it."""
    entry = CATALOGUE[diag.code]
    if strict and entry.strict:
        return "error"
    return diag.severity or entry.severity
