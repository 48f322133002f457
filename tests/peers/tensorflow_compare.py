#!/usr/bin/env python3
"""Judges the TensorFlow importer by TensorFlow: made-up graphs of both ages and Keras's nets, frozen, through
both on the same noise; for each the largest absolute difference over the largest absolute value (TAP).

    tensorflow_compare.py [--keras] [NAME...]       NAME: a part of the names that are wanted
"""

import argparse, os, subprocess, sys, tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
v1 = tf.compat.v1
v1.disable_control_flow_v2()  # conditions as Switch and Merge, which freezing leaves
import tensorflow_tensors, tensorflow_windows
from tensorflow_graphs import FED, GRAPHS, LIMITS, OPTIONS, VALUES, Noise

# ---- Keras ----

KERAS = {
    "MobileNet": 128,
    "MobileNetV2": 96,
    "MobileNetV3Small": 96,
    "MobileNetV3Large": 96,
    "ResNet50": 64,
    "ResNet50V2": 64,
    "InceptionV3": 96,
    "InceptionResNetV2": 96,
    "Xception": 96,
    "DenseNet121": 64,
    "NASNetMobile": 96,
    "EfficientNetB0": 64,
    "EfficientNetV2B0": 64,
    "VGG16": 48,
    "ConvNeXtTiny": 64
}


def keras_net(name):
    """A net of Keras with fixed weights."""
    make = getattr(tf.keras.applications, name)
    tf.keras.utils.set_random_seed(3)
    size = KERAS[name]
    # random scores behind a softmax are nearly equal: judged before it
    net = make(weights=None, input_shape=(size, size, 3), classes=37, classifier_activation=None)
    for layer in net.layers:  # statistics as training leaves them, not 0 and 1
        if isinstance(layer, tf.keras.layers.BatchNormalization):
            names = [w.name.split("/")[-1].split(":")[0] for w in layer.weights]
            layer.set_weights([
                (np.random.uniform(0.5, 1.5, w.shape) if n in ("gamma", "moving_variance") else 0.1 *
                 np.random.randn(*w.shape)) for n, w in zip(names, layer.get_weights())
            ])
    run = tf.function(lambda x: net(x, training=False)).get_concrete_function(
        tf.TensorSpec([None, size, size, 3], tf.float32))
    return convert_variables_to_constants_v2(run).graph.as_graph_def(), {"batch": 2}


# ---- the judge ----


def made(name):
    """A graph of that name."""
    with tf.Graph().as_default() as g:
        for k, y in enumerate(GRAPHS[name](Noise())):
            tf.identity(y, name="output%d" % k)
        return g.as_graph_def()


def leaves(definition):
    """The outputs of a graph made here; of Keras's the nodes that no other reads."""
    names = [node.name for node in definition.node]
    made_here = [n for n in ("output%d" % k for k in range(len(names))) if n in names]
    read = {i.split(":")[0].lstrip("^") for node in definition.node for i in node.input}
    return made_here or [
        n.name for n in definition.node if n.name not in read and n.op not in ("NoOp", "Const")
    ]


def fed(g, name):
    """Noise for each placeholder, or where the graph is cut; and what has a value of its own."""
    random = np.random.RandomState(7)
    shapes = {
        t.op.name: (t.shape, t.dtype)
        for t in (o.outputs[0] for o in g.get_operations() if o.type == "Placeholder")
    }
    for cut, shape in FED.get(name, {}).items():
        shapes = {cut: (tf.TensorShape(shape), tf.float32)}
    given = {}
    for input, (shape, dtype) in shapes.items():
        sizes = ([2, 9, 11, 6]
                 if shape.rank is None else [d or (8 if k else 2) for k, d in enumerate(shape)])
        noise = random.rand(*sizes) * 2 - 1 if dtype.is_floating else random.randint(0, 100, sizes)
        given[input] = noise.astype(dtype.as_numpy_dtype)
    values = VALUES.get(name, {})
    return {k: v for k, v in given.items() if k not in values}, values


