"""Inputs by number: the same number gives the same bytes, as long as the samples are the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from tests.fuzz.corpus import Corpus, tokens

MOST_AT_ONCE = 4  # mutations of one input
LARGEST_BYTES = 6_000
CUT_EVERY = 3
CUT_STRIDE = 100_003  # a prime: all cuts come before one comes again
_NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?")
# What readers of numbers trip over: more digits than int() takes (4300), beyond i64, u64 and f64, digits that
# only Unicode takes for such, signs, bases, words, separators.
NUMBERS = tuple(
    text.encode()
    for text in (
        "9" * 4301, "9" * 400, "1" + "0" * 309, "1" * 20, "18446744073709551616", "9223372036854775808",
        "4294967296", "65536", "2147483648", "-9223372036854775809", "-1", "0", "00", "-0", "1e999", "-1e999",
        "1e-999", "inf", "nan", "0x" + "f" * 300, "0x", "1_000", "1,000,,0", "1.2.3", "9.99999999999999999",
        ".", "", "\u00b2", "\u2460", "\u0661\u0662\u0663", "\uff11\uff12", "\U0001d7d8", "\u0bf0", "+7",
    )
)  # fmt: skip
TEXTS = tuple(
    text.encode("utf-8", "surrogatepass")
    for text in (
        "\x00", "\r", "\r\n", "\x1b[31m", "\x1b[", "\x1b]0;", "\u2028", "\u0085", "\ufeff", "\ufffd",
        "\u202e", "\ud800", "\udfff", "\U0010ffff", "\u00a0", "\t", "\x0b", "\x0c", "\x7f", "\x08", "\n",
        "\n\n", " " * 40, "(" * 200, "[" * 200, "<" * 150, "{" * 100, ")", "]", ">", '"', "'", "\\", "`",
        "\\u0000", "\\ud800", "|",
        "%s", "${x}", "<script>", "&amp;", "]]>", "-->", "=", ":", ";", ",", "#",
    )
)  # fmt: skip
BYTES = (b"\xff", b"\xfe\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80")

Mutation = Callable[[bytes, Random, Corpus], bytes]


def fuzz_input(number: int, corpus: Corpus) -> bytes:
    """Input ``number``: every third one is the next cut of a small sample, the others are mutated.

    The cuts come in an order that is as good as random, so that few of them are of all samples.
    """
    if number % CUT_EVERY == 0:
        return cut(number // CUT_EVERY, corpus)
    random = Random(number)  # noqa: S311 (to be repeated, not to be secret)
    data = corpus.sample(random)
    for _ in range(random.randint(1, MOST_AT_ONCE)):
        data = random.choice(MUTATIONS)(data, random, corpus)
    return data[:LARGEST_BYTES]


def cut(number: int, corpus: Corpus) -> bytes:
    """The cut ``number`` of all cuts of small samples behind their bytes; it begins again after the last."""
    at = number * CUT_STRIDE % corpus.cuts()
    for sample in corpus.small():
        if at < len(sample):
            return sample[: at + 1]
        at -= len(sample)
    raise AssertionError("the remainder is smaller than the sum")


def change_bytes(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """Some bytes have one bit or all bits changed."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 8) if changed else 0):
        at = random.randrange(len(changed))
        changed[at] = (
            random.randrange(256) if random.random() < 0.5 else changed[at] ^ (1 << random.randrange(8))
        )
    return bytes(changed)


