"""Saved is saved: whole or not at all, tied tensors once, and nothing that runs code."""

import json
import os
import pickle
import subprocess
from dataclasses import replace

import pytest
import torch
import toy
from torch import nn

from qkv import store
from qkv.errors import RunError
from qkv.models.saved import build, load_model, load_weights, read_config, save_model, save_weights
from qkv.train import checkpoint
from qkv.train.averaging import MovingAverage, save_mean
from qkv.train.checkpoint import State, latest
from qkv.train.loop import train
from qkv.train.optimizer import optimizer_for
from qkv.train.run import Optimize


def tied_model(tied: bool = True) -> toy.MLP:
    torch.manual_seed(0)
    return build("mlp", toy.MLPConfig(classes=2, tied=tied, dropout=0.0))


def one_step(model, optimizer) -> float:
    loss = model(torch.ones(3, 6)).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# --- tied weights (BL-45)


def test_tied_weights_are_one_before_and_after(tmp_path):
    model = tied_model()
    optimizer = optimizer_for(model, Optimize())
    one_step(model, optimizer)
    checkpoint.save(tmp_path, State(step=1), model, optimizer, None, keep=1)
    folder, _ = latest(tmp_path)
    tensors, _ = store.read_tensors(folder / "model.safetensors")
    assert "middle.weight" in tensors and "again.weight" not in tensors

    other = tied_model()
    other_optimizer = optimizer_for(other, Optimize())
    checkpoint.load(folder, other, other_optimizer, None)
    assert other.again.weight is other.middle.weight
    assert other.again.weight.data_ptr() == other.middle.weight.data_ptr()
    assert one_step(other, other_optimizer) == one_step(model, optimizer)
    assert torch.equal(other.again.weight, other.middle.weight)
    assert torch.equal(other.again.weight, model.again.weight)


def test_weights_that_were_tied_later_are_tied_again(tmp_path):
    model = tied_model(tied=False)
    model.again.weight = model.middle.weight
    save_weights(model, tmp_path / "w.safetensors")
    other = tied_model(tied=False)
    load_weights(other, tmp_path / "w.safetensors")
    assert other.again.weight is other.middle.weight


def test_weights_that_are_equal_and_not_tied_are_both_saved(tmp_path):
    model = tied_model(tied=False)
    model.again.weight.data.copy_(model.middle.weight)
    save_model(model, tmp_path)
    assert {"middle.weight", "again.weight"} <= store.read_tensors(tmp_path / "model.safetensors")[0].keys()
    other = load_model(tmp_path)
    assert other.again.weight is not other.middle.weight


def test_a_tied_model_refuses_weights_that_differ(tmp_path):
    save_weights(tied_model(tied=False), tmp_path / "w.safetensors")
    with pytest.raises(RunError, match=r"again.weight and middle.weight differ, but the model ties them"):
        load_weights(tied_model(), tmp_path / "w.safetensors")


# --- a model's folder


def test_a_saved_model_answers_the_same(tmp_path):
    model = tied_model().eval()
    save_model(model, tmp_path)
    other = load_model(tmp_path)
    assert not other.training and other.config == model.config
    assert torch.equal(other(torch.ones(2, 6)), model(torch.ones(2, 6)))


def test_weights_of_another_model_are_refused(tmp_path):
    save_weights(tied_model(), tmp_path / "w.safetensors")
    larger = build("mlp", toy.MLPConfig(classes=2, hidden=9, tied=True))
    with pytest.raises(RunError, match=r"w.safetensors: first.weight has the shape \[8, 6\]; expected \[9, 6\]"):
        load_weights(larger, tmp_path / "w.safetensors")
    with pytest.raises(RunError, match=r"has no 'spare.bias' \(2 such\)"):
        load_weights(build("mlp", toy.MLPConfig(classes=2, spare=True, tied=True)), tmp_path / "w.safetensors")


def test_a_config_key_that_is_none_is_named(tmp_path):
    save_model(tied_model(), tmp_path)
    record = store.read_json(tmp_path / "model.json")
    record["config"]["hiden"] = record["config"].pop("hidden")
    store.write_json(tmp_path / "model.json", record)
    with pytest.raises(RunError, match=r"model.json: MLPConfig has no 'hiden'. Did you mean 'hidden'"):
        load_model(tmp_path)


# --- nothing runs on load (BL-48)


class Trap:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("how", ["torch", "old torch", "pickle"])
def test_a_pickle_is_refused(tmp_path, how):
    save_model(tied_model(), tmp_path)
    marker, file = tmp_path / "marker", tmp_path / "model.safetensors"
    if how == "pickle":
        file.write_bytes(pickle.dumps({"weight": Trap(marker)}))
    else:
        torch.save({"weight": Trap(marker)}, file, _use_new_zipfile_serialization=how == "torch")
    with pytest.raises(
        RunError, match="is a pickle, and loading a pickle can run code hidden in it, so it was not opened"
    ):
        load_model(tmp_path)
    assert not marker.exists()


