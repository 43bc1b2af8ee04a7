"""Folders in paths: those that tell nobody anything stay, the others may name a customer or a project.

File names stay, since a report without them is of no use; so does what lies under a public package
(``site-packages/torch/nn/modules.py``), so that a kernel author still finds the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from analyzer.report.redact_patterns import PUBLIC_HOSTS

Replace = Callable[[str], str]

_CHAR = r"[^\s\x00-\x1f/\\:*?\"'<>|,;()\[\]{}`=]"
_SEGMENT = rf"{_CHAR}{{1,255}}"
_POSIX = re.compile(
    rf"(?:(?P<url>\b[a-z][a-z0-9+.-]{{1,12}}://[^\s/\"'<>]{{0,264}})"
    rf"|(?<![^\s\\:*?\"'>|,;(\[{{}}`=])(?P<first>{_SEGMENT})?)(?P<rest>(?:/{_SEGMENT})+)"
)
_WINDOWS = re.compile(
    rf"(?P<drive>\b[A-Za-z]:|(?<![\w\\:])\\{{1,2}}(?=\\\w))"
    rf"(?P<rest>(?:\\{{1,2}}{_SEGMENT}(?: {_SEGMENT}(?=[ \\]))*)+)"
)
_SEPARATED = re.compile(r"(\\{1,2}|/)")

# With one of these endings the last part is a file, and a path without a leading slash is one.
_FILE = re.compile(
    r"\.(?:py|pyi|pyx|ipynb|mojo|mlir|ll|ptx|cubin|c|cc|cpp|cxx|cu|cuh|h|hpp|hip|rs|go|java|js|ts|so(?:\.\d+)*|a|o|"
    r"dll|exe|dylib|log|txt|out|err|json|jsonl|yaml|yml|toml|ini|cfg|conf|env|sh|sql|sqlite|csv|parquet|npz|npy|md|"
    r"html|xml|gz|zst|xz|bz2|zip|tar|whl|egg|pt|pth|pt2|onnx|safetensors|bin|gguf|ckpt|engine|plan|nsys-rep|"
    r"core|dump|nvcudmp|pkl|ncu-rep|qdrep|pftrace|pid|sock|lock|tmp|bak)(?:\+0x[0-9a-f]+)?$",
    re.IGNORECASE,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Public packages: what lies under them is public too.
PACKAGES = _words("""
    torch torchvision torchaudio triton vllm sglang text_generation_server lmdeploy tensorrt_llm
    tensorrt transformers accelerate peft safetensors tokenizers diffusers datasets bitsandbytes
    xformers flash_attn flashinfer deepspeed megatron apex xgrammar outlines jax jaxlib flax tensorflow
    numpy scipy pandas polars numba cupy cupyx pycuda ray grpc uvicorn fastapi starlette gunicorn
    asyncio multiprocessing concurrent importlib threading logging click typer pydantic pydantic_core
    aiohttp requests urllib3 httpx websockets llama_cpp ggml modular mojo stdlib aten c10 caffe2
    torchgen torch_inductor functorch nccl cutlass cub thrust cudnn cublas rocm hip miopen
    composable_kernel pytorch kineto fbgemm sgl_kernel sgl-kernel llama.cpp runpy site xla tsl local_xla
    stream_executor cudarc
""")
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_KERNEL_FILES = frozenset({"proc", "sys"})  # the same on every machine
# Folders of MAX come without their leading part, and "max" alone can be anything.
_UNDER_MAX = _words("""
    mojo python kernels kernel gpu nn graph serve pipelines driver engine entrypoints lib _core max
    include
