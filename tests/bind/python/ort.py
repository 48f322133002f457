"""cnnrun.ort beside ONNX Runtime (where it is installed): the same calls, the same answers.

The examples of ONNX Runtime's Python documentation that need no download, with the import changed; their steps
are written here anew, on models of ours. From the gallery: load and predict, common errors, metadata, profiling,
backend; from the page of the API: scenarios 1 to 6, on the host. The other ones need scikit-learn, Keras, PyTorch
or a GPU. ONNX Runtime's own files for them are run, too, where it is installed.
"""

import json
import sys
from pathlib import Path

import numpy as np

import cnnrun
import cnnrun.ort
import cnnrun.ort.backend
from cnnrun.ort.capi.onnxruntime_pybind11_state import InvalidArgument
from cnnrun.ort.datasets import get_example
from tap import ok, raises

try:
    import onnxruntime
    import onnxruntime.backend
except ImportError:
    print("# no onnxruntime: cnnrun.ort alone")
    onnxruntime = None
cnnrun.load(Path(sys.argv[1]) / "lenet5.lua").save("net.onnx")
x = np.random.default_rng(1).random((2, 1, 28, 28), np.float32)
two = np.float32([[1, 2], [3, 4], [5, 6]])
sigmoid, mul, iris = get_example("sigmoid.onnx"), get_example("mul_1.onnx"), get_example("logreg_iris.onnx")
cpu = ["CPUExecutionProvider"]


# ---- the gallery ----


def load_and_predict(ort):
    """ONNX Runtime's example "load and predict" with the given module."""
    sess = ort.InferenceSession(sigmoid, providers=ort.get_available_providers())
    i, o = sess.get_inputs()[0], sess.get_outputs()[0]
    print("# input", i.name, i.shape, i.type, "output", o.name, o.shape, o.type)
    given = np.random.default_rng(2).random((3, 4, 5)).astype(np.float32)
    return sess.run([o.name], {i.name: given})[0]


def common_errors(ort):
    """ONNX Runtime's example "common errors": the kinds of errors that it raises."""
    sess = ort.InferenceSession(iris, providers=ort.get_available_providers())
    i, o = sess.get_inputs()[0].name, sess.get_outputs()[0].name
    invalid = InvalidArgument
    if ort is onnxruntime:
        from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument as invalid
    told = []
    for names, feed in (([o], {i: two.astype(np.float64)}), (["misspelled"], {i: two}), (None, {i: two}),
                        ([o], {"misspelled": two})):
        try:
            told.append(len(sess.run(names, feed)))
        except Exception as e:
            told.append("error" if str(e) else "nothing is told")
    for shape in ((4,), (1, 4), (2, 2, 2), (3,), (1, 3)):
        try:
            told.append(sess.run([o], {i: np.ones(shape, np.float32)})[0].shape)
        except (RuntimeError, invalid) as e:
            told.append("error" if str(e) else "nothing is told")
    return told


def metadata(ort):
    """ONNX Runtime's example "metadata": what a model says of itself."""
    meta = ort.InferenceSession(iris, providers=ort.get_available_providers()).get_modelmeta()
    return [meta.custom_metadata_map, meta.description, meta.domain, meta.graph_name, meta.producer_name, meta.version]


def profiling(ort):
    """ONNX Runtime's example "profiling": the file that a profile leaves."""
    options = ort.SessionOptions()
    options.enable_profiling = True
    sess = ort.InferenceSession(Path(mul).read_bytes(), options, providers=ort.get_available_providers())
    sess.run(None, {sess.get_inputs()[0].name: two})
    name = sess.end_profiling()
    told = json.loads(Path(name).read_text())
    Path(name).unlink()
    return len(told) > 0


def backend(ort):
    """ONNX Runtime's example "backend": the interface of ONNX's backends."""
    module = cnnrun.ort.backend if ort is cnnrun.ort else onnxruntime.backend
    device = ort.get_device()
    label, maps = module.prepare(iris, device).run(np.float32([[1.4, .2], [4.7, 1.4], [6, 2.5]]))
    return [label.tolist(), [[(key, round(value, 4)) for key, value in m.items()] for m in maps]]


# ---- the page of the API ----


def scenario_1(ort):
    """A value made of an array, as an input of run."""
    value = ort.OrtValue.ortvalue_from_numpy(two, "cpu", 0)
    about = [value.device_name(), value.shape(), value.data_type(), value.is_tensor(), np.array_equal(value.numpy(), two)]
    res = ort.InferenceSession(mul, providers=cpu).run(["Y"], {"X": value})
    return [*about, res[0].tolist()]


def scenario_2(ort):
    """A binding with an input in the program's memory."""
    session = ort.InferenceSession(mul, providers=cpu)
    binding = session.io_binding()
    binding.bind_cpu_input("X", two)
    binding.bind_output("Y")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()[0]


def bound(ort, value):
    """A session and a binding of its input."""
    session = ort.InferenceSession(mul, providers=cpu)
    binding = session.io_binding()
    binding.bind_input(name="X", device_type=value.device_name(), device_id=0, element_type=np.float32,
                       shape=value.shape(), buffer_ptr=value.data_ptr())
    return session, binding


def scenario_3(ort):
    """A binding with an input value and an output that the run makes."""
    value = ort.OrtValue.ortvalue_from_numpy(two, "cpu", 0)
    session, binding = bound(ort, value)
    binding.bind_output("Y")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()[0]


