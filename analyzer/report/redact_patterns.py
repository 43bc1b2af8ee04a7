"""What keys, people, hosts and requests look like in logs. Group ``x`` is what goes; else the whole match.

A small table instead of a library: the ones that exist are no longer kept (detect-secrets, scrubadub) or
bring a language model (Presidio). No pattern may backtrack far: logs have long lines.
"""

from __future__ import annotations

import re

Table = tuple[tuple[str, re.Pattern[str]], ...]

_IS = r"[\"']?\s{0,3}[=:]\s{0,3}[\"']?"  # key=value, "key": "value"
_MIXED = r"(?=[\w+/.~=-]{0,99}\d)(?=[\w+/.~=-]{0,99}[A-Za-z])[\w+/.~=-]{12,}"  # letters and digits: no number
_NAME = r"[A-Za-z][A-Za-z0-9._-]{1,80}"
_HOSTISH = r"(?=[A-Za-z._-]{0,80}[\d.-])[A-Za-z][A-Za-z0-9._-]{2,80}"  # has a digit, dot or hyphen
_QUOTED = r"\"(?:[^\"\\]|\\.)*(?:\"|$)|'(?:[^'\\]|\\.)*(?:'|$)"
_BLOCK = r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
_PRIVATE_KEYS = (
    "api[_-]?keys?|secret(?:[_-]?(?:access)?[_-]?key)?|(?:access|auth|hf)[_-]?token|client[_-]?secret"
)
_KEY_OPTIONS = "api-key|token|password|secret"
_KEYWORDS = f"{_PRIVATE_KEYS}|_token"
_TEXT_KEYS = (
    "prompts?|(?:prompt|input|generated|output)_text|user_input|content|query|completion|text|inputs|"
    "messages|stop|bad_words"
)
_BARE_KEYS = "[Pp]rompt|user_input|[Ii]nput[ _]text"  # the text goes on to the end of the line
_NO_TEXT = "request-text-|None|null|True|False|[Tt]rue|[Ff]alse"
_LIST = r"[\"']?\s{0,3}[:=]\s{0,3}\[\s?"
_ALIAS_KEYS = (
    "served_model_name|served-model-name|lora_name|adapter_name|adapter_id"  # chosen by whoever serves
)
# What a tokenizer turns back into the request.
_ID_KEYS = "prompt_token_ids|output_token_ids|new_token_ids|token_ids|input_ids|prompt_ids"
_USER_KEYS = "USER|USERNAME|LOGNAME|SUDO_USER|user|username"
_HOST_KEYS = "hostname|HOSTNAME|MASTER_ADDR|SLURMD_NODENAME|nodename|node_name"
_SYSLOG = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
_JOURNAL = r"\d{4}-\d\d-\d\dT\S{8,32}"  # others stamp so too: only with a pid or the kernel behind it
_OCTETS = r"\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}"
# An address of IPv6 and not a scope of C++ (a::b): a digit in it, or many groups.
_HAS_DIGIT = r"(?=[0-9a-fA-F:]{0,39}\d)"
_MANY_GROUPS = r"(?=(?:[0-9a-fA-F]{0,4}:){3})"
_GROUPS = r"(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}"
_PRIVATE_ZONES = "internal|intranet|lan|corp|local"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
# Zones that are words of programs too (self.net, logger.info) need a label such as gpu-7 before them.
_ZONES = "com|org|edu|gov"
_DOUBTFUL_ZONES = "net|io|ai|dev|cloud|app|eu|de|fr|uk|jp|cn|ch|nl|se|ca|au|kr"
_NUMBERED = (
    r"(?!(?:[A-Za-z0-9-]{1,63}\.){0,5}\d{1,9}\.)(?=(?:[A-Za-z0-9-]{1,63}\.){0,5}[A-Za-z][A-Za-z0-9]*-?\d)"
)
_SAFE = "bcdfghjklmnpqrstvwxz2456789"  # the letters of the endings that Kubernetes makes (apimachinery rand)
_OF_SET = rf"[{_SAFE}]{{8,10}}-[{_SAFE}]{{5}}"
_OF_JOB = rf"(?=[{_SAFE}]{{0,4}}\d)(?=\d{{0,4}}[a-z])[{_SAFE}]{{5}}"  # "-small" is a word


