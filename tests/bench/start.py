#!/usr/bin/env python3
"""From nothing to the first result, and the most memory on the way: whole processes of `cnnrun run NET.cnr PICTURE`.

    python3 tests/bench/start.py [--threads N] [--runs N] [--picture FILE] [--program FILE] [--compiled] [--stored]
        [--fresh] [--json]
        [NET...] [-- OPTIONS]

wants build/cnnrun. Each NET (alexnet squeezenet_v1_1 resnet50 vgg16) becomes a native file once, with made-up weights, in
build/start. The page cache is warm as an earlier run leaves it: the files are dropped from it, and each program runs
once, which is not counted (ms_cold); a file that was just written lies there in smaller pieces, and takes longer. Then all
take turns. ms_first: from the fork until the answer's line is there; ms_whole: until the process has ended. mib: VmHWM,
which the system tells of a child as ru_maxrss; this process, which the child begins as a copy of, takes less than any of
them. A second program beside it (--program, twice) makes its own files and takes turns too.
--compiled compiles each net, too (`cnnrun compile`, with the same OPTIONS, which its file keeps), and times both files in
turns. --stored stores each plan in a cache folder, too (`cnnrun warm`), and times starts that take it over; without it nothing is
stored or taken over. --fresh gives every process a home folder of its own, where no driver finds what it compiled before.

    python3 tests/bench/start.py --python PYTHON [--threads N] [--runs N] [--json] [NET...]

times whole processes of an interpreter that has cnnrun, onnxruntime and Pillow instead: `import`, load NET.onnx (squeezenet_v1_1),
and the first answer to an array, which must be the same; then to a picture, which ONNX Runtime's gets by Pillow and NumPy and
cnnrun's (topk of a path) without both. All take turns, NumPy alone, or Python, among them: what no process gets around.
"""
import argparse, json, os, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CNNRUN_BUILD", os.path.join(ROOT, "build"))
CAT = os.path.join(ROOT, "../shared/data/images/cat.jpg")
NETS = ["alexnet", "squeezenet_v1_1", "resnet50", "vgg16"]


def native(program, folder, net):
    """The net as .cnr; written at first."""
    path = os.path.join(folder, net + ".cnr")
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        subprocess.run([program, "convert", os.path.join(ROOT, "scripts/nets", net + ".lua"), "--weights", "random:1",
                        "-o", path, "-q"], check=True)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


def compiled(program, folder, net, options):
    """NET.cnrp of the native file, made anew; no driver finds what it compiled before."""
    path = native(program, folder, net)
    with tempfile.TemporaryDirectory() as home:
        subprocess.run([program, "compile", path, "-o", path + "p", "-q", *options], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "HOME": home, "XDG_CACHE_HOME": home})
    return path + "p"


# What a Python process does; its arguments are file, threads, picture. The first of each group is what no process gets around.
TOLD = "y = {}; print('\"top\"', y.argmax(), y.max())"
FULL = "x = np.full([1, *{}[1:]], .5, 'f'); " + TOLD
SESSION = ("import {} as ort, numpy as np, sys; o = ort.SessionOptions(); o.intra_op_num_threads = int(sys.argv[2]); "
           "s = ort.InferenceSession(sys.argv[1], o, providers=['CPUExecutionProvider']); i = s.get_inputs()[0]; ")
RUN = "s.run(None, {i.name: x})[0]"
ARRAY = {
    "numpy": "import numpy as np; " + FULL.format("(0, 3, 224, 224)", "x[0, 0, 0]"),
    "cnnrun": "import cnnrun, numpy as np, sys; net = cnnrun.load(sys.argv[1], threads=int(sys.argv[2])); "
              + FULL.format("net.inputs[0].shape", "net(x)"),
    "cnnrun.ort": SESSION.format("cnnrun.ort") + FULL.format("i.shape", RUN),
    "onnxruntime": SESSION.format("onnxruntime") + FULL.format("i.shape", RUN),
}
PICTURE = {
    "python": "print('\"top\"', 0, 0)",
    "cnnrun": "import cnnrun, sys; net = cnnrun.load(sys.argv[1], threads=int(sys.argv[2])); "
              "print('\"top\"', *net.topk(sys.argv[3], 1)[0])",
    "onnxruntime": "from PIL import Image; " + SESSION.format("onnxruntime")
                   + "p = Image.open(sys.argv[3]).convert('RGB').resize(i.shape[:1:-1], Image.Resampling.BILINEAR); "
                     "x = np.asarray(p, 'f').transpose(2, 0, 1)[None]; " + TOLD.format(RUN),
}


def exported(program, folder, net):
    """NET.onnx of the native file."""
    path = os.path.join(folder, net + ".onnx")
    if not os.path.exists(path):
        subprocess.run([program, "export", native(program, folder, net), "-o", path, "-q"], check=True)
    return path


