"""The loggers among the envelope layers, as data (formats.md 6); see envelope_layers.py for the words."""

from __future__ import annotations

from analyzer.ingest.envelope_layers import (
    BRACE,
    BRACKET,
    DAY,
    DIGIT,
    FRAC,
    LETTER,
    LETTER_LEVEL,
    LEVEL,
    LEVELS,
    MO,
    SGR,
    STRING,
    TIME,
    ZONE,
    D,
    Layer,
    Y,
    prefix,
)

_NAME = r"[A-Za-z_][A-Za-z0-9_.\-]*"
_THREAD = r"(?:[0-9]+|MainThread|(?:Thread|ThreadPoolExecutor|Dummy)-[^ :]+(?: \([^)]*\))?|asyncio_[0-9]+)"
_PAR_RANK = "(?:DP|TP|EP|PP|CP)[0-9]+"
_SGL_KEY = rf"(?: (?P<key>TP(?P<rank>[0-9]+)|{_PAR_RANK}(?: {_PAR_RANK})*))"
_DATE_GATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:"

_LOGGERS_DIGIT: tuple[Layer, ...] = (
    Layer(
        name="tensorflow",
        opens=(DIGIT,),
        gate=_DATE_GATE + r"[0-9]{2}:[0-9]{2}\.[0-9]{3,9}: ",
        pattern=prefix(rf"{DAY} {TIME}\.{FRAC}: {LETTER_LEVEL} +(?:[0-9]+ )?[^ ]+:[0-9]+\](?: |$)"),
    ),
    Layer(
        name="loguru",
        opens=(DIGIT,),
        gate=_DATE_GATE + r"[0-9]{2}:[0-9]{2}[.,][0-9]+ \| ",
        pattern=prefix(rf"{DAY} {TIME}[.,]{FRAC} \| {LEVEL} *\| [^ |]+:[^ |]*:[0-9]+ - "),
    ),
    Layer(
        name="python",
        opens=(DIGIT,),
        gate=_DATE_GATE + "[0-9]{2}:[0-9]{2}[^ ]* - ",
        pattern=prefix(rf"{DAY}[ T]{TIME}(?:[.,]{FRAC})? - (?:{_NAME} - )?{LEVEL} - "),
    ),
    Layer(
        name="python",  # the name is lower case: `ERROR RuntimeError: x` is a level and a message
        opens=(DIGIT,),
        gate=_DATE_GATE + "[0-9]{2}:[0-9]{2}[^ \t]*[ \t]+[A-Z]",
        pattern=prefix(
            rf"{DAY}[ T]{TIME}(?:[.,]{FRAC})?[ \t]+{LEVEL}"
            r"(?: +[a-z_][a-z0-9_.]*: |[ \t][A-Za-z0-9_]+\.py:[0-9]+ -- | )"
        ),
    ),
    Layer(
        name="max_file",
        opens=(DIGIT,),
        gate="[0-9]{2}:[0-9]{2}:[0-9]{2}-[0-9]{2}:",
        pattern=prefix(rf"(?P<yy>[0-9]{{2}}):{MO}:{D}-{TIME}\.{FRAC} {LEVEL}:{SGR}(?: |$)"),
    ),
    Layer(
        name="max",  # the form with pid, thread and logger is that of mid-2025
        opens=(DIGIT,),
        gate=rf"[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}\.[0-9]{{3}} (?:{LEVELS}):",
        pattern=prefix(rf"{TIME}\.{FRAC} {LEVEL}:{SGR}(?: (?P<pid>[0-9]+) {_THREAD}: {_NAME}:(?: |$)| |$)"),
    ),
)
_LLAMA_CLOCK = r"[0-9]+\.[0-9]{2}\.[0-9]{3}\.[0-9]{3}"  # since the start of its process: no clock of ours
_LOGGERS_LLAMA: tuple[Layer, ...] = (
    Layer(
        name="llama_cpp",
        opens=(DIGIT,),
        gate=_LLAMA_CLOCK,
        pattern=prefix(rf"{_LLAMA_CLOCK} {LETTER_LEVEL} "),
    ),
    Layer(
        name="llama_cpp",  # behind a router: the port names the child
        opens=(BRACKET,),
        gate=rf"\[[0-9]{{2,5}}\] {_LLAMA_CLOCK}",
        pattern=prefix(rf"\[(?P<key>[0-9]{{2,5}})\] {_LLAMA_CLOCK} {LETTER_LEVEL} "),
        key_role="task",
    ),
)