def scenario_4(ort):
    """A binding with an input value and an output value that was made before."""
    value = ort.OrtValue.ortvalue_from_numpy(two, "cpu", 0)
    y = ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32, "cpu", 0)
    session, binding = bound(ort, value)
    binding.bind_output(name="Y", device_type=y.device_name(), device_id=0, element_type=np.float32, shape=y.shape(),
                        buffer_ptr=y.data_ptr())
    session.run_with_iobinding(binding)
    return y.numpy()


def scenario_5(ort):
    """A binding whose output the run makes on a named device."""
    value = ort.OrtValue.ortvalue_from_numpy(two, "cpu", 0)
    session, binding = bound(ort, value)
    binding.bind_output("Y", "cpu")
    session.run_with_iobinding(binding)
    return binding.get_outputs()[0].numpy()


def scenario_6(ort):
    """A binding by the addresses of arrays."""
    value = ort.OrtValue.ortvalue_from_numpy(two, "cpu", 0)
    y = ort.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32, "cpu", 0)
    session = ort.InferenceSession(mul, providers=cpu)
    binding = session.io_binding()
    binding.bind_ortvalue_input("X", value)
    binding.bind_ortvalue_output("Y", y)
    session.run_with_iobinding(binding)
    return y.numpy()


documented = (load_and_predict, common_errors, metadata, profiling, backend, scenario_1, scenario_2, scenario_3,
              scenario_4, scenario_5, scenario_6)

# ---- what programs do besides ----


def names_shapes_types(ort):
    """What a session tells of its inputs and outputs."""
    sess = ort.InferenceSession("net.onnx", providers=cpu)
    i, o = sess.get_inputs()[0], sess.get_outputs()[0]
    return [i.name, i.type, len(i.shape), list(i.shape[1:]), o.name, o.type, list(o.shape[1:])]


def with_options(ort):
    """A run of a session with options."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    sess = ort.InferenceSession("net.onnx", sess_options=options, providers=cpu)
    return sess.run(None, {"data": x}, ort.RunOptions())[0]


def from_bytes(ort):
    """A run of a session made of a file's bytes."""
    sess = ort.InferenceSession(Path("net.onnx").read_bytes(), providers=[("CPUExecutionProvider", {})])
    return sess.run(None, {sess.get_inputs()[0].name: x})[0]


def providers(ort):
    """The providers that a session and the module tell."""
    sess = ort.InferenceSession("net.onnx", providers=cpu)
    return [sess.get_providers(), "CPUExecutionProvider" in ort.get_available_providers()]


def ort_values(ort):
    """A run from values to values."""
    sess = ort.InferenceSession("net.onnx", providers=cpu)
    return sess.run_with_ort_values(None, {"data": ort.OrtValue.ortvalue_from_numpy(x)})[0].numpy()


def alike(a, b):
    """True: both are equal but for rounding."""
    return np.allclose(a, b, atol=1e-4) if isinstance(a, np.ndarray) else a == b


good = 0
for example in (*documented, names_shapes_types, with_options, from_bytes, providers, ort_values):
    try:
        ours = example(cnnrun.ort)
        theirs = example(onnxruntime) if onnxruntime else ours
    except Exception as e:
        ours, theirs = repr(e), None
    same = alike(ours, theirs)
    good += same and example in documented
    ok(same, example.__name__)
    if not same:
        print("#", ours, theirs)
print(f"# {good} of {len(documented)} examples of the documentation")
if onnxruntime:
    from onnxruntime.datasets import get_example as theirs
    for name in ("sigmoid.onnx", "mul_1.onnx", "logreg_iris.onnx"):
        sess, other = (ort.InferenceSession(theirs(name), providers=cpu) for ort in (cnnrun.ort, onnxruntime))
        given = {i.name: np.random.default_rng(3).random(i.shape).astype(np.float32) for i in other.get_inputs()}
        ok(np.allclose(sess.run(None, given)[0], other.run(None, given)[0], atol=1e-6), f"its own {name}")
        ok([o.type for o in sess.get_outputs()] == [o.type for o in other.get_outputs()], f"types of {name}")
sess = cnnrun.ort.InferenceSession(iris)
label, maps = sess.run(None, {"float_input": np.float32([[1.4, .2], [4.7, 1.4], [6, 2.5]])})
ok(label.tolist() == [0, 1, 2] and label.dtype == np.int64, "a regression of three kinds of iris: each its own")
ok([max(m, key=m.get) for m in maps] == [0, 1, 2] and all(abs(sum(m.values()) - 1) < 1e-5 for m in maps),
   "ZipMap gives a dict for each row")
ok([o.type for o in sess.get_outputs()] == ["tensor(int64)", "seq(map(int64,tensor(float)))"], "types of its outputs")
sess = cnnrun.ort.InferenceSession("net.onnx")
raises(ValueError, "an input that is missing", sess.run, None, {})
raises(ValueError, "an output that is none", sess.run, ["nothing"], {"data": x})
raises(ValueError, "an example that is none", get_example, "nothing.onnx")
raises(ValueError, "a trace that was not asked for", sess.end_profiling)
raises(ValueError, "memory of another device", cnnrun.ort.OrtValue.ortvalue_from_numpy, two, "cuda", 0)
ok(not cnnrun.ort.backend.is_compatible("none.onnx", "CPU"), "a model that is not there is not compatible")
Path("noise.onnx").write_bytes(bytes(range(256)) * 8)
raises(InvalidArgument, "a damaged file", cnnrun.ort.InferenceSession, "noise.onnx")
