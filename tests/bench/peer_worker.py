#!/usr/bin/env python3
"""One peer with one net, told what to do a line at a time (peers.py): `answers FILE`, `time SECONDS`, `memory`."""
import json, os, subprocess, sys, time

import numpy as np


def outputs_of(model):
    """Names of a model's inputs and outputs."""
    import onnx
    graph = onnx.load(model, load_external_data=False).graph
    return [i.name for i in graph.input], [o.name for o in graph.output]


def made(path, command):
    """`path`, made by the command unless it is there already."""
    if not os.path.exists(path):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode or not os.path.exists(path):
            raise RuntimeError("%s: %s" % (os.path.basename(command[0]), done.stdout.strip()[-300:]))
    return path


class OnnxRuntime:
    def __init__(self, model, value, threads, profile=None):
        """Opens the model in ONNX Runtime."""
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        if profile:
            options.enable_profiling, options.profile_file_prefix = True, profile
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.given = {self.session.get_inputs()[0].name: value}

    def run(self):
        """One run; returns the outputs."""
        return self.session.run(None, self.given)


class OpenVino:
    def __init__(self, model, value, threads):
        """Opens the model in OpenVINO."""
        import openvino
        core = openvino.Core()
        read = core.read_model(model)
        read.reshape(list(value.shape))
        net = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY",
                                               "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1})
        self.request = net.create_infer_request()
        self.request.set_input_tensor(openvino.Tensor(value))
        self.n = len(net.outputs)

    def run(self):
        """One run; returns the outputs."""
        self.request.infer()
        return [self.request.get_output_tensor(i).data for i in range(self.n)]


class OpenVinoThroughput:
    """As many requests at once as OpenVINO finds best. A run is `batches` inputs."""
    single = False  # requests are single pictures of the input

    def __init__(self, model, value, threads):
        import openvino
        share = len(value) if self.single else 1
        value = value[:1] if self.single else value
        core = openvino.Core()
        read = core.read_model(model)
        read.reshape(list(value.shape))
        net = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "THROUGHPUT",
                                               "INFERENCE_NUM_THREADS": threads})
        self.queue = openvino.AsyncInferQueue(net)
        self.requests, self.n = max(share, 2 * len(self.queue)), len(net.outputs)
        self.batches = self.requests / share
        for request in self.queue:
            request.set_input_tensor(openvino.Tensor(value))

    def run(self):
        for _ in range(self.requests):
            self.queue.start_async()
        self.queue.wait_all()
        return [self.queue[0].get_output_tensor(i).data for i in range(self.n)]


class OpenVinoSingles(OpenVinoThroughput):
    single = True


class Mnn:
    def __init__(self, model, value, threads):
        """Opens the model in MNN."""
        import MNN
        self.mnn, self.value = MNN, value
        _, self.names = outputs_of(model)
        converter = os.path.join(os.path.dirname(sys.executable), "mnnconvert")
        path = made(model[:-5] + ".mnn", [converter, "-f", "ONNX", "--modelFile", model, "--MNNModel",
                                          model[:-5] + ".mnn", "--bizCode", "cnnrun"])
        self.net = MNN.Interpreter(path)
        self.session = self.net.createSession({"numThread": threads, "precision": "high", "backend": "CPU"})
        self.input = self.net.getSessionInput(self.session)
        self.net.resizeTensor(self.input, value.shape)
        self.net.resizeSession(self.session)
        self.host = MNN.Tensor(value.shape, MNN.Halide_Type_Float, value, MNN.Tensor_DimensionType_Caffe)

    def run(self):
        """One run; returns the outputs."""
        self.input.copyFrom(self.host)
        self.net.runSession(self.session)
        answers = []
        for name in self.names:
            out = self.net.getSessionOutput(self.session, name)
            shape = out.getShape()
            host = self.mnn.Tensor(shape, self.mnn.Halide_Type_Float, np.zeros(shape, "f4"),
                                   self.mnn.Tensor_DimensionType_Caffe)
            out.copyToHostTensor(host)
            answers.append(np.array(host.getNumpyData()).reshape(shape))
        return answers


class Ncnn:
    def __init__(self, model, value, threads):
        """Opens the model in ncnn."""
        import ncnn
        self.ncnn = ncnn
        base, (_, self.names) = model[:-5], outputs_of(model)
        # the program itself, wherever the wheel has it: its script would import PyTorch
        wheel = os.path.join(os.path.dirname(ncnn.__file__), "..", "pnnx")
        places = [os.path.join(wheel, "bin", "pnnx"), os.path.join(wheel, "pnnx")]
        program = next((p for p in places if os.access(p, os.X_OK)), "pnnx")
        shape = "inputshape=[%s]f32" % ",".join(str(d) for d in value.shape)
        made(base + ".ncnn.param", [program, model, shape, "fp16=0"])
        self.net = ncnn.Net()
        options = self.net.opt
        options.num_threads = threads
        options.use_vulkan_compute = False
        for name in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
            setattr(options, name, False)
        if self.net.load_param(base + ".ncnn.param") or self.net.load_model(base + ".ncnn.bin"):
            raise RuntimeError("ncnn does not read what pnnx made of it")
        self.value = np.ascontiguousarray(value[0])

    def run(self):
        """One run; returns the outputs."""
        answers = []
        with self.net.create_extractor() as extractor:
            extractor.input(self.net.input_names()[0], self.ncnn.Mat(self.value))
            for name in self.net.output_names():
                failed, out = extractor.extract(name)
                if failed:
                    raise RuntimeError("ncnn computes no %s" % name)
                answers.append(np.array(out))
        return answers


PEERS = {"ort": OnnxRuntime, "openvino": OpenVino, "throughput": OpenVinoThroughput, "singles": OpenVinoSingles, "mnn": Mnn, "ncnn": Ncnn}


def high_water():
    """KiB that this process held at most; ru_maxrss would count its parent's, which forked it."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def timed(peer, seconds):
    """Milliseconds of each run, for one input."""
    batches = getattr(peer, "batches", 1)
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        peer.run()
        times.append((time.perf_counter() - begin) * 1e3 / batches)
    return times


def main():
    kind, model, given, threads = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    talk = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print goes aside
    try:
        peer = PEERS[kind](model, np.load(given), threads)
        peer.run()
        talk.write(json.dumps({"ready": kind}) + "\n")
        for line in sys.stdin:
            words = line.split()
            if words[0] == "answers":
                np.savez(words[1], *peer.run())
                answer = {}
            elif words[0] == "time":
                answer = {"ms": timed(peer, float(words[1]))}
            else:
                answer = {"kib": high_water()}
            talk.write(json.dumps(answer) + "\n")
    except Exception as e:  # a peer's refusal is told, and the others go on
        talk.write(json.dumps({"error": " ".join(str(e).split())[:300]}) + "\n")
    os._exit(0)  # some peers crash when they are let go


if __name__ == "__main__":
    main()