""")
PLAIN = _words("""
    oss csrc inc misc jit inductor conda-bld sgl-workspace ik_llama.cpp usr lib lib32 lib64 libexec bin
    sbin local opt srv var tmp home users root mnt media data etc dev proc sys run log logs cache share
    include workspace workspaces work workdir project projects code repo repos git app apps src source
    build builds dist target out output outputs test tests example examples script scripts tool tools
    server servers serve serving service services api engine engines model models weights checkpoint
    checkpoints ckpt hub huggingface snapshots blobs dataset kernels kernel ops op graph graphs layer
    layers nn utils util config configs conf core runtime worker workers executor runner runners
    internal main common python lib-dynload site-packages dist-packages venv env envs conda miniconda
    miniconda3 anaconda anaconda3 mambaforge miniforge3 shm null self task fd maps kfd dri cuda nvidia
    amdgpu drm kubelet pods containers docker overlay2 merged volumes windows system32 appdata roaming
    programdata desktop documents downloads nvidia-smi chat completions generate health metrics llama
    qwen mistral mixtral deepseek gemma gpt whisper attention paged gpu cpu device devices driver
    framework external client router profiler e2e agent completion aotinductor aotinductor_package
    torchrun _work _temp registry cargo ollama llama-server kubepods.slice
""") | {"program files", "program files (x86)", "nvidia gpu computing toolkit"}
_PLAIN_FORM = re.compile(
    r"\.{1,2}|~|\$\{?\w+\}?|.{1,2}|\d+(?:\.\d+)*|v\d+(?:\.\d+)*|python\d(?:\.\d+)*t?|cp\d+|cuda-\d+(?:\.\d+)*|"
    r"nvidia[\w-]*|\.cargo|index\.crates\.io[\w-]*|cudarc-[\d.]+|"
    r"x86_64[\w-]*|aarch64[\w-]*|\.(?:venv|cache|local|config|git|triton|github)|"
    r"torchinductor_(?:root|user-\d+)|(?:host|user|pod|ip|folder|model|email|mac|gpu-uuid|request-text)-\d+|"
    r"\[redacted",
    re.IGNORECASE,
)


def without_folders(text: str, replace: Replace) -> str:
    """The text with every folder of every path that is not plain put through ``replace``."""
    if "/" in text:
        text = _POSIX.sub(lambda match: _posix(match, replace), text)
    if "\\" in text:
        text = _WINDOWS.sub(lambda match: match["drive"] + _walked(match["rest"], replace), text)
    return text


def is_telling(folder: str) -> bool:
    """Whether a folder is so much of a name of its own that it goes outside of paths too."""
    return re.search(r"[-_.\d]", folder) is not None and re.search(r"[A-Za-z]{3}", folder) is not None


def _posix(match: re.Match[str], replace: Replace) -> str:
    url, first, rest = match["url"], match["first"] or "", match["rest"]
    if url is not None:
        return match.group() if _is_public(url) else url + _walked(rest, replace)
    rooted = not first or first[0] in "~.$"
    if not rooted and not _FILE.search(rest.rstrip(".")):
        return match.group()  # "and/or", "tokens/s", the name of a model on a hub, a scope of XLA
    return _walked(first + rest, replace)


def _is_public(url: str) -> bool:
    host = url.partition("://")[2].rpartition("@")[2].partition(":")[0].lower()
    return any(host == known or host.endswith(f".{known}") for known in PUBLIC_HOSTS)


def _walked(path: str, replace: Replace) -> str:
    return "".join(_parts(_SEPARATED.split(path), replace))


def _parts(pieces: list[str], replace: Replace) -> Iterator[str]:
    """Folders and separators in turn; from a public package on everything stays."""
    names = [one for one in pieces[::2] if one]
    public = False
    at = -1
    for number, piece in enumerate(pieces):
        if number % 2 or not piece:
            yield piece
            continue
        at += 1
        last = at == len(names) - 1
        public = public or (not last and _opens_package(names, at))
        is_file = last and _FILE.search(piece.rstrip(".")) is not None
        yield piece if public or is_file or _is_plain(piece) else replace(piece)


def _opens_package(names: list[str], at: int) -> bool:
    name = names[at]
    if name == "max":
        return names[at + 1] in _UNDER_MAX or names[at - 1] in _INSTALLED
    if name in _KERNEL_FILES:
        return at == 0
    return name.lower() in PACKAGES or name.endswith((".dist-info", ".egg-info"))


def _is_plain(piece: str) -> bool:
    name = piece.rstrip(".") or piece
    return name.lower() in PLAIN or name.lower() in PACKAGES or _PLAIN_FORM.fullmatch(name) is not None
