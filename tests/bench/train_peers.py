#!/usr/bin/env python3
"""Epochs of training by cnnrun beside PyTorch (channels last, torch.compile), in turns, on the same threads.

Random pictures of the nets' sizes: cnnrun reads them as files, PyTorch has them as bytes in memory. SGD with
momentum and weight decay, batches of 64. An epoch's time leaves out starting, planning and compiling: each side
first trains an epoch that isn't counted. Prints the medians of an epoch in ms and cnnrun's over PyTorch's.
    train_peers.py [--net resnet20]... [--threads 2] [--epochs 3] [--pictures 512] [--no-compile] [--json]"""
import argparse, json, os, random, statistics, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BATCH = 64
# Residual nets for pictures of 32x32: the widths of three stages, each of `depth` blocks.
RESIDUAL = """
local c = require "cnnrun"
local blocks = require "lib.blocks"
local conv_bn, kind = blocks.conv_bn, "%s"
local function body(width, stride, channels)
  if kind == "basic" then
    return { conv_bn(width, 3, { stride = stride }), conv_bn(width, 3, { act = false }) }
  elseif kind == "bottleneck" then
    return { conv_bn(width // 4, 1), conv_bn(width // 4, 3, { stride = stride }),
             conv_bn(width, 1, { act = false }) }
  end
  return { conv_bn(4 * channels, 1),
           conv_bn(4 * channels, 3, { stride = stride, groups = 4 * channels }),
           conv_bn(width, 1, { act = false }) }
end
local layers, channels = { conv_bn(%d, 3) }, %d
for stage = 1, 3 do
  local width = %d << (stage - 1)
  for i = 1, %d do
    local stride = (stage > 1 and i == 1) and 2 or 1
    local shortcut = (stride > 1 or channels ~= width)
      and conv_bn(width, 1, { stride = stride, act = false }) or nil
    layers[#layers + 1] = c.seq { blocks.residual(body(width, stride, channels), shortcut), c.relu {} }
    channels = width
  end
end
return c.net { name = "residual", input = { "data", shape = { "batch", 3, 32, 32 }, channels = "rgb", scale = 1 / 255 },
  layers, blocks.classifier(10) }
"""
# Name: kind of block, width of the first stage, blocks of a stage.
RESIDUALS = {"resnet20": ("basic", 16, 3), "depthwise": ("depthwise", 16, 2), "bottleneck": ("bottleneck", 64, 2)}
NETS = ["lenet5", "cifar10_quick"] + list(RESIDUALS)


def words():
    """The command's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", action="append", choices=NETS, help="repeatable (all)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3, help="counted epochs of each side (3)")
    parser.add_argument("--pictures", type=int, default=512)
    parser.add_argument("--no-compile", action="store_true", help="PyTorch without torch.compile")
    parser.add_argument("--no-torch", action="store_true", help="cnnrun alone")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cnnrun", default=os.path.join(ROOT, "build", "cnnrun"))
    args = parser.parse_args()
    args.net = args.net or NETS
    return args


def sides(net):
    """Channels and side of the net's pictures."""
    return (1, 28) if net == "lenet5" else (3, 32)


def pictures(folder, net, n):
    """A list of n random pictures with random labels, as PGM or PPM."""
    channels, side = sides(net)
    draw = random.Random(1)
    with open(os.path.join(folder, "list.txt"), "w") as out:
        for i in range(n):
            name = "%d.pnm" % i
            with open(os.path.join(folder, name), "wb") as f:
                f.write(b"P%d %d %d 255\n" % (5 if channels == 1 else 6, side, side) + draw.randbytes(channels * side * side))
            out.write("%s %d\n" % (name, draw.randrange(10)))


# ---- cnnrun: a process that trains; its lines tell when epochs ended ----

