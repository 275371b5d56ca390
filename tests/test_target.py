"""Targets: legal names, facts of machines, and what works here."""

import subprocess
import sys

import pytest

from tensorlang import machine
from tensorlang.errors import TargetError
from tensorlang.machine import Gpu
from tensorlang.target import ARCHITECTURES, TARGETS, Target, available


@pytest.mark.parametrize("name", TARGETS)
def test_a_name_and_its_target_are_one(name):
    assert Target.of(name) == Target(name)
    assert Target.of(Target(name)) == Target.of(name)
    assert hash(Target.of(name)) == hash(Target(name))
    assert str(Target(name)) == name


def test_an_unknown_name_is_refused_with_the_legal_ones():
    with pytest.raises(TargetError) as caught:
        Target.of("cuda")
    assert caught.value.code == "unknown-target"
    assert caught.value.fix == 'one of "reference", "interpreter", "c", "triton"'


def test_an_unknown_architecture_is_refused_with_the_legal_ones():
    with pytest.raises(TargetError) as caught:
        Target("triton", arch="sm_42")
    assert caught.value.code == "unknown-arch"
    assert all(arch in caught.value.fix for arch in ARCHITECTURES)


def test_only_triton_takes_an_architecture():
    with pytest.raises(TargetError) as caught:
        Target("c", arch="sm_90")
    assert caught.value.code == "unknown-arch"
    assert 'Target("triton", arch=' in caught.value.fix


def test_a_named_architecture_has_its_facts_on_any_machine(monkeypatch):
    monkeypatch.setattr(machine, "gpu", lambda: Gpu("other", "sm_80", 7, 1.0))
    target = Target("triton", arch="sm_90")
    assert (target.sms, target.shared_memory, target.bandwidth) == (132, 227 << 10, 3350)
    assert target.max_tile_elements == 1 << 20


def test_triton_without_an_architecture_has_the_facts_of_the_gpu_here(monkeypatch):
    monkeypatch.setattr(machine, "gpu", lambda: Gpu("H200", "sm_90", 131, 4800.0))
    target = Target("triton")
    assert (target.sms, target.bandwidth, target.shared_memory) == (131, 4800.0, 227 << 10)


def test_a_gpu_newer_than_the_table_has_the_limits_of_the_newest_one_before(monkeypatch):
    monkeypatch.setattr(machine, "gpu", lambda: Gpu("future", "sm_103", 150, 0))
    assert Target("triton").shared_memory == ARCHITECTURES["sm_100"].shared_memory
    assert Target("triton").bandwidth == ARCHITECTURES["sm_100"].bandwidth


def test_a_fact_that_is_given_wins():
    assert Target("triton", arch="sm_90", sms=16).sms == 16
    assert Target("c", cores=3).cores == 3


def test_c_knows_the_vectors_cores_and_caches_of_this_machine():
    target = Target("c")
    assert target.vector_bits in (128, 256, 512)
    assert target.cores >= 1
    l1, l2, l3 = target.caches
    assert l1 < l2 < l3
    assert target.sms == target.cores


def test_available_says_why_a_target_does_not_work(monkeypatch):
    monkeypatch.setattr(machine, "c_compiler", lambda: None)
    monkeypatch.setattr(machine, "has_package", lambda name: name != "triton")
    found = available()
    assert tuple(found) == TARGETS
    assert found["reference"].works
    assert found["interpreter"].works
    assert not found["c"].works
    assert "compiler" in found["c"].why
    assert not found["triton"].works
    assert found["triton"].why.startswith("triton not installed")


def test_available_names_the_gpu(monkeypatch):
    monkeypatch.setattr(machine, "has_package", lambda _: True)
    monkeypatch.setattr(machine, "gpu", lambda: Gpu("NVIDIA H200", "sm_90", 132, 4800.0))
    assert available()["triton"].why == "on NVIDIA H200 (sm_90)"


def test_hidden_devices_are_not_used(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    machine.gpu.cache_clear()
    assert machine.gpu() is None
    machine.gpu.cache_clear()


def test_looking_at_targets_imports_nothing_heavy():
    code = (
        "import sys; from tensorlang.target import available, Target;"
        "available(); Target('triton');"
        "assert not {'torch', 'triton'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.gpu
def test_the_gpu_here_is_what_torch_says():
    import torch

    here, properties = machine.gpu(), torch.cuda.get_device_properties(0)
    assert here is not None
    assert here.name == properties.name
    assert here.arch == f"sm_{properties.major}{properties.minor}"
    assert here.sms == properties.multi_processor_count
    assert 100 < here.bandwidth < 20_000
    assert Target("triton").sms == properties.multi_processor_count
    assert available()["triton"].why == f"on {here.name} ({here.arch})"