def _compiled(rows: tuple[tuple[str, str], ...]) -> Table:
    return tuple((name, re.compile(pattern)) for name, pattern in rows)


# Always replaced: no report needs a key.
SECRETS = _compiled(
    (
        ("private-key", rf"(?s){_BLOCK}"),
        ("private-key", r"(?m)^(?P<x>[A-Za-z0-9+/]{64}=*)$"),  # a line out of the middle of one
        ("authorization", rf"(?i)\bauthorization{_IS}(?P<x>(?:[a-z]+ )?[^\s\"',]{{4,}})"),
        ("bearer-token", r"(?i)\bbearer (?P<x>[a-z0-9._~+/=-]{8,})"),
        ("jwt", r"\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*"),
        ("aws-key", r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b"),
        ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{20,})"),
        ("gitlab-token", r"\bglpat-[\w-]{16,}"),
        ("hf-token", r"\bhf_[A-Za-z0-9]{16,}"),
        ("api-key", r"\b(?:sk|pk|rk)-[\w-]{16,}"),
        ("api-key", r"\b[sr]k_(?:live|test)_\w{10,}"),
        ("nvidia-key", r"\bnvapi-[\w-]{16,}"),
        ("google-key", r"\bAIza[\w-]{30,}"),
        ("slack-token", r"\bxox[abeprs]-[\w-]{10,}"),
        ("url-password", r"://[^\s/:@]{1,80}:(?P<x>[^\s/@]{1,200})@"),
        ("password", rf"(?i)(?:password|passwd|passphrase){_IS}(?P<x>[^\s\"',;)]{{4,}})"),
        ("secret", rf"(?i)(?:{_KEYWORDS}){_IS}(?P<x>{_MIXED})"),
        ("secret", rf"(?i)(?:{_PRIVATE_KEYS})[\"']?\s{{0,3}}[=:]\s{{0,3}}\[?[\"'](?P<x>[^\s\"']{{4,}})[\"']"),
        (
            "secret",
            r"(?i)--?(?:[a-z]+-)?(?:api-key|token|password|secret)[ =][\"']?(?P<x>[^\s\"'-][^\s\"']{5,})",
        ),
        (
            "url-secret",
            r"(?i)[?&](?:[a-z-]{0,30}(?:token|key|sig|signature|credential|secret))=(?P<x>[^\s&\"'#]{6,})",
        ),
    )
)

KEY_OPTION = re.compile(rf"(?i)--?(?:[a-z]+-)?(?:{_KEY_OPTIONS})")  # its key is the next word

