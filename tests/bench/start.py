#!/usr/bin/env python3
"""From nothing to the first result, and the most memory on the way: whole processes of `cnnrun run NET.cnr PICTURE`.

    python3 tests/bench/start.py [--threads N] [--runs N] [--picture FILE] [--program FILE] [--json] [NET...] [-- OPTIONS]

wants build/cnnrun. Each NET (alexnet squeezenet_v1_1 resnet50 vgg16) becomes a native file once, with made-up weights, in
build/start. The page cache is warm as an earlier run leaves it: the files are dropped from it, and each program runs
once, which is not counted (ms_cold); a file that was just written lies there in smaller pieces, and takes longer. Then all
take turns. ms_first: from the fork until the answer's line is there; ms_whole: until the process has ended. mib: VmHWM,
which the system tells of a child as ru_maxrss; this process, which the child begins as a copy of, takes less than any of
them. A second program beside it (--program, twice) makes its own files and takes turns too.
"""
import argparse, json, os, subprocess, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("CNNRUN_BUILD", os.path.join(ROOT, "build"))
CAT = os.path.join(ROOT, "../shared/data/images/cat.jpg")
NETS = ["alexnet", "squeezenet_v1_1", "resnet50", "vgg16"]


def native(program, folder, net):
    path = os.path.join(folder, net + ".cnr")
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        subprocess.run([program, "convert", os.path.join(ROOT, "scripts/nets", net + ".lua"), "--weights", "random:1",
                        "-o", path, "-q"], check=True)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path


def once(words):
    """Milliseconds to the first line and to the end, MiB at most."""
    read, write = os.pipe()
    begin = time.perf_counter()
    child = os.posix_spawn(words[0], words, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)])
    os.close(write)
    line = os.read(read, 1 << 16)
    first = time.perf_counter()
    while os.read(read, 1 << 16):
        pass
    _, status, usage = os.wait4(child, 0)
    end = time.perf_counter()
    os.close(read)
    if status or b'"top"' not in line:
        sys.exit(f"{' '.join(words)}: status {status}, {line!r}")
    return (first - begin) * 1e3, (end - begin) * 1e3, usage.ru_maxrss / 1024


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
    words.add_argument("--prepare", action="store_true", help="make the files, time nothing")
    words.add_argument("--json", action="store_true")
    args = words.parse_args(argv)
    rows = []
    for i, program in enumerate(args.program or [os.path.join(BUILD, "cnnrun")]):
        for net in args.net or NETS:
            folder = os.path.join(BUILD, "start" if i == 0 else f"start{i + 1}")
            rows.append((program, net, native(program, folder, net), []))
    for _ in range(0 if args.prepare else args.runs + 1):
        for program, _, path, seen in rows:
            seen.append(once([program, "run", path, args.picture, "--json", "--threads", str(args.threads), *options]))
    for program, net, _, seen in rows:
        if not seen:
            continue
        first, whole, mib = (sorted(column) for column in zip(*seen[1:]))
        row = {"net": net, "threads": args.threads, "program": program, "ms_first": round(first[0], 1),
               "ms_first_median": round(first[len(first) // 2], 1), "ms_whole": round(whole[0], 1),
               "ms_cold": round(seen[0][0], 1), "mib": round(mib[-1], 1)}
        print(json.dumps(row) if args.json else
              f"{net:18} T{args.threads}  first result {row['ms_first']:7.1f} ms least, {row['ms_first_median']:7.1f} median; "
              f"process {row['ms_whole']:7.1f}, cold {row['ms_cold']:6.0f} ms; {row['mib']:7.1f} MiB  "
              f"{program if args.program else ''}", flush=True)


if __name__ == "__main__":
    main()
