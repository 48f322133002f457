"""Long work on nets: training with callbacks, evaluating, quantising."""

import sys
from pathlib import Path

import numpy as np

import cnnrun
from tap import ok, raises

lenet = Path(sys.argv[1]) / "lenet5.lua"
if not Path(sys.argv[2]).is_dir():
    print("# SKIP no digits:", sys.argv[2])
    sys.exit(0)
data = f"mnist:{sys.argv[2]}"
net = cnnrun.load(lenet)
seen = []
result = net.evaluate(data, limit=100, progress=lambda p: seen.append(p["what"]))
ok(result["n"] == 100 and result["top1"] > 0.9, "evaluate")
ok(result["confusion"].sum() == 100 and np.trace(result["confusion"]) == result["right"], "its confusion matrix")
ok(net.evaluate(data, limit=30)["n"] == 30, "without a callback")


def fails(progress):
    """A callback that raises."""
    raise ZeroDivisionError("mine")


raises(ZeroDivisionError, "an exception of a callback stops the work and comes out", net.evaluate, data, limit=1000,
       progress=fails)
fresh = cnnrun.load(lenet, weights="random:1")
epochs = []
before = fresh.evaluate(data, limit=200)["top1"]
report = fresh.train(data, epochs=2, limit=640, seed=3, on_epoch=lambda e: epochs.append((e["epoch"], e["loss"])))
ok([e[0] for e in epochs] == [1, 2] and epochs[1][1] < epochs[0][1], "on_epoch is called, and the loss falls")
ok(report["epochs"] == 2 and fresh.evaluate(data, limit=200)["top1"] > before + 0.2, "a trained net is better")
stopped = cnnrun.load(lenet, weights="random:1").train(data, epochs=9, limit=320, on_epoch=lambda e: e["epoch"] == 2)
ok(stopped["epochs"] < 9, "on_epoch that returns True stops it")
small, report = net.quantize(data, limit=20, check=50, all=1)
ok(report["n_quantized"] > 0 and report["agree"] > 0.9, "quantize tells what it did")
ok(small.evaluate(data, limit=100)["top1"] > 0.9, "and its net is right")
raises(cnnrun.Error, "data that is not there", net.evaluate, "mnist:/nowhere")
