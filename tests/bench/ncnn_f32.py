#!/usr/bin/env python3
"""SqueezeNet v1.1 or MobileNet v1 in ncnn's fp32 with weights at random, run a number of times on one thread.

    python3 ncnn_f32.py FOLDER PASSES [squeezenet_v1_1 | mobilenet_v1]

Run by a Python for AArch64 or ARMv7 with the packages ncnn and numpy under qemu with the plugin of tests/cross/count.c, for 0 and
for 1 passes, the difference is the instructions of a pass. (ncnn's wheel for ARMv7 crashes in a second one under qemu.) passes.lua
does the same for cnnrun. ncnn stores no halves."""
import array, os, random, sys

layers, weights = [], bytearray()


def conv(name, source, outputs, inputs, kernel, stride=1, pad=0, groups=1, act=1):
    """Adds a convolution with drawn weights; act: 1 relu, 3 clipped at 6. Returns its name."""
    draw, n = random.Random(name), outputs * inputs // groups * kernel * kernel
    kind, more = ("ConvolutionDepthWise", " 7=%d" % groups) if groups > 1 else ("Convolution", "")
    clip = " -23310=2,0.0,6.0" if act == 3 else ""
    layers.append(f"{kind} {name} 1 1 {source} {name} 0={outputs} 1={kernel} 3={stride} 4={pad} 5=1 6={n}{more} 9={act}{clip}")
    weights.extend(bytes(4)) # floats follow
    spread = (6.0 * groups / (inputs * kernel * kernel)) ** 0.5
    weights.extend(array.array("f", [draw.uniform(-spread, spread) for _ in range(n)]).tobytes())
    weights.extend(bytes(4 * outputs))  # biases
    return name


def fire(name, source, inputs, squeezed, expanded):
    """Adds SqueezeNet's fire module; returns its output's name."""
    small = conv(name + "_s", source, squeezed, inputs, 1)
    layers.append(f"Split {name}_p 1 2 {small} {name}_a {name}_b")
    one = conv(name + "_1", name + "_a", expanded, squeezed, 1)
    three = conv(name + "_3", name + "_b", expanded, squeezed, 3, pad=1)
    layers.append(f"Concat {name} 2 1 {one} {three} {name} 0=0")
    return name


def squeezenet_v1_1():
    """Adds the layers of SqueezeNet v1.1; returns the last output's name and the size of a picture."""
    def pool(name, source):
        layers.append(f"Pooling {name} 1 1 {source} {name} 0=0 1=3 2=2 5=0")
        return name
    x = pool("p1", conv("c1", "data", 64, 3, 3, 2))
    x = pool("p3", fire("f3", fire("f2", x, 64, 16, 64), 128, 16, 64))
    x = pool("p5", fire("f5", fire("f4", x, 128, 32, 128), 256, 32, 128))
    x = fire("f7", fire("f6", x, 256, 48, 192), 384, 48, 192)
    x = conv("c10", fire("f9", fire("f8", x, 384, 64, 256), 512, 64, 256), 1000, 512, 1)
    layers.append(f"Pooling mean 1 1 {x} mean 0=1 4=1")
    return "mean", 227


def mobilenet_v1():
    """Adds the layers of MobileNet v1; returns the last output's name and the size of a picture."""
    x, inputs = conv("c1", "data", 32, 3, 3, 2, 1, act=3), 32
    steps = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
    for i, (outputs, stride) in enumerate(steps):
        x = conv(f"d{i}", x, inputs, inputs, 3, stride, 1, groups=inputs, act=3)
        x, inputs = conv(f"w{i}", x, outputs, inputs, 1, act=3), outputs
    layers.append(f"Pooling mean 1 1 {x} mean 0=1 4=1")
    n = 1000 * 1024
    layers.append(f"InnerProduct fc 1 1 mean fc 0=1000 1=1 2={n}")
    draw = random.Random("fc")
    weights.extend(bytes(4) + array.array("f", [draw.uniform(-0.03, 0.03) for _ in range(n)]).tobytes() + bytes(4000))
    return "fc", 224


def write(folder, last):
    """Writes the net's two files."""
    layers.append(f"Softmax prob 1 1 {last} prob 0=0")
    blobs = sum(int(line.split()[3]) for line in layers)
    with open(os.path.join(folder, "net.param"), "w") as file:
        file.write("7767517\n%d %d\n%s\n" % (len(layers), blobs, "\n".join(layers)))
    with open(os.path.join(folder, "net.bin"), "wb") as file:
        file.write(weights)


def run(folder, passes, size):
    """Runs the net by ncnn."""
    import ncnn
    import numpy as np
    net = ncnn.Net()
    net.opt.num_threads = 1
    for halves in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
        setattr(net.opt, halves, False)
    net.load_param(os.path.join(folder, "net.param"))
    net.load_model(os.path.join(folder, "net.bin"))
    status, answer = 0, 0
    for _ in range(passes):
        with net.create_extractor() as one:
            one.input("data", ncnn.Mat(np.ones((3, size, size), "f4")))
            status, answer = one.extract("prob")
    print(status, float(np.array(answer).sum()))


if __name__ == "__main__":
    folder, passes = sys.argv[1], int(sys.argv[2])
    layers.append("Input data 0 1 data")
    last, size = {"squeezenet_v1_1": squeezenet_v1_1, "mobilenet_v1": mobilenet_v1}[(sys.argv[3:] or ["squeezenet_v1_1"])[0]]()
    write(folder, last)
    run(folder, passes, size)