_LOGGERS_LETTER: tuple[Layer, ...] = (
    Layer(
        name="vllm",
        opens=(LETTER,),
        gate=rf"(?:{LEVELS}) [01][0-9]-[0-3][0-9] [0-9]",
        pattern=prefix(rf"{LEVEL} {MO}-{D} {TIME}(?:\.{FRAC})? \[?[^\] ]+:[0-9]+\](?: |$)"),
    ),
    Layer(
        name="vllm",  # VLLM_LOGGING_CONFIG with a year (formats.md 6)
        opens=(LETTER,),
        gate=rf"(?:{LEVELS}) [01][0-9]-[0-3][0-9]-",
        pattern=prefix(rf"{LEVEL} {MO}-{D}-{Y}[- ]{TIME}(?:\.{FRAC})? \[?[^\] ]+:[0-9]+\](?: |$)"),
    ),
    Layer(
        name="uvicorn",  # level, colon, padded to ten
        opens=(LETTER,),
        gate="(?:INFO:  |WARN|ERROR:  |CRIT|DEBUG:  |TRACE:  )",
        pattern=prefix("(?P<level>INFO:     |WARNING:  |ERROR:    |CRITICAL: |DEBUG:    |TRACE:    )"),
    ),
    Layer(
        name="python_default",  # `INFO::: MxNxK` has no name and stays (observed.md 6)
        opens=(LETTER,),
        gate="(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[A-Za-z_]",
        pattern=prefix(rf"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):{_NAME}:"),
    ),
    Layer(
        name="absl",  # before its initialisation the date is 0000 and the "time" epoch seconds
        opens=(LETTER,),
        gate="[VDIWEF]0000 00:00:[0-9]{5}",
        pattern=prefix(
            rf"{LETTER_LEVEL}0000 00:00:(?P<unix>[0-9]{{9,10}})\.{FRAC} +(?P<pid>[0-9]+) "
            r"[^ \]]+:[0-9]+\](?: |$)"
        ),
    ),
    Layer(
        name="glog",  # also torch._logging
        opens=(LETTER,),
        gate="[VDIWEF][0-9]{4} [0-9]{2}:",
        pattern=prefix(rf"{LETTER_LEVEL}{MO}{D} {TIME}\.{FRAC} +(?P<pid>[0-9]+) [^ \]]+:[0-9]+\](?: |$)"),
    ),
    Layer(
        name="glog",  # glog 0.6 and later
        opens=(LETTER,),
        gate="[VDIWEF][0-9]{8} [0-9]{2}:",
        pattern=prefix(rf"{LETTER_LEVEL}{Y}{MO}{D} {TIME}\.{FRAC} +(?P<pid>[0-9]+) [^ \]]+:[0-9]+\](?: |$)"),
    ),
    Layer(
        name="ollama",
        opens=(LETTER,),
        gate="time=[0-9]",
        pattern=(
            rf"^time=\"?{DAY}T{TIME}(?:\.{FRAC})?{ZONE}\"? level={LEVEL}(?: source=[^ ]+)? "
            rf'msg="(?P<msg>{STRING})"(?P<rest>.*)$'
        ),
    ),
    Layer(
        name="ollama",  # a message of one word has no quotes
        opens=(LETTER,),
        gate="time=[0-9]",
        pattern=prefix(rf"time=\"?{DAY}T{TIME}(?:\.{FRAC})?{ZONE}\"? level={LEVEL}(?: source=[^ ]+)? msg="),
    ),
)