def judge(args, name, work):
    """Compares our answers with TensorFlow's."""
    definition = keras_net(name)[0] if name in KERAS else made(name)
    path = os.path.join(args.keep or work, name + ".pb")
    with open(path, "wb") as out:
        out.write(definition.SerializeToString())
    names = leaves(definition)
    with tf.Graph().as_default() as g, v1.Session() as session:
        tf.import_graph_def(definition, name="")
        given, values = fed(g, name)
        want = session.run([n + ":0" for n in names], {
            k + ":0": v
            for k, v in {
                **given,
                **values
            }.items()
        })
    options = [word for option in OPTIONS.get(name, []) for word in ("--option", option)]
    net = os.path.join(work, "net.cnr")
    done = subprocess.run([args.cnnrun, "import", path, "-o", net] + options,
                          capture_output=True,
                          text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    got = run_ours(args.cnnrun, net, given, work)
    if len(got) != len(want):
        raise ValueError("%d outputs, TensorFlow has %d" % (len(got), len(want)))
    worst, largest, faults = 0.0, 0.0, []
    for k, (a, b) in enumerate(zip(got, want)):
        a, b = np.asarray(a), np.asarray(b)
        largest = max(largest, float(np.abs(b.astype("f8")).max()) if b.size else 0)
        d = difference(a, b)
        if not d <= LIMITS.get(name, args.limit):
            faults.append("%s: %s %s, TensorFlow %s %s: %.2g" %
                          (names[k], a.shape, a.dtype, b.shape, b.dtype, d))
        worst = max(worst, d)
    if faults:
        raise ValueError("\n".join(faults))
    return worst, largest


def run_ours(cnnrun, net, given, work):
    """Our outputs."""
    paths = []
    for k, value in enumerate(given.values()):
        paths.append(os.path.join(work, "in%d.npy" % k))
        np.save(paths[-1], value)
    prefix = os.path.join(work, "out")
    done = subprocess.run(
        [cnnrun, "--trust", os.path.join(HERE, "outputs.lua"), net, prefix] + paths,
        capture_output=True,
        text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    out = []
    while os.path.exists("%s%d.npy" % (prefix, len(out) + 1)):
        out.append(np.load("%s%d.npy" % (prefix, len(out) + 1)))
    return out


def difference(a, b):
    """The largest difference, divided by the largest absolute value of b (by 1 if that is 0).

    Infinite if shapes differ, only one is of floats, or the result is not finite; 0 if empty.
    """
    if a.shape != b.shape or (a.dtype.kind == "f") != (b.dtype.kind == "f"):
        return float("inf")
    if not b.size:
        return 0.0
    a, b = np.asarray(a, "f8"), np.asarray(b, "f8")
    worst = np.abs(a - b).max() / (np.abs(b).max() or 1)
    return float(worst) if np.isfinite(worst) else float("inf")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keras",
                        action="store_true",
                        help="Keras's nets, in place of the made-up graphs")
    parser.add_argument("--cnnrun", default=os.path.join(ROOT, "build", "cnnrun"))
    parser.add_argument("--limit", type=float, default=1e-4)
    parser.add_argument("--keep", metavar="DIR", help="leave the graphs here")
    args = parser.parse_args()
    names = [
        n for n in (KERAS if args.keras else GRAPHS)
        if not args.names or any(part in n for part in args.names)
    ]
    failed = 0
    for k, name in enumerate(names, 1):
        with tempfile.TemporaryDirectory() as work:
            try:
                worst, largest = judge(args, name, work)
                if not largest:
                    raise ValueError("nothing but zeros")
                print("ok %d - %s: %.2g (largest value %.3g)" % (k, name, worst, largest), flush=True)
            except Exception as e:  # a refusal is a failure to tell of, not a reason to stop
                print("not ok %d - %s\n# %s" % (k, name, str(e).replace("\n", "\n# ")), flush=True)
                failed += 1
    print("1..%d" % len(names))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