def drop_bytes(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """A run of bytes is missing."""
    at = random.randrange(len(data) + 1)
    return data[:at] + data[at + random.choice((1, 2, 7, 30, 200)) :]


def insert_text(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """Control characters, broken UTF-8, brackets and markup appear somewhere."""
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(data) + 1)
        data = data[:at] + random.choice(TEXTS + BYTES) + data[at:]
    return data


def insert_literal(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """The literal of some witness appears somewhere, at best where a token begins."""
    places = [0, *(found.start() for found in re.finditer(rb"(?<=\s)\S|\n", data))]
    at = random.choice(places)
    return data[:at] + random.choice(corpus.literals) + data[at:]


def change_numbers(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """One number, or all numbers of a line, or all that are the same, become others."""
    places = list(_NUMBER.finditer(data))
    if not places:
        return data
    chosen, new, kind = random.choice(places), random.choice(NUMBERS), random.randrange(4)
    if kind == 0:
        return data.replace(chosen[0], new) if len(chosen[0]) > 1 else data
    if kind == 1:
        first = data.rfind(b"\n", 0, chosen.start()) + 1
        last = data.find(b"\n", chosen.start()) % (len(data) + 1)
        return data[:first] + _NUMBER.sub(lambda _: random.choice(NUMBERS), data[first:last]) + data[last:]
    return data[: chosen.start()] + new + data[chosen.end() :]


def change_tokens(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """Words and signs are dropped, doubled, swapped, or taken from another sample."""
    parts, others = tokens(data), tokens(corpus.sample(random))
    for _ in range(random.randint(1, 6) if parts and others else 0):
        at, kind = random.randrange(len(parts)), random.randrange(5)
        if kind == 0:
            parts[at] = b""
        elif kind == 1:
            parts[at] *= random.choice((2, 3, 50))
        elif kind == 2:
            other = random.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
        else:
            parts[at] = random.choice(others)
    return b"".join(parts)


def change_lines(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """Lines are doubled, dropped, swapped, joined, or come from another sample."""
    lines = data.splitlines(keepends=True)
    others = corpus.sample(random).splitlines(keepends=True)
    for _ in range(random.randint(1, 5) if lines and others else 0):
        at, kind = random.randrange(len(lines)), random.randrange(5)
        if kind == 0:
            lines.insert(random.randrange(len(lines)), lines[at])
        elif kind == 1:
            lines[at] = b""
        elif kind == 2:
            other = random.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == 3:
            lines[at] = lines[at].rstrip(b"\r\n")
        else:
            lines.insert(at, random.choice(others))
    return b"".join(lines)


def splice(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """The beginning of one sample and the end of another, cut anywhere."""
    other = corpus.sample(random)
    return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]


def interleave(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """Two samples write into one file, line by line or in runs; now and then one breaks into a line."""
    writers = [data.splitlines(keepends=True), corpus.sample(random).splitlines(keepends=True)]
    woven: list[bytes] = []
    while writers[0] and writers[1]:
        own = random.choice(writers)
        count = random.choice((1, 1, 1, 2, 5))
        part = b"".join(own[:count])
        woven.append(part[: random.randrange(len(part) + 1)] if random.random() < 0.03 else part)
        del own[:count]
    return b"".join(woven) + b"".join(writers[0] or writers[1])


def truncate(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """The end is missing, or the beginning."""
    at = random.randrange(len(data) + 1)
    return data[:at] if random.random() < 0.7 else data[at:]


def change_ends(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """Other line ends, in the whole file or in some lines."""
    new = random.choice((b"\r\n", b"\r", b"\n\n", b"\n\r", b"\x00\n", b" \n"))
    if random.random() < 0.5:
        return data.replace(b"\n", new)
    lines = data.split(b"\n")
    return b"".join(line + (new if random.random() < 0.1 else b"\n") for line in lines)


def repeat(data: bytes, random: Random, corpus: Corpus) -> bytes:
    """The same text again, or every line with a prefix."""
    if random.random() < 0.5:
        return data + data
    prefix = random.choice(
        (b"[rank0]: ", b"(Worker pid=7) ", b"2026-11-30T01:02:03.5Z stdout F ", b"\x1b[36m")
    )
    return b"".join(prefix + line for line in data.splitlines(keepends=True))


MUTATIONS: tuple[Mutation, ...] = (
    change_bytes,
    drop_bytes,
    insert_text,
    insert_literal,
    change_numbers,
    change_numbers,  # twice: each number of each form is a place of its own
    change_tokens,
    change_tokens,
    change_lines,
    splice,
    interleave,
    truncate,
    change_ends,
    repeat,
)
