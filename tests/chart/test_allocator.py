"""What is asked of glibc, and that asking does no harm where it cannot be had. (What it saves is measured, not tested.)"""

import ctypes
import sys

import pytest

from lalkit.chart import machine as allocator


def test_both_thresholds_are_asked_for(monkeypatch):
    asked = []

    class Library:
        @staticmethod
        def mallopt(name, value):
            asked.append((name, value))
            return 1

    monkeypatch.setattr(allocator.sys, "platform", "linux")
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: Library)
    assert allocator.keep_memory() is True
    assert asked == [(-3, 2**25), (-1, 2**30)]
    assert allocator.map_large() is True and asked[2:] == [(-3, 2**20)]


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="glibc only")
def test_glibc_takes_them():
    assert allocator.keep_memory() is True and allocator.map_large() is True


def test_elsewhere_nothing_happens(monkeypatch):
    monkeypatch.setattr(allocator.sys, "platform", "darwin")
    assert allocator.keep_memory() is False and allocator.map_large() is False
    allocator.give_back()


def test_a_library_without_it(monkeypatch):
    monkeypatch.setattr(allocator.sys, "platform", "linux")
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: object())
    assert allocator.keep_memory() is False and allocator.map_large() is False
    allocator.give_back()