class Ours:
    def __init__(self, folder, net, args):
        """Writes the net's description where it has none, and begins to train it with cnnrun."""
        path = os.path.join(ROOT, "scripts", "nets", net + ".lua")
        if net in RESIDUALS:
            kind, width, depth = RESIDUALS[net]
            path = os.path.join(folder, net + ".lua")
            with open(path, "w") as f:
                f.write(RESIDUAL % (kind, width, width, width, depth))
        self.command = [args.cnnrun, "train", path, "--data", "images:" + os.path.join(folder, "list.txt"),
                        "--validation", "0", "--eval", "", "--batch", str(BATCH), "--threads", str(args.threads), "--no-energy",
                        "--lr", "1e-6", "--json", "--overwrite", "-o", os.path.join(folder, "out.cnr")]

    def epoch(self):
        """One counted epoch, behind one that isn't."""
        done = subprocess.run(self.command + ["--epochs", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit("cnnrun: " + done.stderr)
        ends = [row["seconds"] for row in map(json.loads, done.stdout.splitlines()) if "train_accuracy" in row]
        return ends[1] - ends[0]


# ---- PyTorch: the same nets in a process of its own, which trains an epoch for each line that it reads ----

def torch_net(torch, net):
    """The same net in PyTorch."""
    nn = torch.nn

    def conv_bn(a, out, kernel, stride=1, groups=1, act=True):
        """A convolution with batch normalisation and, unless act is false, relu."""
        layers = [nn.Conv2d(a, out, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(out)]
        return nn.Sequential(*layers, *([nn.ReLU()] if act else []))

    class Residual(nn.Module):
        def __init__(self, a, out, stride, kind):
            """A residual block from a to out channels."""
            super().__init__()
            if kind == "basic":
                self.body = nn.Sequential(conv_bn(a, out, 3, stride), conv_bn(out, out, 3, act=False))
            elif kind == "bottleneck":
                self.body = nn.Sequential(conv_bn(a, out // 4, 1), conv_bn(out // 4, out // 4, 3, stride), conv_bn(out // 4, out, 1, act=False))
            else:
                self.body = nn.Sequential(conv_bn(a, 4 * a, 1), conv_bn(4 * a, 4 * a, 3, stride, 4 * a), conv_bn(4 * a, out, 1, act=False))
            self.shortcut = conv_bn(a, out, 1, stride, act=False) if stride > 1 or a != out else nn.Identity()

        def forward(self, x):
            """The block's sum, through relu."""
            return torch.relu(self.body(x) + self.shortcut(x))

    if net == "lenet5":
        return nn.Sequential(nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))
    if net == "cifar10_quick":
        return nn.Sequential(nn.Conv2d(3, 32, 5, padding=2), nn.MaxPool2d(3, 2, ceil_mode=True), nn.ReLU(),
                             nn.Conv2d(32, 32, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True),
                             nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.AvgPool2d(3, 2, ceil_mode=True),
                             nn.Flatten(), nn.Linear(1024, 64), nn.Linear(64, 10))
    kind, first, depth = RESIDUALS[net]
    layers, a = [conv_bn(3, first, 3)], first
    for stage in range(3):
        for i in range(depth):
            layers.append(Residual(a, first << stage, 2 if stage and not i else 1, kind))
            a = first << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(a, 10))


def serve(net, threads, n, compiled):
    """Child process: trains the net in PyTorch, an epoch for each line that it reads, and prints
    its seconds."""
    import time, torch
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    channels, side = sides(net)
    data = torch.randint(0, 256, (n, channels, side, side), dtype=torch.uint8).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 10, (n,))
    model = torch_net(torch, net).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    loss_of = torch.nn.CrossEntropyLoss()
    run = torch.compile(model) if compiled else model

    def epoch():
        """Trains one epoch and returns its seconds."""
        order = torch.randperm(n)
        for i in range(0, n - BATCH + 1, BATCH):
            at = order[i:i + BATCH]
            x = (data[at].float() / 255).contiguous(memory_format=torch.channels_last)
            optimizer.zero_grad()
            loss = loss_of(run(x), labels[at])
            loss.backward()
            optimizer.step()
            loss.item()

    epoch()
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter()
        epoch()
        print(time.perf_counter() - begun, flush=True)


class Theirs:
    def __init__(self, net, args):
        """Starts the process that trains with PyTorch, and waits until it is ready."""
        words = [sys.executable, os.path.abspath(__file__), "serve", net, str(args.threads), str(args.pictures), str(int(not args.no_compile))]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            sys.exit("PyTorch did not start")

    def epoch(self):
        """Has the process train one epoch; returns its seconds."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()


def compare(net, args):
    """Trains a net with cnnrun and PyTorch in turns, and prints the seconds of an epoch of both."""
    with tempfile.TemporaryDirectory() as folder:
        pictures(folder, net, args.pictures)
        ours, theirs, a, b = Ours(folder, net, args), None if args.no_torch else Theirs(net, args), [], []
        for i in range(args.epochs):
            a.append(ours.epoch())
            if theirs:
                theirs.epoch() # wakes its threads and caches
                b.append(theirs.epoch())
        if theirs:
            theirs.end()
    row = {"net": net, "threads": args.threads, "pictures": args.pictures, "cnnrun_ms": statistics.median(a) * 1e3}
    if b:
        row.update(torch_ms=statistics.median(b) * 1e3, ratio=statistics.median(a) / statistics.median(b))
    if args.json:
        print(json.dumps(row), flush=True)
    else:
        print("%-14s cnnrun %8.1f ms" % (net, row["cnnrun_ms"]), "  PyTorch %8.1f ms   %.2f" % (row["torch_ms"], row["ratio"]) if b else "", flush=True)


def main():
    args = words()
    for net in args.net:
        compare(net, args)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "1")
    else:
        main()