_LOGGERS_BRACKET: tuple[Layer, ...] = (
    Layer(
        name="ray_cpp",
        opens=(BRACKET,),
        gate=r"\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:,]+ [A-Z] ",
        pattern=prefix(
            rf"\[{DAY} {TIME},{FRAC} {LETTER_LEVEL} (?P<pid>[0-9]+) [0-9]+\] (?:\([a-z_ ]+\) )?"
            r"[A-Za-z0-9_./\-]+:[0-9]+:(?: |$)"
        ),
    ),
    Layer(
        name="sglang",  # without a tag it is any logger with a bracketed date
        opens=(BRACKET,),
        gate=r"\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:",
        pattern=prefix(rf"\[{DAY} {TIME}(?:[.,]{FRAC})?{_SGL_KEY}?\](?: |$)"),
        key_role="fallback",
    ),
    Layer(
        name="sglang",  # old
        opens=(BRACKET,),
        gate=r"\[[0-9]{2}:[0-9]{2}:[0-9]{2} [A-Z]{2}",
        pattern=prefix(rf"\[{TIME}{_SGL_KEY}\](?: |$)"),
        key_role="fallback",
    ),
    Layer(
        name="sglang",  # diffusion
        opens=(BRACKET,),
        gate=r"\[[01][0-9]-[0-3][0-9] [0-9]{2}:",
        pattern=prefix(rf"\[{MO}-{D} {TIME}{_SGL_KEY}?\](?: |$)"),
        key_role="fallback",
    ),
    Layer(
        name="c10",  # month * 100 + day without padding: 219 is 19 February, 1103 is 3 November
        opens=(BRACKET,),
        gate=r"\[[VDIWEF](?:[0-9]{3,4} [0-9]{2}:)",
        pattern=prefix(
            rf"\[{LETTER_LEVEL}(?P<mo>1[0-2]|[1-9])(?P<d>[0-3][0-9]) {TIME}\.{FRAC} [^\] ]+:[0-9]+\](?: |$)"
        ),
    ),
    Layer(
        name="c10",
        opens=(BRACKET,),
        gate=r"\[[VDIWEF] [A-Za-z0-9_./\-]+:[0-9]+\]",
        pattern=prefix(rf"\[{LETTER_LEVEL} [A-Za-z0-9_./\-]+:[0-9]+\](?: |$)"),
    ),
    Layer(
        name="tensorrt",  # the level right after the clock is trtexec's
        opens=(BRACKET,),
        gate=r"\[[01][0-9]/[0-3][0-9]/[0-9]{4}-",
        pattern=prefix(rf"\[{MO}/{D}/{Y}-{TIME}\](?: \[(?P<level>[VIWEF])\](?: \[TRT\])?)?(?: |$)"),
    ),
    Layer(
        name="tensorrt",
        opens=(BRACKET,),
        gate=r"\[TRT",
        pattern=prefix(
            r"\[(?:TRT|TRT-LLM)\] (?:\[RANK (?P<rank>[0-9]+)\] )?\[(?P<level>[VDIWEF])\]"
            r"(?: \[[a-z_]+ *\])?(?: |$)"
        ),
    ),
    Layer(
        name="tensorrt_llm",
        opens=(BRACKET,),
        gate=r"\[TensorRT-LLM\]\[",
        pattern=prefix(rf"\[TensorRT-LLM\]\[{LEVEL}\](?: |$)"),
    ),
    Layer(
        name="crashpad",
        opens=(BRACKET,),
        gate=r"\[[0-9]+:[0-9]+:[0-9]{8},",
        pattern=prefix(
            rf"\[(?P<pid>[0-9]+):[0-9]+:{Y}{MO}{D},"
            r"(?P<H>[01][0-9]|2[0-3])(?P<M>[0-5][0-9])(?P<S>[0-5][0-9]|60)"
            rf"\.{FRAC}:(?P<level>[A-Z]+) [^\] ]+:[0-9]+\](?: |$)"
        ),
    ),
    Layer(
        name="coredump_clock",  # its own name: it tells which program stamped
        opens=(BRACKET,),
        gate=r"\[[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]+\] coredump:",
        pattern=prefix(rf"\[{TIME}\.{FRAC}\] ") + "coredump:",
    ),
)

_BETWEEN = r'(?:"[A-Za-z_]+": ?(?:"(?:[^"\\]|\\.)*"|[^",{}]*), ?)*?'  # fields that we do not read
# Fields that MAX and TGI do not have, or not there: the layer that takes fields in any order reads them.
_FOREIGN = r'\{[^{]*"(?:exception|exc_text|stack[a-z_]*|asctime|time|ts|error|err)" ?: ?["0-9{]'
_LOGGERS_JSON: tuple[Layer, ...] = (
    Layer(
        name="max_json",
        opens=(BRACE,),
        gate=r'\{"levelname": ?"',
        pattern=(
            rf'^\{{"levelname": ?"{LEVEL}", ?{_BETWEEN}"message": ?"(?P<msg>{STRING})"'
            rf'(?:, ?{_BETWEEN}"exc_info": ?"(?P<more>{STRING})")?'
            rf'(?:, ?{_BETWEEN}"timestamp": ?"{DAY}[T ]{TIME}(?:[.,]{FRAC})?{ZONE}?")?(?:,.*)?\}}\s*$'
        ),
        unless=rf'{_FOREIGN}|\{{[^{{]*"exc_info": ?".*"message": ?"',
    ),
    Layer(
        name="tgi_json",
        opens=(BRACE,),
        gate=r'\{"timestamp": ?"',
        pattern=(
            rf'^\{{"timestamp": ?"{DAY}T{TIME}(?:\.{FRAC})?{ZONE}", ?"level": ?"{LEVEL}", ?'
            rf'(?:"fields": ?\{{)?{_BETWEEN}"message": ?"(?P<msg>{STRING})"'
            r'(?:.*?"rank": ?(?P<rank>[0-9]+))?.*\}\s*$'
        ),
        unless=rf'{_FOREIGN}|\{{[^{{]*"exc_info": ?"',
    ),
)

LOGGER = _LOGGERS_DIGIT + _LOGGERS_LLAMA + _LOGGERS_LETTER + _LOGGERS_BRACKET + _LOGGERS_JSON