# Replaced with --redact, each value by the same placeholder wherever it stands.
NAMES = _compiled(
    (
        ("request-text", rf"(?i)\b(?:{_TEXT_KEYS}){_LIST}(?P<x>(?:{_QUOTED})(?:,\s?(?:{_QUOTED})){{1,500}})"),
        ("request-text", rf"(?i)\b(?:{_TEXT_KEYS})[\"']?\s{{0,3}}[:=]\s{{0,3}}(?:\[\s?)?(?P<x>{_QUOTED})"),
        ("request-text", rf"(?i)\b(?:{_ID_KEYS})[\"']?\s{{0,3}}[:=]\s{{0,3}}\[(?P<x>[^\]\[]{{1,20000}})"),
        (
            "request-text",
            rf"(?m)\b(?:{_BARE_KEYS}): (?!request-text-)(?P<x>[^\s\"'\[{{][^\n]{{3,}})$",
        ),
        ("user", r"://(?P<x>[A-Za-z][\w.-]{0,63})(?=(?::[^\s/@]{0,264})?@)"),
        ("request-text", rf"\b(?:{_BARE_KEYS})=(?!{_NO_TEXT})(?P<x>[A-Za-z][^\n,)\]]{{3,}})"),
        ("model", rf"\b(?:{_ALIAS_KEYS}){_IS}(?P<x>[\w./:-]{{3,100}})"),
        ("email", r"(?<![\w.+-])(?<!//)[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}\b"),
        ("user", r"(?<![\w.])/?(?:home|Users)/(?P<x>[A-Za-z0-9._-]{1,64})(?=[/\s:\"',)]|$)"),
        ("user", r"(?i)\\{1,2}Users\\{1,2}(?P<x>[^\\/:*?\"<>|\n]{1,64}?)(?=[\\/'\"<]|$)"),
        ("user", r"\btorchinductor_(?P<x>[A-Za-z][\w.-]{1,31}?)(?=[/\s:\"',)]|$)"),
        ("user", rf"\b(?:{_USER_KEYS}){_IS}(?P<x>[A-Za-z][\w.-]{{1,31}})"),
        ("user", rf"\bWANDB_(?:ENTITY|TEAM|PROJECT|USERNAME){_IS}(?P<x>[\w.-]{{2,64}})"),
        ("user", r"(?<![\w.])(?P<x>[a-z_][a-z0-9_-]{1,31})@(?=[A-Za-z][\w.-]{1,80}:[~/])"),
        ("host", rf"(?<=@)(?P<x>{_NAME})(?=:[~/])"),
        ("host", rf"\b[a-z][a-z0-9+]{{1,9}}://(?:[^\s/@]{{1,264}}@)?(?P<x>{_NAME})"),
        ("host", rf"(?i)\b(?:{_HOST_KEYS}){_IS}(?P<x>{_NAME})"),
        ("host", rf"(?i)\b(?:host|node|server|instance){_IS}(?P<x>{_HOSTISH})(?![\w.(-])"),
        ("pod", rf"(?i)\b(?:pod|pod[_-]?name|POD_NAME){_IS}(?P<x>{_HOSTISH})"),
        ("pod", rf"\bpods?/(?P<x>{_HOSTISH})"),
        ("pod", rf"(?<![\w.-])[a-z](?:[a-z0-9-]{{0,50}}[a-z0-9])?-(?:{_OF_SET}|{_OF_JOB})(?![a-z0-9-])"),
        ("host", rf"(?<![\w\\:])\\{{2,4}}(?P<x>{_NAME})(?=\\)"),
        ("host", rf"\[(?P<x>{_HOSTISH})\]:\d{{2,5}}(?![\w:-])"),
        ("host", rf"^(?P<x>{_NAME}):\d+:\d+ \[\d+\] NCCL"),
        ("host", rf"^{_SYSLOG} (?P<x>{_NAME}) [\w./-]{{1,40}}(?:\[\d+\])?:"),
        ("host", rf"^{_JOURNAL} (?P<x>{_NAME}) (?:[\w./-]{{1,40}}\[\d+\]|kernel):"),
        ("host", rf"\bip-{_OCTETS}(?:\.[\w.-]{{1,80}})?"),
        ("host", rf"\b[A-Za-z0-9][\w-]{{0,62}}(?:\.[A-Za-z0-9-]{{1,62}}){{0,6}}\.(?:{_PRIVATE_ZONES})\b"),
        ("host", rf"(?<![\w.@/-])(?:{_LABEL}\.){{1,6}}(?:{_ZONES})(?![\w(-]|\.\w)"),
        ("host", rf"(?<![\w.@/-]){_NUMBERED}(?:{_LABEL}\.){{2,6}}(?:{_DOUBTFUL_ZONES})(?![\w(-]|\.\w)"),
        ("ip", r"(?<![\w.-])(?<!==)(?:\d{1,3}\.){3}\d{1,3}(?![\w.-]*\w)"),
        ("ip", rf"(?<![\w:.])(?:{_HAS_DIGIT}|{_MANY_GROUPS}){_GROUPS}(?![\w:])"),
        ("mac", r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b"),
        ("gpu-uuid", r"\b(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"),
    )
)

KNOWN = frozenset(
    ["localhost", "localhost.localdomain", "root", "none", "null", "true", "false", "cuda"]
)  # tell nobody anything
PUBLIC_HOSTS = (
    "huggingface.co",
    "github.com",
    "pytorch.org",
    "nvidia.com",
    "modular.com",
    "python.org",
    "pypi.org",
    "amd.com",
    "kernel.org",
    "ray.io",
    "vllm.ai",
    "sglang.ai",
)
# A user called so is replaced in paths only: elsewhere it is an ordinary word.
COMMON = frozenset(
    [
        "home",
        "user",
        "users",
        "ubuntu",
        "admin",
        "data",
        "model",
        "models",
        "serve",
        "server",
        "python",
        "torch",
        "test",
        "work",
        "main",
        "build",
        "shared",
        "runner",
        "kernel",
        "device",
        "launch",
        "suspect",
        "window",
        "step",
        "fault",
        "unknown",
        "root",
    ]
)
