"""Redaction: keys always go; people, hosts, addresses and request texts go where asked, consistently."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer import schema
from analyzer.report.redact import Redactor, redacted
from analyzer.report.request import ReportContext
from tests.report import replays, results, stories

PEM = "-----BEGIN RSA PRIVATE KEY-----"
SECRETS = {
    "aws": ("id=AKIAIOSFODNN7EXAMPLE.", "AKIAIOSFODNN7EXAMPLE"),
    "aws secret": ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
    "github": (
        "token ghp_16C7e42F292c6912E7710c838347Ae178B4a in url",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    ),
    "github fine": ("github_pat_11ABCDEFG0abcdefghij_klmnop", "github_pat_11ABCDEFG0abcdefghij_klmnop"),
    "hugging face": ("HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789", "hf_abcdefghijklmnop"),
    "openai": ("key sk-proj-abcdEFGH1234567890abcd", "sk-proj-abcdEFGH1234567890abcd"),
    "jwt": ("t=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN", "eyJzdWIiOiIxMjM0In0"),
    "bearer": ("'Authorization': 'Bearer abc.def-123456'", "abc.def-123456"),
    "basic": ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    "curl": ("curl -H 'authorization: Bearer 0123456789abcdef' x", "0123456789abcdef"),
    "password": ('{"password": "hunter22"}', "hunter22"),
    "url": ("redis://app:s3cr3t@cache:6379/0", "s3cr3t"),
    "api key": ("WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567", "0123456789abcdef0123"),
    "google": ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "AIzaSyA1234567890"),
    "nvidia": ("NGC nvapi-abcdefghijkl-mnopqrst_uvwx", "nvapi-abcdefghijkl"),
    "slack": ("xoxb-123456789012-abcdefghij", "xoxb-123456789012"),
    "key in a list": ("Namespace(api_key=['team-alpha'], port=8000)", "team-alpha"),
    "key option": ("vllm serve x --api-key team-alpha-2024 --port 1", "team-alpha-2024"),
    "token option": ("python s.py --hf-token=abcdefgh", "abcdefgh"),
    "signed url": ("GET s3://b/x?X-Amz-Signature=0a1b2c3d4e5f&v=1", "0a1b2c3d4e5f"),
    "session token": ("AWS_SESSION_TOKEN=IQoJb3JpZ2luX2VjEJ3//4AbCd", "IQoJb3JpZ2luX2VjEJ3"),
    "token in url": ("https://oauth2:glpat-abcdefghij0123456789@git.acme.com/x.git", "glpat-abcdefghij"),
    "pem": (f"{PEM}\\nMIIEowIBAAKCAQEA\\n-----END RSA PRIVATE KEY-----", "MIIEowIBAAKCAQEA"),
}
INNOCENT = (
    "max_tokens=4096 eos_token=None pad_token_id: 151643",
    "custom__paged_lookup [id=302] target=gpu:0",
    "CUDA error: an illegal memory access was encountered at 0x7f3a2c000000",
    "__matmul_static_broadcast_to_gelu_cec32e468ef8cbb1_8d3b9fee37e8520f_async",
    "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>",
    "23:37:21.197 INFO: step 8 logits 64.0000",
    "/srv/app/max_steps.py:30:build",
    "task-0 sk-learn risk-assessment disk-1",
    "prompt_tokens: 17, completion_tokens: 5",
    "Avg prompt throughput: 12.5 tokens/s, Running: 3 reqs and/or 2 swapped",
    "eos_token='</s>' pad_token='<pad>' tokenizer='meta-llama/Llama-3-8B' skip_special_tokens=True",
    "self.net torch.nn.net logger.info asyncio.run tensor.to model.layers.0.fc1.de x.io(1)",
    "nvidia-cudnn-cu12==9.1.0.70 CUDA 12.4 driver 580.65.06 NCCL version 2.21.5+cuda12.4",
    "add::bad face::a c10::cuda std::abs 12:34:56 0:1:2",
    "http://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html#group",
    "https://pytorch.org/docs/stable/notes/cuda.html and https://docs.modular.com/max/faq",
    "host = d_out.copy_to_host()",
    "[default0]:2026-07-10 21:46:30,100 - serve - INFO - step 7 done",
    "2026-06-17T13:18:29.371622Z ERROR shard-manager: text_generation_launcher: Shard complete",
    "2026-05-07T11:02:07.1234568Z Stack dump:",
    "/opt/venv/lib/python3.12/site-packages/max/profiler/tracing.py external/xla/xla/service/gpu/nvptx.cc",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq /opt/x/libKGENCompilerRTShared.so+0xbd20",
    "prompt=None, stop=[], text=None served_model_name=None prompt_tokens=3 prompt=True",
    "torch-2 sk-small cuda-gdb matmul-small task-launch",
    "/usr/lib/python3.12/asyncio/runners.py /usr/local/lib/python3.12/dist-packages/torch/nn/modules/x.py",
    "/opt/venv/lib/python3.11/site-packages/vllm/v1/worker/gpu_model_runner.py",
    "max/mojo/max/gpu/host/_device_context_extras.mojo:163:17 oss/modular/mojo/stdlib/std/x.mojo",
    "aten/src/ATen/native/cuda/IndexKernel.cu:92 ../csrc/aten/x.cpp torch/csrc/api/y.cpp",
    "/proc/self/maps /dev/nvidia0 /tmp/torchinductor_root/ab/cabc.py",
    "POST /v1/chat/completions HTTP/1.1 jit(step)/jit(main)/dot_general N/A I/O </div> 1/2",
    "C:\\Windows\\System32\\nvcuda.dll C:\\Program Files\\NVIDIA\\x.exe",
    "loaded from https://huggingface.co/models and https://github.com/org/repo",
)


def cleaned(text: str, *, names: bool = True) -> str:
    redactor = Redactor(names=names)
    redactor.learn(text)
    return redactor.clean(text)


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("names", [False, True])
def test_keys_are_always_redacted(name: str, names: bool) -> None:
    text, secret = SECRETS[name]
    found = cleaned(text, names=names)
    assert secret not in found
    assert "[redacted:" in found


@pytest.mark.parametrize("text", INNOCENT)
@pytest.mark.parametrize("names", [False, True])
def test_ordinary_log_text_stays_as_it_is(text: str, names: bool) -> None:
    assert cleaned(text, names=names) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/alice/app/serve.py", "/home/user-1/app/serve.py"),
        ("home/alice/app/serve.py", "home/user-1/app/serve.py"),
        ("/Users/bob/x and /home/alice/y by alice", "/Users/user-1/x and /home/user-2/y by user-2"),
        ("C:\\Users\\bob\\x", "C:\\Users\\user-1\\x"),
        ("USER=carol", "USER=user-1"),
        ("carol@gpu-node-7:~$ python", "user-1@host-1:~$ python"),
        ("Nov 30 01:02:03 gpu-node-7 vllm[99]: x", "Nov 30 01:02:03 host-1 vllm[99]: x"),
        (
            "2026-11-30T01:02:03.5+00:00 gpu-node-7 vllm[99]: x",
            "2026-11-30T01:02:03.5+00:00 host-1 vllm[99]: x",
        ),
        ("gpu-node-7:99:101 [0] NCCL WARN x", "host-1:99:101 [0] NCCL WARN x"),
        ("MASTER_ADDR=trainer.prod MASTER_PORT=1", "MASTER_ADDR=host-1 MASTER_PORT=1"),
        ("http://model-a.prod.internal:8000/v1", "http://host-1:8000/v1"),
        ("ip-10-0-3-17.ec2.internal up", "host-1 up"),
        ("peer 10.1.2.3 and 10.1.2.4, 10.1.2.3 again", "peer ip-1 and ip-2, ip-1 again"),
        ("127.0.0.1 0.0.0.0 [fe80::1ff:fe23:4567:890a]", "127.0.0.1 0.0.0.0 [ip-1]"),
        ("mail ann.lee@example.com now", "mail email-1 now"),
        ("GPU-5d1f0f5c-8a7b-4a3f-9d0e-0123456789ab", "gpu-uuid-1"),
        ("prompt: 'Tell me \\'x\\' now', params: 1", "prompt: request-text-1, params: 1"),
        ("url http://alice@git.corp/x by alice", "url http://user-1@host-1/x by user-1"),
        ("redis://app:s3cr3t@cache-7:6379/0", "redis://user-1:[redacted:url-password]@host-1:6379/0"),
        ("gpu-17.dc2.acme.com, a.acme.org; n4.acme.ai up", "host-1, host-2; host-3 up"),
        ("gpu01.acme.co.uk and gpu01.acme.co.uk.", "host-1 and host-1."),
        (
            "The client socket failed to connect to [gpu-node-1]:29500",
            "The client socket failed to connect to [host-1]:29500",
        ),
        ("2001:db8::17 ::ffff:10.0.0.1 ::1 abcd:ef::ab:cd", "ip-2 ::ffff:ip-1 ::1 ip-3"),
        ("C:\\\\Users\\\\bob\\\\x", "C:\\\\Users\\\\user-1\\\\x"),
        ("C:\\Users\\John Smith\\x C:/Users/ann/y", "C:\\Users\\user-2\\x C:/Users/user-1/y"),
        ("\\\\fileserver\\share\\x.py", "\\\\host-1\\share\\x.py"),
        ("/tmp/torchinductor_alice/ab/x.py", "/tmp/torchinductor_user-1/ab/x.py"),
        ("pod vllm-llama-7d9f8b6c5d-x2x4z died", "pod pod-1 died"),
        ("pod/vllm-0 POD_NAME=vllm-0 and vllm-0", "pod/pod-1 POD_NAME=pod-1 and pod-1"),
        ("trainer-x2x4z: x, vllm-7d9f8b6c5d-x2x4z_prod", "pod-1: x, pod-2_prod"),
        ("prompt_token_ids: [1, 2, 3], x", "prompt_token_ids: [request-text-1], x"),
        ("prompt_token_ids=[1, 2], x=[3]", "prompt_token_ids=[request-text-1], x=[3]"),
        ("prompt: Who shot JFK?", "prompt: request-text-1"),
        (
            'GenerateReqInput(text="my PIN is 1", input_ids=[4])',
            "GenerateReqInput(text=request-text-1, input_ids=[request-text-2])",
        ),
        ("prompts=['a b', \"c's\", 'd'], n=1", "prompts=[request-text-1], n=1"),
        (
            "SamplingParams(stop=['Human:'], bad_words=['x y'])",
            "SamplingParams(stop=[request-text-1], bad_words=[request-text-2])",
        ),
        ("prompt=Tell me more, n=1", "prompt=request-text-1, n=1"),
        ("Input text: Who is Ann", "Input text: request-text-1"),
        ("served_model_name='acme-chat' for acme-chat", "served_model_name='model-1' for model-1"),
        ("NODE_NAME=gke-pool-1f2e WANDB_ENTITY=acme", "NODE_NAME=host-1 WANDB_ENTITY=user-1"),
        ('{"role": "user", "content": "my PIN is 1234"}', '{"role": "user", "content": request-text-1}'),
    ],
)
def test_names_get_one_placeholder_each(text: str, shown: str) -> None:
    assert cleaned(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/data/acme-corp/llama/serve.py", "/data/folder-1/llama/serve.py"),
        ("/opt/acme/bin/serve and /opt/acme/x.py", "/opt/folder-1/bin/serve and /opt/folder-1/x.py"),
        ("cwd: /data/acme", "cwd: /data/folder-1"),
        ("acme/llm/serve.py:30:build", "folder-1/folder-2/serve.py:30:build"),
        ("./acme/x.py ../acme/y.py ~/acme/z $HOME/acme", "./{f}/x.py ../{f}/y.py ~/{f}/z $HOME/{f}"),
        ("PATH=/opt/acme/bin:/opt/zeta/bin", "PATH=/opt/folder-1/bin:/opt/folder-2/bin"),
        ("site-packages/acme_llm/serve.py", "site-packages/folder-1/serve.py"),
        ("/data/acme/site-packages/torch/nn/x.py", "/data/folder-1/site-packages/torch/nn/x.py"),
        ("/opt/max/acme/serve.py", "/opt/folder-1/folder-2/serve.py"),
        ("model='/models/acme-3.1'", "model='/models/folder-1'"),
        ("file:///data/acme/x.py https://git.acme.com/zeta/x", "file:///data/folder-1/x.py {h}folder-2/x"),
        ("acme-corp runs /data/acme-corp/x.py", "folder-1 runs /data/folder-1/x.py"),
        ("acme runs /data/acme/x.py", "acme runs /data/folder-1/x.py"),
        ("D:\\acme\\my models\\x.py", "D:\\folder-1\\folder-2\\x.py"),
        ("['/data/acme/x', \"/data/b c/y.py\"]", "['/data/folder-1/x', \"/data/b c/y.py\"]"),
        ("/data/customer=acme/x.py", "/data/folder-1=folder-2/x.py"),
    ],
)
def test_folders_that_may_name_a_customer_go_and_files_stay(text: str, shown: str) -> None:
    assert cleaned(text) == shown.replace("{f}", "folder-1").replace("{h}", "https://host-1/")


def test_names_stay_without_the_flag() -> None:
    text = "/home/alice/x on 10.1.2.3 by ann@example.com"
    assert cleaned(text, names=False) == text


def test_a_key_that_is_a_word_of_its_own_in_a_command_goes() -> None:
    base = replays.of_program()
    assert base.replay is not None
    words = ["vllm", "--api-key", "team-alpha", "--token", "beta", "--port", "8000"]
    done = msgspec.structs.replace(base.replay, attempts=(replays.attempt(1, command=words),))
    clean, _ = redacted(msgspec.structs.replace(base, replay=done), ReportContext())
    assert clean.replay is not None
    hidden = "[redacted:secret]"
    shown = ["vllm", "--api-key", hidden, "--token", hidden, "--port", "8000"]
    assert clean.replay.attempts[0].command == shown


def test_a_name_learned_in_one_place_goes_in_all_places() -> None:
    redactor = Redactor(names=True)
    for text in ("hostname: gpubox", "/home/alice/x", "/home/max/y"):
        redactor.learn(text)
    assert redactor.clean("alice rebooted gpubox; alice2 did not") == "user-1 rebooted host-1; alice2 did not"
    assert redactor.clean("max_ops in /home/max/y on max") == "max_ops in /home/user-2/y on max"


def test_a_key_over_several_lines_goes_and_the_lines_stay_counted() -> None:
    lines = ["before", PEM, "MIIEow", "IBAAK", "-----END RSA PRIVATE KEY-----", "after"]
    found = Redactor(names=False).clean_lines(lines)
    assert found == ["before", *["[redacted:private-key]"] * 4, "after"]
    assert Redactor(names=False).clean_lines(["A" * 64, "x"]) == ["[redacted:private-key]", "x"]
    assert len(Redactor(names=False).clean_lines([PEM, "cut", "off"])) == 3


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.text(max_size=60), max_size=8), st.booleans())
def test_any_lines_keep_their_number(lines: list[str], names: bool) -> None:
    redactor = Redactor(names=names)
    for line in lines:
        redactor.learn(line)
    assert len(redactor.clean_lines(lines)) == max(len(lines), 1 if not lines else len(lines))


@settings(deadline=None)  # a busy machine is no failure
@given(st.text(max_size=120))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor(names=False)
    once = redactor.clean(text)
    assert redactor.clean(once) == once


@pytest.mark.parametrize(
    "char", ["a", "a-", "1.", "a:", "'", "x@", "/home/", "eyJa.", "token=", "a b", '\\"']
)
def test_long_lines_take_no_long_time(char: str) -> None:
    redactor = Redactor(names=True)
    text = char * 400_000
    start = time.process_time()
    redactor.learn(text)
    redactor.clean(text)
    assert time.process_time() - start < 5


def test_result_and_raw_lines_are_redacted_together() -> None:
    private = stories.changed(results.late(), lambda text: text.replace("/srv/app", "/home/alice/app"))
    private = msgspec.structs.replace(
        private,
        faults=[msgspec.structs.replace(private.faults[0], text="boom on 10.9.8.7 with hf_" + "a1" * 12)],
    )
    lines = [["alice at 10.9.8.7 says hf_" + "a1" * 12] * 7000]
    clean, context = redacted(private, stories.context_of(lines, redact=True))
    assert clean.faults[0].text == "boom on ip-1 with [redacted:hf-token]"
    assert clean.faults[0].reported_at.python == schema.SourceFrame(
        file="/home/user-1/app/max_steps.py", line=50, function="main", text="out.to(CPU())"
    )
    assert context.excerpt(0, 5, 6) == ["user-1 at ip-1 says [redacted:hf-token]"] * 2
    assert clean.faults[0].kind == private.faults[0].kind


@pytest.mark.parametrize("name", stories.SAMPLES)
def test_samples_hold_no_secret_and_stay_as_they_are_without_the_flag(name: str) -> None:
    result = stories.sample_result(name)
    clean, _ = redacted(result, stories.sample_context(name))
    assert clean == result


def test_without_raw_lines_only_the_result_is_redacted() -> None:
    clean, context = redacted(results.late(), ReportContext())
    assert clean == results.late()
    assert context.excerpt(0, 1, 2) in ([], [""])


def test_what_a_replay_says_is_redacted_too() -> None:
    private = stories.changed(replays.of_program(), lambda text: text.replace("/srv/app", "/home/alice/acme"))
    clean, _ = redacted(private, stories.context_of([[""] * 7000], redact=True))
    text = msgspec.json.encode(clean).decode()
    assert "alice" not in text
    assert "acme" not in text
    assert clean.replay is not None
    assert clean.replay.op is not None
    assert clean.replay.op.source is not None
    assert clean.replay.op.source.file == "/home/user-1/folder-1/serve.py"