def test_someone_elses_class_is_not_imported_unasked(tmp_path):
    marker = tmp_path / "marker"
    (tmp_path / "own.py").write_text(f"open({str(marker)!r}, 'w')\nfrom toy import MLP as Mine\n")
    own = f"{tmp_path / 'own.py'}:Mine"
    save_model(tied_model(), tmp_path, own)
    with pytest.raises(RunError, match="not one of ours, and using it would run its code"):
        load_model(tmp_path)
    assert not marker.exists()
    assert load_model(tmp_path, own=own).config.tied and marker.exists()


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(RunError, match=r"model.json: is missing"):
        read_config(tmp_path)
    (tmp_path / "w.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    with pytest.raises(RunError, match="is not a whole safetensors file"):
        store.read_tensors(tmp_path / "w.safetensors")


# --- a full disk (BL-49)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", disk], capture_output=True)
    if done.returncode:
        pytest.skip("a small disk can be made by root only: " + done.stderr.decode().strip())
    yield disk
    subprocess.run(["umount", disk], check=True)


def check_full_disk(run):
    small, large = nn.Linear(100, 100), nn.Linear(720, 720)  # 40 kB, 2 MB
    optimizer = torch.optim.Adam(small.parameters())
    checkpoint.save(run, State(step=1), small, optimizer, None, keep=1)
    with pytest.raises(RunError, match=r"step-00000002: the disk is full: saving needs 2076480 bytes and \d+ are free"):
        checkpoint.save(run, State(step=2), large, torch.optim.Adam(large.parameters()), None, keep=1)
    folder, state = latest(run)
    assert state.step == 1
    checkpoint.load(folder, small, optimizer, None)
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["step-00000001"]


def test_full_disk(small_disk):
    check_full_disk(small_disk)


def test_full_disk_told_by_the_system(tmp_path, monkeypatch):
    written = store.save_file

    def save_file(tensors, path, metadata):
        if sum(tensor.nbytes for tensor in tensors.values()) > 1e6:
            path.write_bytes(b"half")
            raise OSError(28, "No space left on device")
        written(tensors, path, metadata)

    monkeypatch.setattr(store, "save_file", save_file)
    check_full_disk(tmp_path)


def test_a_full_disk_ends_the_run_and_loses_nothing(toy_run, monkeypatch):
    """The run goes on afterwards as if nothing had been."""
    train(toy_run("whole"))
    written = store.save_file

    def full(tensors, path, metadata):
        if "step-00000006" in str(path):
            raise OSError(28, "No space left on device")
        written(tensors, path, metadata)

    monkeypatch.setattr(store, "save_file", full)
    with pytest.raises(RunError, match="the disk is full"):
        train(toy_run())
    assert latest(toy_run().out)[1].step == 4
    monkeypatch.setattr(store, "save_file", written)
    train(toy_run())
    first, second = (
        store.read_tensors(latest(toy_run(name).out)[0] / "model.safetensors")[0] for name in ("whole", "run")
    )
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_what_a_killed_process_left_is_swept_up(tmp_path):
    model = tied_model()
    optimizer = optimizer_for(model, Optimize())
    left = tmp_path / "checkpoints" / ".step-00000009.partial-1"
    left.mkdir(parents=True)
    (left / "model.safetensors").write_text("half")
    assert latest(tmp_path) is None
    for step in range(1, 5):
        checkpoint.save(tmp_path, State(step=step), model, optimizer, None, keep=2)
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["step-00000003", "step-00000004"]
    checkpoint.save(tmp_path, State(step=4, waited=1), model, optimizer, None, keep=2)
    assert latest(tmp_path)[1].waited == 1


def test_a_state_is_plain_data():
    state = State(step=3, best={"step": 2, "scores": {"loss": 0.1}, "weights": "w"}, window={"loss": 1 / 3})
    assert State.from_json(json.loads(json.dumps(state.to_json()))) == state
    assert replace(state).position.epoch == 0


# --- averages


def test_moving_average():
    """After warm-up of the decay, d * average + (1 - d) * weights; counters are copied; swapping copies nothing."""
    model = nn.BatchNorm1d(2)
    average = MovingAverage(model, decay=0.9)
    model.weight.data.fill_(3.0)
    model.num_batches_tracked.fill_(7)
    average.update(step=1000)
    assert torch.allclose(average.tensors["weight"], torch.full((2,), 0.9 * 1 + 0.1 * 3))
    assert average.tensors["num_batches_tracked"] == 7
    average.update(step=1)  # d = 2/11
    assert torch.allclose(average.tensors["weight"], torch.full((2,), (2 / 11) * 1.2 + (9 / 11) * 3))
    with average.in_place():
        assert torch.allclose(model.weight, torch.full((2,), (2 / 11) * 1.2 + (9 / 11) * 3))
    assert torch.equal(model.weight.data, torch.full((2,), 3.0))


def test_mean_of_files(tmp_path):
    model, files = tied_model(), []
    for value in (1.0, 2.0, 6.0):
        model.middle.weight.data.fill_(value)
        files.append(tmp_path / f"{value}.safetensors")
        save_weights(model, files[-1])
    save_mean(files, tmp_path / "mean.safetensors")
    load_weights(model, tmp_path / "mean.safetensors")
    assert torch.equal(model.again.weight, torch.full((8, 8), 3.0)) and model.again.weight is model.middle.weight


@pytest.mark.parametrize("length", [640, 896, 1152, 1408])
def test_a_header_whose_length_looks_like_a_pickle_is_none(tmp_path, length):
    """The first bytes of such a file are 0x80 and 2 to 5, as a pickle's."""
    file = tmp_path / "model.safetensors"
    for pad in range(length):
        store.write_tensors(file, {"a": torch.ones(2)}, {"note": "x" * pad})
        if int.from_bytes(file.read_bytes()[:8], "little") == length:
            break
    assert file.read_bytes()[:2] == bytes([0x80, length >> 8])
    assert torch.equal(store.read_tensors(file)[0]["a"], torch.ones(2))
