"""ONNX nets quantised by ONNX Runtime in each of its formats, through cnnrun and ONNX Runtime.

    quantized_compare.py MODEL.onnx... [--formats qdq_u8s8c,dynamic] [--cnnrun build/cnnrun] [--time]

A line a net and format: how many answers differ from ONNX Runtime's by more than one quantisation step of the
output (without its optimiser, and with it), how far ONNX Runtime's own two differ, and how many conversions
between floats and 8 bits are left. Calibrated on noise, so weights and answers may mean nothing. Of a net whose
output is no quantised value a step is the 255th part of its largest number.
"""
import argparse
import json
import logging
import os
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

HERE = os.path.dirname(os.path.abspath(__file__))
QDQ, QOP, U8, S8 = QuantFormat.QDQ, QuantFormat.QOperator, QuantType.QUInt8, QuantType.QInt8
FORMATS = {  # activations, weights; t: a scale a tensor, c: one a channel
    "qdq_u8s8c": (QDQ, U8, S8, True, {}),
    "qdq_u8s8t": (QDQ, U8, S8, False, {}),
    "qdq_s8s8c": (QDQ, S8, S8, True, {"ActivationSymmetric": True}),
    "qdq_u8u8t": (QDQ, U8, U8, False, {}),
    "qop_u8s8c": (QOP, U8, S8, True, {}),
    "qop_u8u8t": (QOP, U8, U8, False, {}),
    "qop_s8s8t": (QOP, S8, S8, False, {}),
    "dynamic": None,
}


def inputs(model, seed):
    """Inputs at random."""
    given = {t.name for t in model.graph.initializer}
    noise = np.random.RandomState(seed)
    shapes = {i.name: [d.dim_value or 1 for d in i.type.tensor_type.shape.dim] for i in model.graph.input if i.name not in given}
    return {name: noise.randn(*shape).astype("f4") for name, shape in shapes.items()}


class Noise(CalibrationDataReader):
    def __init__(self, model, count=4):
        """Inputs for calibration."""
        self.feeds = iter([inputs(model, seed) for seed in range(count)])

    def get_next(self):
        """The next input."""
        return next(self.feeds, None)


def quantize(source, name, path):
    """Quantises a model in a format."""
    if FORMATS[name] is None:
        quantize_dynamic(source, path, weight_type=U8, op_types_to_quantize=["Conv", "MatMul", "Gemm"])
        return
    form, activation, weight, per_channel, options = FORMATS[name]
    quantize_static(source, path, Noise(onnx.load(source)), quant_format=form, activation_type=activation, weight_type=weight,
                    per_channel=per_channel, extra_options=options)


def peer(path, feeds, level, timed):
    """Outputs of ONNX Runtime."""
    o = ort.SessionOptions()
    o.graph_optimization_level, o.intra_op_num_threads, o.log_severity_level = level, 1, 4
    session = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
    answers = [session.run(None, f)[0] for f in feeds]
    took = []
    for _ in range(20 if timed else 0):
        begin = time.perf_counter()
        session.run(None, feeds[0])
        took.append(1e3 * (time.perf_counter() - begin))
    return answers, min(took, default=0)


def ours(cnnrun, path, feeds, work):
    """Our outputs."""
    for k, feed in enumerate(feeds):
        paths = []
        for i, value in enumerate(feed.values()):
            paths.append(os.path.join(work, "in%d.npy" % i))
            np.save(paths[-1], value)
        prefix = os.path.join(work, "out%d." % k)
        subprocess.run([cnnrun, "--trust", os.path.join(HERE, "outputs.lua"), path, prefix] + paths, check=True, stdout=subprocess.DEVNULL)
        yield np.load(prefix + "1.npy")


def step_of(path, answer):
    """A step of the last quantised output."""
    model = onnx.load(path)
    known = {t.name: t for t in model.graph.initializer}
    last = [n for n in model.graph.node if model.graph.output[0].name in n.output]
    if last and last[0].op_type == "DequantizeLinear" and last[0].input[1] in known:
        return float(onnx.numpy_helper.to_array(known[last[0].input[1]]))
    return np.abs(answer).max() / 255


def apart(a, b, step):
    """How far answers are apart, in steps."""
    far = np.concatenate([np.abs(x.astype("f8") - y.astype("f8")).ravel() for x, y in zip(a, b)]) / step
    return "%.3f%% (at most %.1f)" % (100 * np.mean(far > 1.01), far.max())


def conversions(cnnrun, path):
    """Conversions left in the net."""
    out = subprocess.run([cnnrun, "show", "--json", path], check=True, capture_output=True, text=True).stdout
    ops = [json.loads(line).get("op", "") for line in out.splitlines()]
    return sum(op in ("quantize_linear", "dequantize_linear") for op in ops)


def main():
    """Quantises each model in each format by ONNX Runtime, runs it there and by cnnrun, and prints a line of how far
    the answers are apart, or that ONNX Runtime can't. Differences are no failure."""
    p = argparse.ArgumentParser()
    p.add_argument("models", nargs="+")
    p.add_argument("--formats", default=",".join(FORMATS))
    p.add_argument("--cnnrun", default="build/cnnrun")
    p.add_argument("--time", action="store_true", help="one thread, least of 20 runs")
    args = p.parse_args()
    logging.disable(logging.WARNING)
    ort.set_default_logger_severity(4)
    for model in args.models:
        stem = os.path.basename(model)[:-5]
        with tempfile.TemporaryDirectory() as work:
            source, path = os.path.join(work, "net.onnx"), os.path.join(work, "quantized.onnx")
            try:
                quant_pre_process(model, source, skip_symbolic_shape=True)
            except Exception:
                source = model
            for name in args.formats.split(","):
                try:
                    quantize(source, name, path)
                    feeds = [inputs(onnx.load(path), 70 + k) for k in range(2)]
                    plain, _ = peer(path, feeds, ort.GraphOptimizationLevel.ORT_DISABLE_ALL, False)
                    fused, took = peer(path, feeds, ort.GraphOptimizationLevel.ORT_ENABLE_ALL, args.time)
                except Exception as e:
                    print("%-20s %-10s ONNX Runtime: %s" % (stem, name, str(e).splitlines()[0][:80]), flush=True)
                    continue
                got, step = list(ours(args.cnnrun, path, feeds, work)), step_of(path, plain[0])
                line = "%-20s %-10s off from plain %s, fused %s; those two %s; conversions %d" % (
                    stem, name, apart(got, plain, step), apart(got, fused, step), apart(fused, plain, step), conversions(args.cnnrun, path))
                if args.time:
                    out = subprocess.run([args.cnnrun, "bench", path, "--threads", "1", "--json"], check=True, capture_output=True, text=True)
                    line += "; ms %.2f, ONNX Runtime %.2f" % (json.loads(out.stdout.splitlines()[0])["ms_min"], took)
                print(line, flush=True)


if __name__ == "__main__":
    main()
