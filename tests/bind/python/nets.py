"""Running nets: inputs, outputs, pictures, threads, errors, Ctrl-C, leaks."""

import gc
import os
import signal
import sys
import threading
import weakref
from pathlib import Path

import numpy as np

import cnnrun
from tap import ok, raises

nets = Path(sys.argv[1])
lenet = nets / "lenet5.lua"
three = nets / "digits" / "three.png"
net = cnnrun.load(lenet)
rng = np.random.default_rng(1)

# ---- importing ----
import subprocess

quick = "import sys, cnnrun; print('numpy' in sys.modules, 'tempfile' in sys.modules); cnnrun.devices; print(cnnrun.Net.__name__)"
said = subprocess.run([sys.executable, "-c", quick], stdout=subprocess.PIPE, text=True).stdout
ok(said == "False False\nNet\n", "import cnnrun brings no NumPy")
quick = (f"import sys, cnnrun; net = cnnrun.load({str(lenet)!r}); label, _ = net.topk({str(three)!r}, 1)[0]; "
         "print(label, *[m in sys.modules for m in ('numpy', 'typing', 'threading')])")
said = subprocess.run([sys.executable, "-S", "-c", quick], stdout=subprocess.PIPE, text=True,
                      env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))).stdout
ok(said == "3 False False False\n", "nor does the best class of a picture, nor slow modules")
quick = f"import sys, cnnrun; net = cnnrun.load({str(lenet)!r}); y = net({str(three)!r}); print(type(y).__module__, y.dtype)"
said = subprocess.run([sys.executable, "-c", quick], stdout=subprocess.PIPE, text=True).stdout
ok(said == "numpy float32\n", "which comes with the first net")
raises(TypeError, "a type that C lacks", net, np.zeros((1, 1, 28, 28), np.complex64))
raises(TypeError, "another byte order", net, np.zeros((1, 1, 28, 28), ">f4"))

# ---- running ----
ok(net.inputs == [("data", (None, 1, 28, 28), "float32")], "inputs have name, shape and type")
ok(net.outputs == [("prob", (None, 10), "float32")], "outputs too")
scores = net(three)
ok(scores.shape == (1, 10) and scores.dtype == np.float32, "a picture by its path")
ok(net.topk(scores, 2)[0][0] == "3" and net.topk(scores, 2)[0][1] > 0.99, "topk tells label and score")
x = rng.random((4, 1, 28, 28), np.float32)
y = net(x)
ok(y.shape == (4, 10) and np.allclose(y.sum(1), 1, atol=1e-5), "a batch of 4")
ok(np.array_equal(net({"data": x}), y) and np.array_equal(net(data=x), y), "inputs by name")
ok(np.array_equal(net(np.asfortranarray(x)), y), "an array of another layout")
frozen = x.copy()
frozen.flags.writeable = False
ok(np.array_equal(net(frozen), y), "a read-only array")
ok(np.array_equal(net(memoryview(x)), y), "a buffer")


class Packed:
    def __dlpack__(self, **options):
        """Passes on the tensor's own capsule."""
        return x.__dlpack__(**options)

    def __dlpack_device__(self):
        return x.__dlpack_device__()


if hasattr(np, "from_dlpack"):
    ok(np.array_equal(net(Packed()), y), "whatever speaks DLPack")
from cnnrun._net import _from_numpy

given = [x, memoryview(x), frozen, *([Packed()] if hasattr(np, "from_dlpack") else [])]
ok(all(np.shares_memory(_from_numpy(g), g if g is frozen else x) for g in given), "none of which is copied")
kept = y.copy()
net(rng.random((4, 1, 28, 28), np.float32))
ok(np.array_equal(y, kept), "a result stays as it is when the net runs again")
try:
    from PIL import Image
except ImportError:
    print("# no PIL: pictures by array alone")
else:
    ok(np.allclose(net(Image.open(three)), scores, atol=1e-5), "a picture of PIL")
    ok(np.allclose(net(np.asarray(Image.open(three).convert("L"))), scores, atol=1e-5), "a picture by its pixels")

two = Path("two.lua")
two.write_text("""local c = require "cnnrun"
local a, b = c.input { "a", shape = { 1, 3 } }, c.input { "b", shape = { 1, 3 } }
return c.net { name = "two", outputs = { c.add { "s", a, b }, c.mul { "p", a, b } } }
""")
a, b = np.float32([[1, 2, 3]]), np.float32([[4, 5, 6]])
both = cnnrun.load(two)
out = both(b=b, a=a)
ok(np.array_equal(out["s"], a + b) and np.array_equal(out["p"], a * b), "two inputs, two outputs")

