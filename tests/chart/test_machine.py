"""What is asked of the machine: memory that may be taken, memory that is kept, and compiled kernels without a cache."""

import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

import lalkit
from lalkit.chart import machine

STAT = "anon 900\ninactive_file {}"  # cached files are given back when memory is needed


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 4000),
        ({"memory.max": "max", "memory.current": "1000", "memory.stat": STAT.format(0)}, 4000),
        ({"memory.max": "4500", "memory.current": "1000", "memory.stat": STAT.format(0)}, 3500),
        ({"memory.max": "4500", "memory.current": "6000", "memory.stat": STAT.format(0)}, 0),
        ({"memory.max": "4500", "memory.current": "6000", "memory.stat": STAT.format(3500)}, 2000),
        ({"cgroup": "0::/slurm/job_1", "slurm/job_1/memory.max": "3000", "slurm/job_1/memory.current": "1000",
          "slurm/job_1/memory.stat": STAT.format(0)}, 2000),
    ],
)  # fmt: skip
def test_memory_is_what_the_machine_and_every_group_leave(files, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=4000))
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "OWN_GROUP", tmp_path / "cgroup")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    assert machine.available_bytes() == expected


def test_ctrl_c_ends_the_wait_for_a_kernel():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
    threading.Timer(0.3, _thread.interrupt_main).start()
    pytest.raises(KeyboardInterrupt, machine.apart, time.sleep, 10_000)
    with pytest.raises(ValueError, match="two"):  # the error of the first item that has one
        machine.map_threads(lambda item: int(item), ["1", "two", "1", "three"], 2)


def test_no_bar_without_an_end():
    assert machine.progress(unit="B").disable and not machine.progress(total=3).disable


@pytest.mark.slow
def test_no_place_for_a_cache_is_no_obstacle():
    """A read-only installation: allowed only the one kind of cache folder that is not configured, numba raises."""
    code = (
        "import numpy as np\n"
        "from numba import njit\n"
        "from lalkit.chart import cky\n"  # decorates its kernels when imported
        "print(cky.cky_batch([np.ones((3, 3, 3))])[0].score)\n"
        "try: njit(cache=True)(cky._cky.py_func)\n"
        "except RuntimeError: print('no cache')\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    environment.pop("NUMBA_CACHE_DIR", None)
    root = Path(lalkit.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=root)
    assert done.stdout.split() == ["3.0", "no", "cache"], done.stderr
