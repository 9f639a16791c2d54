"""`llamapool plan`, as a person meets it: what is said, and what is read for it."""

from __future__ import annotations

import io
import re
import sys
import time
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
import yaml

from llamapool.api import parse_model
from llamapool.cli import main
from llamapool.plan_command import answer, default_name, request_of
from tests.models.hybrid import HybridShape, write_hybrid_model
from tests.unit.gguf.test_model_facts import model
from tests.unit.gguf.writing import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


WEIGHTS_BYTES = 64 * 2 * 2 * 5120 * 17_408 + (1 << 20)


@dataclass(frozen=True)
class Shown:
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


def plan(*arguments: str, **environment: str) -> Shown:
    """Run `llamapool plan` in this process, which saves its start."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["llamapool", "plan", *arguments]),
        mock.patch.dict("os.environ", {"COLUMNS": "160", **environment}),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = _end_of_main()
    return Shown(code, out.getvalue(), err.getvalue())


def _end_of_main() -> int:
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "Small_Hybrid-Q4.gguf"
    write_hybrid_model(path, HybridShape(layers=8))
    return path


def test_what_fits_is_said_with_the_smallest_limit_and_the_most_slots(small: Path) -> None:
    shown = plan(str(small), "--limit", "2Gi", "--slots", "4")
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"✓ fits: smallest limit \d+ \(\d+\.\d [MG]iB\), most slots \d+", shown.stdout)
    assert "■ base ■ state ■ headroom" in shown.stdout


def test_what_does_not_fit_is_said_with_the_shortfall_and_ends_in_1(small: Path) -> None:
    shown = plan(str(small), "--limit", "300Mi")
    assert shown.returncode == 1
    assert re.search(r"✗ does not fit: \S+ MiB short of 300Mi", shown.stdout)


def test_the_limit_that_is_named_as_the_smallest_fits_and_a_byte_less_does_not(small: Path) -> None:
    least = int(re.findall(r"smallest limit (\d+)", plan(str(small), "--limit", "300Mi").stdout)[0])
    ends = [plan(str(small), "--limit", str(limit)).returncode for limit in (least, least - 1)]
    assert ends == [0, 1]


def test_explicit_values_are_priced(small: Path) -> None:
    shown = plan(str(small), "--limit", "1Gi", "--cache-ram", "8Gi")
    assert "spec.server.cacheRAM of 8Gi is over the state budget" in shown.stdout


def test_the_manifest_asks_for_what_was_planned(small: Path) -> None:
    options = ("--limit", "2Gi", "--slots", "2", "--context", "4096", "--gpu-layers", "7", "--no-mmap")
    shown = plan(str(small), *options, "--cache-type-k", "q8_0", "-o", "yaml")
    manifest: dict[str, Any] = yaml.safe_load(shown.stdout)
    asked = parse_model(manifest)
    assert asked.name == "small-hybrid-q4"
    assert (asked.server.slots, asked.server.context_size, asked.server.gpu_layers) == (2, 4096, "7")
    assert asked.server.extra_args == ("--load-mode", "none", "--cache-type-k", "q8_0")
    assert manifest["spec"]["resources"]["limits"] == {"memory": "2Gi"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["/nowhere.gguf"], "/nowhere.gguf: No such file"),
        (["hf:repo"], "FILE: 'hf:repo' must be hf:OWNER/REPO[@REVISION]/FILE.gguf"),
        (["SMALL", "--limit", "16GiB"], "--limit: '16GiB' is not a quantity"),
        (["SMALL", "--limit", "-1"], "--limit: '-1' is negative"),
        (["SMALL", "--cache-type-k", "q9"], "must be one of f32"),
        (["SMALL", "--gpu-layers", "few"], "must be a whole number"),
    ],
)
def test_what_cannot_be_planned_is_one_line_that_names_it(
    small: Path, arguments: list[str], said: str
) -> None:
    shown = plan(*(str(small) if word == "SMALL" else word for word in arguments))
    assert shown.returncode == 1
    assert said in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.stdout == ""


def test_an_unknown_architecture_ends_in_2_and_says_that_it_will_be_measured(tmp_path: Path) -> None:
    keys = {"block_count": 4, "context_length": 8192, "embedding_length": 64}
    path = tmp_path / "new.gguf"
    path.write_bytes(model("deepseek4", keys).header())
    shown = plan(str(path), "--limit", "1Gi")
    assert shown.returncode == 2, shown.stderr
    assert "architecture deepseek4 is not known; its figures will be measured" in shown.stdout


@contextmanager
def serving(path: Path) -> Iterator[tuple[str, list[int], list[str]]]:
    """Serve one file by ranges; yields its address, the bytes sent, and what was asked for."""
    sent: list[int] = []
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            first, last = map(int, re.findall(r"\d+", self.headers["Range"]))
            size = path.stat().st_size
            last = min(last, size - 1)
            asked.append(f"{self.path} {self.headers['Authorization']}")
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
            self.send_header("Content-Length", str(last - first + 1))
            self.end_headers()
            with path.open("rb") as stream:
                stream.seek(first)
                sent.append(self.wfile.write(stream.read(last - first + 1)))

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", sent, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The header of a 27B with a vocabulary of 248,320 tokens; the weights are a hole of 23 GB."""
    layers, width = 64, 5120
    whole = model(
        "qwen35",
        {
            "block_count": layers,
            "context_length": 262_144,
            "embedding_length": width,
            "feed_forward_length": 17_408,
            "attention.head_count": 24,
            "attention.head_count_kv": 4,
            "attention.key_length": 256,
            "attention.value_length": 256,
            "ssm.conv_kernel": 4,
            "ssm.inner_size": 6144,
            "ssm.state_size": 128,
            "ssm.group_count": 16,
            "full_attention_interval": 4,
        },
        tensors=tuple(
            Tensor(f"blk.{layer}.{name}.weight", shape, type=1, size=2 * width * 17_408)
            for layer in range(layers)
            for name, shape in (("ffn_up", (width, 17_408)), ("ffn_down", (17_408, width)))
        ),
    ).with_metadata(
        **{
            "tokenizer.ggml.tokens": [f"token-{index}" for index in range(248_320)],
            "tokenizer.ggml.merges": [f"token {index}" for index in range(247_587)],
        }
    )
    path = tmp_path_factory.mktemp("models") / "27b.gguf"
    path.write_bytes(whole.header())
    with path.open("r+b") as stream:
        stream.truncate(WEIGHTS_BYTES + path.stat().st_size)
    return path