# ---- weights, layers, files ----
copy = net.copy()
name = copy.weight_names()[0]
before = copy(x)
copy.set_weight(name, np.zeros_like(copy.weight(name)))
ok(not np.allclose(copy(x), before) and np.array_equal(net(x), y), "a copy's weights are its own")
net.save("saved.cnr")
net.save("saved.onnx")
ok(all(np.allclose(cnnrun.load(f)(x), y, atol=1e-5) for f in ("saved.cnr", "saved.onnx")), "saved as .cnr and as ONNX")
ok([row["op"] for row in net.layers()][:2] == ["conv", "max_pool"], "layers")
rows = net.profile(runs=2)["rows"]
ok(rows and all(row["ms"] >= 0 and row["node"] for row in rows), "profile has a row for each step")
copy.place("*", "cpu")
ok(copy(x).shape == (4, 10), "placed on a device")
copy.place("conv1", ["cpu"], axis=1, shares=[1])
copy.place("conv1")
copy.place(policy="fastest")
ok(copy(x).shape == (4, 10), "placed by a policy")
copy.place(policy="")
raises(cnnrun.Error, "a device that is not there", lambda: (copy.place("*", "nowhere"), copy(x)))
copy.place("*")
shared = copy.share("best", devices=["cpu"], runs=1)
ok([row["name"] for row in shared["alone"]] == ["cpu"] and shared["chosen"]["seconds"] > 0, "shared by measuring")
ok({part["device"] for part in shared["parts"]} == {"cpu"} and copy(x).shape == (4, 10), "and runs so")
ok(any(d["name"] == "cpu" for d in cnnrun.devices()), "devices")
with cnnrun.energy(no_idle=1) as energy:
    net(x)
ok(energy.result["seconds"] > 0 and "joules" in energy.result, "energy of a block")
with cnnrun.govern(at_once=1) as governing:
    net(x)
ok("ticks" in governing.result, "govern beside a block")
seeded = [cnnrun.load(lenet, weights="random:7", threads=n)(x[:1]) for n in (1, 2)]
ok(np.allclose(*seeded, atol=1e-6) and not np.allclose(seeded[0], y[:1]), "weights and threads as keywords")

# ---- what help() shows ----
import inspect

import cnnrun.ort.backend

bare = [f"{m.__name__}.{name}.{k}" for m in (cnnrun, cnnrun.ort, cnnrun.ort.backend) for name, o in vars(m).items()
        if not name.startswith("_") and inspect.isclass(o) and o.__module__.startswith("cnnrun")
        for k, f in vars(o).items() if not k.startswith("_") and callable(f) and not f.__doc__]
bare += [name for name in cnnrun.__all__ if not getattr(cnnrun, name).__doc__]
ok(not bare, "all functions say what they do")
print("#", *bare)

# ---- errors ----
e = raises(cnnrun.NotFound, "a file that is not there", cnnrun.load, "missing.cnr")
ok(e and e.status < 0 and "missing.cnr" in str(e), "the error has status and text")
Path("bad.lua").write_text('local c = require "cnnrun"\nreturn c.net { name = "bad",\n  nonsense = 1 }\n')
e = raises(cnnrun.Error, "a script that fails", cnnrun.load, "bad.lua")
ok(e and "bad.lua" in e.where + e.text, "its error has the place")
raises(cnnrun.BadArgument, "a shape that does not fit", net, np.zeros((1, 3, 28, 28), np.float32))
raises(cnnrun.Error, "a type that does not fit", net, np.zeros((1, 1, 28, 28), np.int64))
raises(TypeError, "a type that NumPy alone has", net, np.zeros((1, 1, 28, 28), np.complex64))
raises(TypeError, "an option that is none", cnnrun.load, lenet, colour="red")
raises(ValueError, "an input that is missing", both, a=a)
raises(ValueError, "too many inputs", net, x, x)
raises(ValueError, "nine dimensions", net, np.zeros((1,) * 9, np.float32))
ok(np.array_equal(net(x), y), "behind errors it runs as before")

# ---- threads ----
inputs = [rng.random((1 + i % 2, 1, 28, 28), np.float32) for i in range(8)]
wanted = [net(i) for i in inputs]
wrong = []


def work(i):
    """A thread: runs one net and compares."""
    for _ in range(50):
        if not np.array_equal(net(inputs[i]), wanted[i]):
            wrong.append(i)
    if not np.array_equal(net(three), scores):
        wrong.append(i)


threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
ok(not wrong, "8 threads share a net, and each has its own answers")

# ---- Ctrl-C ----


signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us in the background had it ignored


def interrupted(function):
    """Runs `function` again and again; Ctrl-C comes meanwhile."""
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        while True:
            function()
    finally:
        timer.join()


raises(KeyboardInterrupt, "Ctrl-C stops runs", interrupted, lambda: net(x))
big = np.zeros((4096, 1, 28, 28), np.float32)
net(big)
raises(KeyboardInterrupt, "Ctrl-C stops a long run", interrupted, lambda: net(big))
raises(KeyboardInterrupt, "Ctrl-C stops long work", interrupted, lambda: net.profile(runs=10**9))
ok(signal.getsignal(signal.SIGINT) is signal.default_int_handler, "Python's own handler is in force")
ok(np.array_equal(net(x), y), "behind that it runs as before")

# ---- leaks ----


def resources():
    """Open files and pages of memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), pages * os.sysconf("SC_PAGESIZE")


def load_and_drop(times):
    """Loads and drops a net so often."""
    for _ in range(times):
        one = cnnrun.load(lenet)
        one(x[:1])
        try:
            cnnrun.load("missing.cnr")
        except cnnrun.NotFound:
            pass


load_and_drop(200)
first = resources()
load_and_drop(800)
last = resources()
print(f"# files, threads, bytes: {first}, {last}")
ok(first[:2] == last[:2], "1,000 loads and drops leave no file and no thread")
ok(last[2] - first[2] < 16 << 20, "and no memory")
one = cnnrun.load(lenet)
one(x)
one.itself = one
gone = weakref.ref(one._model)
del one
gc.collect()
ok(gone() is None, "a net that refers to itself is collected, with its sessions")
