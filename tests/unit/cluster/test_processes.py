import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import processes
from tests.cluster.processes import Process


def _stat(proc: Path, pid: int, *, command: str = "kubelet", state: str = "S", start_ticks: int) -> None:
    between = " ".join("0" for _ in range(18))
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} ({command}) {state} {between} {start_ticks} 0 0\n")


def test_a_process_is_alive_while_its_start_time_is_the_same(tmp_path: Path) -> None:
    _stat(tmp_path, 7, start_ticks=100)
    assert Process(7, 100).alive(tmp_path)


def test_a_recycled_pid_is_another_process(tmp_path: Path) -> None:
    _stat(tmp_path, 7, start_ticks=101)
    assert not Process(7, 100).alive(tmp_path)


def test_a_zombie_is_not_alive(tmp_path: Path) -> None:
    _stat(tmp_path, 7, start_ticks=100, state="Z")
    assert not Process(7, 100).alive(tmp_path)


def test_a_command_name_may_look_like_the_rest_of_the_line(tmp_path: Path) -> None:
    _stat(tmp_path, 7, command="a) Z 1 (b", start_ticks=100)
    assert processes.find(7, tmp_path) == Process(7, 100)


def test_a_pid_without_process_is_found_to_be_none(tmp_path: Path) -> None:
    assert processes.find(7, tmp_path) is None


def test_a_pidfile_gives_back_what_was_written(tmp_path: Path) -> None:
    processes.write_pidfile(tmp_path / "run" / "etcd.json", Process(7, 100))
    assert processes.read_pidfile(tmp_path / "run" / "etcd.json") == Process(7, 100)


def test_no_pidfile_is_no_process(tmp_path: Path) -> None:
    assert processes.read_pidfile(tmp_path / "etcd.json") is None


def test_stop_leaves_a_process_alone_that_took_over_the_pid() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        recorded = processes.find(other.pid)
        assert recorded is not None
        assert processes.stop(Process(other.pid, recorded.start_ticks - 1), grace_seconds=1)
        assert other.poll() is None
        other.communicate(b"\n")


@pytest.mark.parametrize(("ignore_term", "by_itself"), [(False, True), (True, False)])
def test_stop_kills_what_does_not_end_when_asked(*, ignore_term: bool, by_itself: bool) -> None:
    handler = "SIG_IGN" if ignore_term else "SIG_DFL"
    program = f"import signal, time; signal.signal(15, signal.{handler}); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        process = processes.find(daemon.pid)
        assert process is not None
        assert processes.stop(process, grace_seconds=0.2) is by_itself
        assert processes.find(daemon.pid) is None


def test_start_returns_once_the_prefix_has_become_the_command(tmp_path: Path) -> None:
    process = processes.start(
        ["sleep", "60"],
        prefix=["sh", "-c", 'sleep 0.2; exec "$@"', "sh"],
        pidfile=tmp_path / "daemon.json",
        log=tmp_path / "daemon.log",
        cgroup=tmp_path,
        environment=os.environ,
    )
    try:
        assert Path(f"/proc/{process.pid}/cmdline").read_bytes() == b"sleep\x0060\x00"
    finally:
        processes.stop(process, grace_seconds=1)
        os.waitpid(process.pid, 0)


def test_start_says_where_to_look_when_the_prefix_fails(tmp_path: Path) -> None:
    with pytest.raises(ProcessLookupError, match=r"sleep ended at once; see .*daemon.log"):
        processes.start(
            ["sleep", "60"],
            prefix=["false"],
            pidfile=tmp_path / "daemon.json",
            log=tmp_path / "daemon.log",
            cgroup=tmp_path,
            environment=os.environ,
        )


def test_start_puts_the_daemon_into_a_session_and_a_cgroup_of_its_own(tmp_path: Path) -> None:
    pidfile, log = tmp_path / "daemon.json", tmp_path / "daemon.log"
    # One process that stays what it is: a shell would leave its child behind, or become it.
    command = [sys.executable, "-c", "import time; print('started', flush=True); time.sleep(60)"]
    process = processes.start(
        command, pidfile=pidfile, log=log, cgroup=tmp_path, environment=dict(os.environ)
    )
    try:
        assert processes.read_pidfile(pidfile) == process
        assert os.getsid(process.pid) == process.pid
        while "started" not in log.read_text():
            assert process.alive()
        # To the kernel, 0 is the process that writes it.
        assert (tmp_path / "cgroup.procs").read_text() == "0\n"
    finally:
        processes.stop(process, grace_seconds=1)
        os.waitpid(process.pid, 0)
