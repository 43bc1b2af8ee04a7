"""What people, hosts, pods and requests look like in logs (secrets: ``redact_secrets``).

Group ``x`` is what goes; else the whole match.

A small table instead of a library: the ones that exist are no longer kept (detect-secrets, scrubadub) or
bring a language model (Presidio). No pattern may backtrack far: logs have long lines.
"""

from __future__ import annotations

import re

Table = tuple[tuple[str, re.Pattern[str]], ...]

_IS = r"[\"']?\s{0,3}[=:]\s{0,3}[\"']?"  # key=value, "key": "value"
_NAME = r"[A-Za-z][A-Za-z0-9._-]{1,80}"
_HOSTISH = r"(?=[A-Za-z._-]{0,80}[\d.-])[A-Za-z][A-Za-z0-9._-]{2,80}"  # has a digit, dot or hyphen
_QUOTED = r"\"(?:[^\"\\]|\\.)*(?:\"|$)|'(?:[^'\\]|\\.)*(?:'|$)"
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

# Where Kubernetes and its commands name a pod, or the set that it is of: name-0 alone can be anything.
_POD = r"[a-z0-9](?=[a-z0-9.]{0,200}-)[a-z0-9.-]{1,250}[a-z0-9]"
_OF_KIND = r"(?:pods?|po|statefulsets?|sts|deploy(?:ments?)?|replicasets?|rs|daemonsets?|ds|jobs?)"
_WITH_VALUE = r"(?:-n|--namespace|-c|--container|-l|--selector|-o|--output|--tail|--since|--context)"
_ASKS = rf"(?:logs|exec|attach|port-forward|debug|cp|[a-z]{{3,9}}[ \t]{_OF_KIND})"
_OPTIONS = rf"(?:[ \t]{{1,3}}(?:{_WITH_VALUE}[ =][^\s=]+|--?[\w-]+(?:=\S+)?))*+"  # *+: no way back
_NAMED = r"(?:[\w.]{1,40}/)?"  # pod/name, namespace/name
POD_PLACES = (
    rf"\b(?:kubectl|oc)\b[^\n|;&#]{{0,160}}?[ \t]{_ASKS}{_OPTIONS}[ \t]{{1,3}}{_NAMED}(?P<x>{_POD})",
    rf"\b(?i:pods?)[ \t]\\{{0,2}}[\"'](?:[a-z0-9-]{{1,63}}/)?(?P<x>{_POD})(?=\\{{0,2}}[\"'])",
    r"\b(?i:pods?)[ \t](?:[a-z0-9-]{1,63}/)?(?P<x>[a-z0-9][a-z0-9-]{0,200}-\d{1,5})(?![\w.-]*\w)",
    rf"\b(?i:pod){_IS}[a-z0-9-]{{1,63}}/(?P<x>{_POD})",
    rf"\b(?:statefulset|deployment|replicaset|daemonset|job)s?(?:\.[a-z]{{1,20}})?/(?P<x>{_POD})",
    rf"\b(?:StatefulSet|Deployment|ReplicaSet|DaemonSet)[ \t][\"']?(?P<x>{_POD})",
    rf"\bpods/[a-z0-9-]{{1,63}}_(?P<x>{_POD})_[0-9a-f-]{{32,36}}",
    rf"\bcontainers/(?P<x>{_POD})_[a-z0-9-]{{1,63}}_",
    rf"(?m)^(?P<x>{_POD})[ \t]{{1,80}}\d{{1,3}}/\d{{1,3}}[ \t]{{1,20}}[A-Z]",  # kubectl get pods
    rf"(?m)^(?:Name|Controlled By):[ \t]{{1,20}}(?:\w{{1,20}}/)?(?P<x>{_POD})",  # kubectl describe
)


def _compiled(rows: tuple[tuple[str, str], ...]) -> Table:
    return tuple((name, re.compile(pattern)) for name, pattern in rows)


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
        *(("pod", pattern) for pattern in POD_PLACES),
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