def test_a_27b_is_planned_in_under_a_second_and_without_its_weights(large: Path) -> None:
    with serving(large) as (address, sent, _):
        request = request_of(address + "/27b.gguf", limit="16Gi", slots=8, context=32_768, gpu_layers="all")
        started = time.monotonic()
        found = answer(request, {})
        seconds = time.monotonic() - started
    assert found.need.checkpoint_bytes == 156_894_364
    assert found.fit is not None
    assert seconds < 1
    assert sum(sent) < 16 << 20 < WEIGHTS_BYTES


def test_a_file_on_the_hub_is_asked_for_with_the_token(large: Path) -> None:
    with serving(large) as (address, _, asked):
        shown = plan("hf:owner/repo@v2/27b.gguf", "--context", "4096", HF_ENDPOINT=address, HF_TOKEN="secret")  # noqa: S106
    assert shown.returncode == 0, shown.stderr
    assert set(asked) == {"/owner/repo/resolve/v2/27b.gguf Bearer secret"}
    assert "secret" not in shown.stdout + shown.stderr


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("hf:Org/Repo-GGUF/Qwen3.5-27B_Q4-00001-of-00002.gguf", "qwen3-5-27b-q4"),
        ("https://example.org/a/B.gguf?sig=1", "b"),
        ("/models/.gguf", "model"),
    ],
)
def test_a_model_is_named_after_its_file(location: str, name: str) -> None:
    assert default_name(location) == name
