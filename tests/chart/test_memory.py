"""How much memory may be taken: the smaller of what the machine and the container leave."""

import os

import pytest

from lalkit.chart import machine as memory
from lalkit.errors import TooLongError


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    monkeypatch.setattr(memory, "OWN_GROUP", tmp_path / "cgroup")
    (tmp_path / "memory.stat").write_text("anon 900\ninactive_file 0\n")
    return tmp_path


def test_meminfo_and_container(machine):
    (machine / "meminfo").write_text("MemTotal:  9000 kB\nMemFree:  10 kB\nMemAvailable:    4000 kB\n")
    assert memory.available_bytes() == 4000 * 1024
    (machine / "memory.max").write_text("max\n")
    (machine / "memory.current").write_text("1000\n")
    assert memory.available_bytes() == 4000 * 1024
    (machine / "memory.max").write_text("5000\n")
    assert memory.available_bytes() == 4000
    (machine / "memory.current").write_text("6000\n")
    assert memory.available_bytes() == 0
    (machine / "memory.stat").write_text("anon 900\ninactive_file 3500\n")
    assert memory.available_bytes() == 2500, "cached files are given back when memory is needed"


def test_the_limit_of_a_job_stands_in_its_own_group(machine):
    job = machine / "slurm" / "job_1"
    job.mkdir(parents=True)
    (machine / "cgroup").write_text("0::/slurm/job_1\n")
    for name, text in {"memory.max": "3000", "memory.current": "1000", "memory.stat": "inactive_file 0"}.items():
        (job / name).write_text(f"{text}\n")
    assert memory.available_bytes() == 2000


def test_sysconf_where_there_is_no_meminfo(machine, monkeypatch):
    pages = {"SC_AVPHYS_PAGES": 7, "SC_PHYS_PAGES": 11, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__, raising=False)
    assert memory.available_bytes() == 7 * 4096

    def without_free_pages(name):
        if name == "SC_AVPHYS_PAGES":
            raise ValueError("unrecognized configuration name")
        return pages[name]

    monkeypatch.setattr(os, "sysconf", without_free_pages)
    assert memory.available_bytes() == 11 * 4096
    monkeypatch.delattr(os, "sysconf")  # Windows
    assert memory.available_bytes() is None


def test_check_fits():
    memory.check_fits(10, 100, 100)
    memory.check_fits(10, 10**30, None)
    with pytest.raises(TooLongError, match="here: 10 words need 1,001 bytes for the joint chart; 1,000 are available"):
        memory.check_fits(10, 1001, 1000, "here")
