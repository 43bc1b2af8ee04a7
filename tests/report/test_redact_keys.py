"""Secrets by key: every key in every form, in every carrier; and what only looks like one."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable

import pytest

from analyzer.report.redact import Redactor

KEYS = (
    "password", "PGPASSWORD", "db_password", "passwd", "passphrase", "client_secret", "clientSecret",
    "SECRET", "AWS_SECRET_ACCESS_KEY", "api_key", "X-Api-Key", "apiKey", "OPENAI_API_KEY", "access_token",
    "accessToken", "HF_TOKEN", "GITHUB_TOKEN", "refresh-token", "private_key", "AccountKey", "smtp_pass",
    "credentials", "X-Auth-Token", "webhook_secret", "proxy-authorization", "Cookie", "Set-Cookie",
)  # fmt: skip
# A word without digits, with digits, with the characters that end other things, in several words.
BARE = ("hunter", "s3cr3t99", "a,b;c", "pa$$w@rd!", "x=y=z==", "correct-horse")
BLANKS = ("correct horse battery", "it's mine", 'say "no"', "naïve frase wörd", "tab, comma; end)")


def dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


FORMS = {
    "assignment": "{key}={value}",
    "spaced assignment": "{key} = {value}",
    "YAML": "  {key}: {value}",
    "export": "export {key}={value}",
    "hash": "{{:{key}=>{value}}}",
    "Go": "{key}:={value}",
    "arguments": "Config(host=x, {key}={value}, port=80)",
    "tight arguments": "Namespace({key}={value},port=80)",
    "query": "GET /x?a=1&{key}={value}&port=80 done",
    "record": "[RECORD] SET name={key} value={value}",
}
OPTIONS = {"option": "serve --{key} {value} --port 80", "option with =": "serve --{key}={value} --port 80"}
QUOTED: dict[str, Callable[[str, str], str]] = {
    "double": lambda key, value: f"{key}={dumped(value)} port=80",
    "single": lambda key, value: f"{key}: {value!r} port=80",
    "repr": lambda key, value: f"{ {key: value, 'port': 80}!r}",
    "bytes": lambda key, value: f"headers=[({key!r}, b{value!r}), ('port', 80)]",
    "JSON": lambda key, value: dumped({key: value, "port": 80}),
    "JSON in JSON": lambda key, value: dumped({"body": json.dumps({key: value, "port": 80})}),
    "list of words": lambda key, value: dumped([f"--{key}", value, "--port", "80"]),
    "environment of a container": lambda key, value: dumped({"name": key, "value": value, "port": 80}),
    "XML": lambda key, value: f"<a:{key}>{value}</a:{key}><port>80</port>",
    "cut off": lambda key, value: f'{key}="{value}',
}
CARRIERS = (
    "{}",
    "2026-01-02T03:04:05Z INFO app: {}",
    "RuntimeError: boom {}",
    "\x1b[31m{}\x1b[0m",
    "x\n{}\ny",
)
HARMLESS = (
    "max_tokens=4096 num_tokens: 12 prompt_tokens=3 tokens=17",
    "eos_token=</s> pad_token='<pad>' bos_token: <s> eos_token_id=151643 stop_token=abcdef0123456789",
    "tokenizer='meta-llama/Llama-3-8B' tokenizer_mode=auto tokenizer_revision=0123456789abcdef",
    "password_file=/etc/serve/password secret_name=acme token_count: 5 api_key_file=x",
    "key=value shape=(4, 1024) key_cache.shape=[2, 8, 128] keys: 3 dict_keys(['a', 'b'])",
    "user_token=195 assistant_token=196 id_tokens: 5 session_tokens=1234",
    "password: str, api_key: Optional[str] = None, token: int = 5",
    "client = OpenAI(api_key=args.api_key, password=password, token=self.token)",
    "ValueError: password is required; secret: not found; api_key must be set; token=None",
    "password=**** secret=$DB_SECRET api_key=${API_KEY} token=<your token> password=%(pw)s",
    "/etc/passwd: no such file; /run/secrets/db: permission denied",
    "forward_pass=12 compass: north bypass=1 pass: 3 forward pass=0.5",
    "docker run -u 1000:1000 --user 0:0 x; python -u C:\\x\\serve.py; sort -u a; uvicorn main:app",
    "vllm/vllm-openai:v0.6.1@sha256:0123456789abcdef cookie cutter authorization failed",
    "at http://host:8000/v1 http://[::1]:80/x://y a://b foo:bar@baz",
    "grid_token=abcdefgh per_token: 0.5ms bonus_token_id=7 draft_token=abcdef0123456789",
    "access_key: 0x7f3a2c000000 auth=basic cached_token=12",
    'secrets "db" is forbidden; secret "x" not found; mysql -p -u root; redis-cli -a; torch -pg',
    "kv_cache_key: layer.0, hash_key=123, partition_key: a, PRNGKey(0) rng_key=[0 42] password_rounds=12",
)


def cleaned(text: str) -> str:
    redactor = Redactor(names=False)
    return redactor.clean(text)


def pieces(value: str) -> list[str]:
    """Words of a secret: none of them may stay."""
    return [word for word in value.replace('"', " ").replace("'", " ").split() if len(word) > 3]


def keeps_the_rest(text: str, shown: str) -> bool:
    return ("80" in text) == ("80" in shown)


@pytest.mark.parametrize("form", FORMS)
def test_a_bare_value_goes_in_every_form(form: str) -> None:
    """Keys x values x carriers: a form holds for all keys."""
    carriers = itertools.cycle(CARRIERS)  # their number has no factor in common with that of the values
    for (key, value), carrier in zip(itertools.product(KEYS, BARE), carriers, strict=False):
        if form == "record" and not key.isupper():
            continue
        text = carrier.format(FORMS[form].format(key=key, value=value))
        shown = cleaned(text)
        assert value not in shown, text
        assert "[redacted:" in shown, text
        assert shown.count("\n") == text.count("\n")
        if key.lower() not in {"cookie", "set-cookie"}:  # those go to the end of the line
            assert keeps_the_rest(text, shown), (text, shown)


@pytest.mark.parametrize("form", OPTIONS)
def test_a_value_behind_an_option_goes(form: str) -> None:
    for key, value in itertools.product([*KEYS, "token", "hf-token"], BARE):
        if key.isupper() or key.lower() in {"cookie", "set-cookie", "proxy-authorization", "x-api-key"}:
            continue
        text = OPTIONS[form].format(key=key, value=value)
        assert value not in cleaned(text), text
        assert "--port 80" in cleaned(text), text


@pytest.mark.parametrize("form", QUOTED)
def test_a_quoted_value_goes_whole_with_its_blanks(form: str) -> None:
    carriers = itertools.cycle(CARRIERS)
    for (key, value), carrier in zip(itertools.product(KEYS, (*BARE, *BLANKS)), carriers, strict=False):
        text = carrier.format(QUOTED[form](key, value))
        shown = cleaned(text)
        for piece in pieces(value):
            assert piece not in shown, (text, shown)
        assert keeps_the_rest(text, shown), (text, shown)


@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize("option", ["-u ", "-u", "--user ", "--user=", "--proxy-user ", "-sSu ", "-U "])
def test_the_password_behind_a_user_goes_and_the_user_stays(option: str, quote: str) -> None:
    for value in ("hunter", "s3cr3t:99", "pa$$w@rd!", *(("a b c d",) if quote else ())):
        shown = cleaned(f"curl {option}{quote}admin:{value}{quote} http://x/y")
        assert value not in shown
        assert "admin:[redacted:password]" in shown
        assert "http://x/y" in shown


@pytest.mark.parametrize("scheme", ["postgres://", "redis://", "https://", "amqp+ssl://", ""])
def test_the_password_of_an_address_goes(scheme: str) -> None:
    for value in ("hunter", "p%40ss", "s3cr3t"):
        shown = cleaned(f"dsn {scheme}app:{value}@cache.local:6379/0 x")
        assert shown == f"dsn {scheme}app:[redacted:url-password]@cache.local:6379/0 x"
    if scheme:
        assert "p@ss" not in cleaned(f"{scheme}app:p@ss@cache:6379/0")
        assert "hunter" not in cleaned(f"{scheme}:hunter@cache:6379/0")


@pytest.mark.parametrize(
    "text",
    [
        "requests.get(url, auth=('bob', 'hunter two'))",
        "mysql -u root -phunter db",
        "redis-cli -h cache -a hunter ping",
        "sshpass -p hunter ssh x",
        "machine x login bob password hunter",
        'os.environ["HF_TOKEN"] = "hunter"',
        "setenv API_KEY hunter",
        "ENV DB_PASSWORD hunter",
        "aws configure set aws_secret_access_key hunter",
        'openssl -passphrase "hunter two"',
        "curl -b 'sid=hunter; x=y' http://x",
        "- name: DB_PASSWORD\n  value: hunter",
    ],
)
def test_what_programs_take_as_passwords_goes(text: str) -> None:
    assert "hunter" not in cleaned(text)
    assert cleaned(text).count("\n") == text.count("\n")


def test_a_log_of_secrets_keeps_none() -> None:
    """Each line by itself and all together, as an appendix quotes them."""
    lines = {
        "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwx": "abcdefghijklmnop",
        "Authorization: Bearer abc.def.ghi123456": "abc.def",
        "password = hunter2": "hunter2",
        "db=postgres://u:p%40ss@h/db": "p%40ss",
        "X-Api-Key: 9f8e7d6c5b4a39281706": "9f8e7d6c",
        "curl -u admin:SuperSecret99 http://x": "SuperSecret99",
        "PGPASSWORD=abcd1234": "abcd1234",
        'DATABASE_PASSWORD: "s3cr3t pass word"': "pass word",
        "cookie: session=eyabc; sid=0123456789abcdef0123456789abcdef": "0123456789",
        "client_secret=abcdefghijkl": "abcdefghijkl",
        "RuntimeError: CUDA error: boom token=ghp_ABCDEFGHIJKLMNOP1234": "ABCDEFGHIJKLMNOP",
    }
    together = "\n".join(Redactor(names=False).clean_lines(list(lines)))
    for line, secret in lines.items():
        assert secret not in cleaned(line)
        assert secret not in together


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_secret_stays_readable(text: str) -> None:
    assert cleaned(text) == text


@pytest.mark.parametrize(
    "unit", ["token=", "password=", "secret ", "--a-", "<a", "\\", "name: secret ", "api_key:=", "-u a:"]
)
@pytest.mark.parametrize(
    "start", ["", "password=", 'password="', "cookie: ", "<password>", "secret=[", "curl -b", "-u '"]
)
def test_reading_values_is_linear(start: str, unit: str) -> None:
    def seconds(size: int) -> float:
        redactor, text = Redactor(names=False), start + unit * (size // len(unit))
        began = time.process_time()
        redactor.clean_block([text])
        return time.process_time() - began

    small = min(seconds(5_000) for _ in range(2))
    assert seconds(20_000) < 0.1 + 4 * 2 * small
