"""Pages of evaluations; pruning: by a schedule that is a dict, a name, a file; rows on the way, stopping, going on, errors."""

import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np

import cnnrun
from tap import ok, raises

nets = Path(sys.argv[1])
names = "zero one two three four five six seven eight nine".split()
Path("list.txt").write_text("".join(f"{nets}/digits/{name}.png {i}\n" for _ in range(6) for i, name in enumerate(names)))
data = "images:list.txt"
net = cnnrun.load(nets / "lenet5.lua")
before = net.weight("ip1.weight")
x = np.random.default_rng(1).random((2, 1, 28, 28), np.float32)

# ---- evaluating, with a page ----
result = net.evaluate(data, report="report.html", limit=20)
rows = result["rows"]
ok(len(rows) == 20 and (rows["answer"] == rows["label"]).sum() == result["right"], "evaluate has a row a picture")
ok(np.isclose(-np.log(rows["label_share"]).mean(), result["loss"]), "with the shares of the labels")
page = Path("report.html").read_text()
ok("Confusion matrix" in page and "calibration error" in page and "http" not in page.replace("http://www.w3.org", ""),
   "and a page that needs nothing else")
ok("rows" not in net.evaluate(data, limit=20), "where that is wished")

schedule = {"layers": {"ip1": 0.25}, "rates": "once", "scan": False, "train": {"epochs": 1, "rate": 0.0001}}

rows = []
small, report = net.prune(schedule, data, validation=0.5, folder="work", on_step=rows.append)
left = np.count_nonzero(small.weight("ip1.weight"))
ok(abs(left / before.size - 0.25) < 0.001, "a quarter of a layer's weights is left")
ok(np.array_equal(net.weight("ip1.weight"), before), "the net itself stays as it was")
ok([r["step"] for r in rows] == [1] and 0 < rows[0]["kept"] < 1, "on_step gets a row a step")
ok(0 < report["kept"] < 0.35 and report["validation"] > 0.9 and report["ms"] > 0, "the report has shares and times")
ok(Path(report["report"]).read_text().startswith("<!DOCTYPE"), "and a page")
ok(np.allclose(small(x).sum(1), 1, atol=1e-4), "the small net runs")

raises(cnnrun.Error, "a folder of another pruning", net.prune, schedule, data, validation=0.25, folder="work")
schedule["train"]["epochs"] = 2
rows.clear()
e = raises(cnnrun.Cancelled, "on_step that returns True stops it", net.prune, dict(schedule, scan={"shares": [0.5, 0.1]}),
           data, validation=0.5, folder="other", on_step=lambda r: "keep" in r and r["keep"] < 0.2)
ok(e is not None, "with the error of C")


def fails(row):
    raise ZeroDivisionError("mine")


raises(ZeroDivisionError, "an exception of on_step comes out", net.prune, schedule, data, validation=0.5, on_step=fails)
again, report = net.prune(schedule, data, validation=0.5, eval="")
ok(report["folder"] is None and np.allclose(again(x).sum(1), 1, atol=1e-4), "without a folder nothing is kept")
again.save("again.cnr")
ok(np.array_equal(cnnrun.load("again.cnr")(x), again(x)), "and the net can be saved")
Path("mine.lua").write_text("""return require "lib.prune".schedule {
  layers = { conv2 = 0.5 }, unit = "channel", rates = "once", scan = false, train = { epochs = 1, rate = 0.0001 } }
""")
thin, report = net.prune("mine.lua", data, validation=0.5, limit=20, eval="")
ok(thin.weight("conv2.weight").shape[0] == 25, "a file: channels go")
e = raises(cnnrun.Error, "a schedule's mistake", net.prune, {"colour": 1}, data)
ok(e and "colour" in e.text, "is told")
e = raises(cnnrun.NotFound, "a schedule that is not there", net.prune, "nothing", data)
raises(cnnrun.Error, "data that is not there", net.prune, schedule, "mnist:/nowhere")
raises(TypeError, "an unknown option", net.prune, schedule, data, colour=1)

# ---- Ctrl-C, while it trains for hours ----
begun = threading.Event()


def interrupt():
    """A thread: presses Ctrl-C once the work has begun."""
    begun.wait()
    os.kill(os.getpid(), signal.SIGINT)


def endless():
    """A pruning that does not end."""
    net.prune(dict(schedule, scan={"shares": [0.5]}, train={"epochs": 10**6}), data, validation=0.5, eval="",
              on_step=lambda row: begun.set())


signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored: started in the background
thread = threading.Thread(target=interrupt)
thread.start()
raises(KeyboardInterrupt, "Ctrl-C stops a pruning", endless)
thread.join()
ok(net.prune(schedule, data, validation=0.5, limit=20, eval="")[1]["kept"] > 0, "behind that it prunes as before")