def pythons(args, kind, programs, net):
    """Times whole processes of Python; a line for each library."""
    program, folder = os.path.join(BUILD, "cnnrun"), os.path.join(BUILD, "start")
    path, seen = exported(program, folder, net), {name: [] for name in programs}
    for _ in range(args.runs + 1):
        for name, code in programs.items():
            seen[name].append(once([args.python, "-c", code, path, str(args.threads), args.picture]))
    rows, first = [], next(iter(programs))
    for name, times in seen.items():
        whole, cpu = (sorted(t[i] for t in times[1:]) for i in (1, 4))
        rows.append({"net": net, "threads": args.threads, "of": kind, "python": name, "ms_whole": round(whole[0], 1),
                     "ms_whole_median": round(whole[len(whole) // 2], 1), "ms_cpu": round(cpu[len(cpu) // 2], 1),
                     "mib": round(max(t[2] for t in times), 1)})
    answers = {(line.split()[1], f"{float(line.split()[2]):.2g}")
               for name, times in seen.items() if name != first for _, _, _, line, _ in times}
    if kind == "array" and len(answers) > 1:
        sys.exit(f"{net}: answers differ: {sorted(answers)}")
    for row in rows:
        for of in ("ms_whole", "ms_whole_median", "ms_cpu"):
            row[of.replace("ms_", "ratio_")] = round(row[of] / rows[-1][of], 2)
        print(json.dumps(row) if args.json else
              f"{net} T{args.threads} {kind:8}{row['python']:12} process {row['ms_whole']:6.1f} ms least, {row['ms_whole_median']:6.1f} "
              f"median, processor {row['ms_cpu']:6.1f}: {row['ratio_whole']:4.2f} {row['ratio_whole_median']:4.2f} "
              f"{row['ratio_cpu']:4.2f} of ONNX Runtime's; {row['mib']:5.1f} MiB", flush=True)


def fresh(words, environment):
    """once() in a home folder of its own."""
    with tempfile.TemporaryDirectory() as home:
        return once(words, {**environment, "HOME": home, "XDG_CACHE_HOME": home})


def once(words, environment=os.environ):
    """Milliseconds to the first words and to the end, MiB at most, what was told, milliseconds of the processor."""
    read, write = os.pipe()
    begin = time.perf_counter()
    child = os.posix_spawn(words[0], words, environment, file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)])
    os.close(write)
    line = os.read(read, 1 << 16)
    first = time.perf_counter()
    rest = line
    while rest:
        rest = os.read(read, 1 << 16)
        line += rest
    _, status, usage = os.wait4(child, 0)
    end = time.perf_counter()
    os.close(read)
    if status or b'"top"' not in line:
        sys.exit(f"{' '.join(words)}: status {status}, {line!r}")
    cpu = (usage.ru_utime + usage.ru_stime) * 1e3
    return (first - begin) * 1e3, (end - begin) * 1e3, usage.ru_maxrss / 1024, line.decode(), cpu


def main():
    argv, options = sys.argv[1:], []
    if "--" in argv:
        argv, options = argv[: argv.index("--")], argv[argv.index("--") + 1:]
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("net", nargs="*")
    words.add_argument("--threads", type=int, default=2)
    words.add_argument("--runs", type=int, default=11)
    digit = os.path.join(ROOT, "scripts/nets/digits/three.png")
    words.add_argument("--picture", default=CAT if os.path.exists(CAT) else digit)
    words.add_argument("--program", action="append")
    words.add_argument("--python", help="an interpreter: time it instead of the program")
    words.add_argument("--compiled", action="store_true", help="time compiled models, too")
    words.add_argument("--stored", action="store_true", help="time stored plans, too")
    words.add_argument("--fresh", action="store_true", help="a home folder of its own for each process")
    words.add_argument("--prepare", action="store_true", help="make the files, time nothing")
    words.add_argument("--json", action="store_true")
    args = words.parse_args(argv)
    for net in args.net or ["squeezenet_v1_1"] if args.python else []:
        pythons(args, "array", ARRAY, net)
        pythons(args, "picture", PICTURE, net)
    if args.python:
        return
    rows, plain = [], {**os.environ, "MODEL_CACHE_DISABLE": "1"}
    for i, program in enumerate(args.program or [os.path.join(BUILD, "cnnrun")]):
        for net in args.net or NETS:
            folder = os.path.join(BUILD, "start" if i == 0 else f"start{i + 1}")
            own = ["--threads", str(args.threads), *options]
            path = native(program, folder, net)
            rows.append((program, net, [path, *own], plain, []))
            if args.compiled:
                file = compiled(program, folder, net, own)
                rows.append((program, net + ".cnrp", [file, "--threads", str(args.threads)], plain, []))
            if args.stored:
                own += ["--cache", os.path.join(folder, "plans")]
                subprocess.run([program, "warm", path, "-q", *own], check=True, stdout=subprocess.DEVNULL)
                rows.append((program, net + ", stored", [path, *own], os.environ, []))
    for _ in range(0 if args.prepare else args.runs + 1):
        for program, _, words, environment, seen in rows:
            words = [program, "run", words[0], args.picture, "--json", *words[1:]]
            seen.append((fresh if args.fresh else once)(words, environment))
    for program, net, _, _, seen in rows:
        if not seen:
            continue
        first, whole, mib = (sorted(column) for column in list(zip(*seen[1:]))[:3])
        row = {"net": net, "threads": args.threads, "program": program, "ms_first": round(first[0], 1),
               "ms_first_median": round(first[len(first) // 2], 1), "ms_whole": round(whole[0], 1),
               "ms_cold": round(seen[0][0], 1), "mib": round(mib[-1], 1)}
        print(json.dumps(row) if args.json else
              f"{net:18} T{args.threads}  first result {row['ms_first']:7.1f} ms least, {row['ms_first_median']:7.1f} median; "
              f"process {row['ms_whole']:7.1f}, cold {row['ms_cold']:6.0f} ms; {row['mib']:7.1f} MiB  "
              f"{program if args.program else ''}", flush=True)


if __name__ == "__main__":
    main()
