import cnnrun.CnnrunException;
import cnnrun.DType;
import cnnrun.Engine;
import cnnrun.Net;
import cnnrun.Port;
import cnnrun.Session;
import cnnrun.Tensor;
import cnnrun.Top;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import network.CNNdroid;

/**
 * Prints TAP. Arguments: the folder scripts/nets, an empty folder, what `cnnrun run` said of
 * three.png.
 */
final class NetsTest {
    private static int count;
    private static boolean failed;

    private interface Work {
        void run() throws Exception;
    }

    private static void ok(boolean good, String name) {
        count++;
        failed |= !good;
        System.out.println((good ? "ok " : "not ok ") + count + " - " + name);
    }

    private static void throwsText(Class<?> type, String part, String name, Work work) {
        try {
            work.run();
            ok(false, name + ": nothing was thrown");
        } catch (Exception e) {
            boolean good = type.isInstance(e) && e.getMessage().contains(part);
            ok(good, name);
            if (!good) System.out.println("# " + e);
        }
    }

    private static Tensor random(int seed, long... shape) {
        Random random = new Random(seed);
        Tensor tensor = Tensor.allocate(DType.F32, shape);
        for (int i = 0; i < tensor.floats().capacity(); i++)
            tensor.floats().put(i, random.nextFloat());
        return tensor;
    }

    private static float[] values(Tensor tensor) {
        float[] all = new float[tensor.floats().capacity()];
        tensor.floats().get(all);
        return all;
    }

    private static void answers(Engine engine, Path nets, String program) {
        String three = nets.resolve("digits/three.png").toString();
        try (Net net = engine.load(nets.resolve("lenet5.lua").toString())) {
            Port in = net.inputs().get(0);
            ok(in.name.equals("data") && in.type == DType.F32 &&
                   Arrays.equals(in.shape(), new long[] {-1, 1, 28, 28}),
               "an input: " + in);
            ok(net.outputs().get(0).toString().equals("prob F32 [-1, 10]"), "an output");
            Tensor scores = net.run(three);
            Matcher row =
                Pattern.compile("\"label\":\"(\\w+)\",\"score\":([^}]+)").matcher(program);
            int same = 0;
            for (Top top : net.topk(scores, 5)) {
                if (row.find() && row.group(1).equals(top.label) &&
                    (float)Double.parseDouble(row.group(2)) == top.score)
                    same++;
            }
            ok(same == 5, "five classes and scores are the program's");
            ok(net.topk(scores, 100).size() == 10 && net.topk(scores, -1).isEmpty(),
               "at most all classes");
            Tensor x = random(1, 4, 1, 28, 28);
            Tensor[] y = net.run(x);
            ok(Arrays.equals(y[0].shape(), new long[] {4, 10}), "a batch of 4");
            try (Session session = net.session(new long[] {4, 1, 28, 28})) {
                ok(Arrays.equals(values(session.run(x)[0]), values(y[0])),
                   "a session says the same");
                Tensor into = Tensor.allocate(DType.F32, 4, 10);
                session.run(new Tensor[] {x}, new Tensor[] {into});
                ok(Arrays.equals(values(into), values(y[0])), "into the caller's memory");
            }
            ByteBuffer part = ByteBuffer.allocateDirect(8 + 4 * 784).order(ByteOrder.nativeOrder());
            part.position(8);
            part.asFloatBuffer().put(values(random(1, 1, 1, 28, 28)));
            Tensor sliced = new Tensor(DType.F32, part, 1, 1, 28, 28);
            ok(Arrays.equals(values(net.run(sliced)[0]),
                             values(net.run(random(1, 1, 1, 28, 28))[0])),
               "a buffer from its position on");
        }
    }

    private static void errors(Engine engine, Path nets, Path work) {
        String lenet = nets.resolve("lenet5.lua").toString();
        Class<?> own = CnnrunException.class;
        Class<?> argument = IllegalArgumentException.class;
        throwsText(own, "missing.cnr", "a file that is not there",
                   () -> engine.load("missing.cnr"));
        throwsText(own, "no\u00dcde\ud83d\ude00.cnr", "names in UTF-8",
                   () -> engine.load("no\u00dcde\ud83d\ude00.cnr"));
        throwsText(argument, "character of 0", "a name with a 0", () -> engine.load("a\0b"));
        throwsText(own, "weigths=x: expected NAME=VALUE", "an unknown option",
                   () -> engine.load(lenet, "weigths=x"));
        throwsText(own, "memory_bound=-1: expected a whole number", "no number",
                   () -> engine.load(lenet, "memory_bound=-1"));
        throwsText(own, "threads=99999999999", "too large a number",
                   () -> Engine.open("threads=99999999999"));
        throwsText(own, "nowhere", "a folder of plugins",
                   () -> Engine.open("plugin_dirs=/nowhere"));
        try (Net net = engine.load(lenet)) {
            Tensor x = random(1, 1, 1, 28, 28);
            throwsText(own, "", "a shape that does not fit",
                       () -> net.run(random(1, 1, 1, 27, 28)));
            throwsText(own, "", "too many inputs", () -> net.run(x, x));
            throwsText(own, "0 outputs; expected 1", "no place for an output",
                       () -> net.run(new Tensor[] {x}, new Tensor[0]));
            throwsText(own, "output 0 is f32 with 10 elements", "a place of another size",
                       ()
                           -> net.run(new Tensor[] {x},
                                      new Tensor[] {Tensor.allocate(DType.F32, 1, 9)}));
            throwsText(NullPointerException.class, "null", "no tensor",
                       () -> net.run(new Tensor[] {null}));
            throwsText(own, "none.png", "no picture", () -> net.run("none.png"));
            throwsText(own, "", "a shape of a session that does not fit",
                       () -> net.session(new long[] {1, 3, 28, 28}));
            throwsText(own, "9 dimensions", "too many dimensions", () -> net.session(new long[9]));
            try (Session session = net.session()) {
                throwsText(own, "0 inputs; expected 1", "a session without input",
                           () -> session.run());
                throwsText(own, "", "another batch", () -> session.run(random(1, 2, 1, 28, 28)));
            }
            ByteBuffer odd = ByteBuffer.allocateDirect(4 * 784 + 1).order(ByteOrder.nativeOrder());
            odd.position(1);
            throwsText(argument, "multiple", "elements at an odd address",
                       () -> net.run(new Tensor(DType.F32, odd, 1, 1, 28, 28)));
            ByteBuffer fixed = ByteBuffer.allocateDirect(40).asReadOnlyBuffer();
            Tensor[] scores = {
                new Tensor(DType.F32, fixed.order(ByteOrder.nativeOrder()), 1, 10)};
            throwsText(argument, "read-only", "an output over a read-only buffer",
                       () -> net.run(new Tensor[] {random(1, 1, 1, 28, 28)}, scores));
        }
        throwsText(argument, "allocateDirect", "a buffer on the heap",
                   () -> new Tensor(DType.F32, ByteBuffer.allocate(4), 1));
        throwsText(argument, "nativeOrder", "a buffer in the other byte order",
                   () -> new Tensor(DType.F32, ByteBuffer.allocateDirect(4), 1));
        throwsText(argument, "takes 8 bytes, the buffer has 4", "a buffer that is too small",
                   ()
                       -> new Tensor(DType.F32,
                                     ByteBuffer.allocateDirect(4).order(ByteOrder.nativeOrder()),
                                     2));
        throwsText(argument, "too large", "a shape that is too large",
                   () -> Tensor.allocate(DType.F32, Long.MAX_VALUE, 2));
        throwsText(argument, "a dimension of -1", "a negative dimension",
                   () -> Tensor.allocate(DType.F32, -1));
    }

    private static void closing(Path nets) {
        String lenet = nets.resolve("lenet5.lua").toString();
        Engine engine = Engine.open();
        Net net = engine.load(lenet);
        Session session = net.session();
        engine.close();
        net.close();
        ok(session.run(random(1, 1, 1, 28, 28)).length == 1, "a session outlives its closed net");
        session.close();
        session.close();
        throwsText(IllegalStateException.class, "Session is closed", "a closed session",
                   () -> session.run(random(1, 1, 1, 28, 28)));
        throwsText(IllegalStateException.class, "Net is closed", "a closed net",
                   () -> net.run("three.png"));
        throwsText(IllegalStateException.class, "Engine is closed", "a closed engine",
                   () -> engine.load(lenet));
    }

    /** Two sessions and the net's own run() on four threads, closed beneath them. */
    private static void threads(Engine engine, Path nets) throws Exception {
        Net net = engine.load(nets.resolve("lenet5.lua").toString());
        Session[] sessions = {net.session(), net.session()};
        Tensor x = random(2, 1, 1, 28, 28);
        float[] want = values(net.run(x)[0]);
        AtomicInteger wrong = new AtomicInteger();
        AtomicInteger right = new AtomicInteger();
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            Session own = i < 2 ? sessions[i] : null;
            threads[i] = new Thread(() -> {
                try {
                    while (true) {
                        Tensor y = own == null ? net.run(x)[0] : own.run(x)[0];
                        (Arrays.equals(values(y), want) ? right : wrong).incrementAndGet();
                    }
                } catch (IllegalStateException closed) { return; }
            });
            threads[i].start();
        }
        while (right.get() + wrong.get() < 4000) Thread.yield();
        for (Session session : sessions) session.close();
        net.close();
        for (Thread thread : threads) thread.join();
        ok(wrong.get() == 0, "four threads get the same answers, until all is closed beneath them");
    }

    private static long residentPages() throws IOException {
        String text =
            new String(Files.readAllBytes(Paths.get("/proc/self/statm")), StandardCharsets.UTF_8);
        return Long.parseLong(text.split(" ")[1]);
    }

    /** The heap has its size from the start (java.t), so that what grows is C. */
    private static void loads(Engine engine, Path file) throws Exception {
        Tensor x = random(3, 1, 1, 28, 28);
        Tensor[] in = {x};
        Tensor[] out = {Tensor.allocate(DType.F32, 1, 10)};
        long before = 0;
        for (int i = 0; i < 11000; i++) {
            if (i == 1000) before = residentPages();
            try (Net net = engine.load(file.toString())) {
                if (i % 10 == 0) net.run(in, out);
                if (i % 100 == 0) net.session().close();
            }
            if (i % 10 == 0) {
                try {
                    engine.load("missing.cnr");
                } catch (CnnrunException e) { continue; }
            }
        }
        long grown = (residentPages() - before) * 4;
        ok(grown < 6 * 1024, "10,000 loads: " + grown + " kB more");
    }

    private static void cnndroid(Path net, Path nets) throws Exception {
        float[][][][] batch = new float[2][1][28][28];
        Tensor x = random(4, 2, 1, 28, 28);
        int at = 0;
        for (float[][][] picture : batch) {
            for (float[] row : picture[0]) {
                for (int i = 0; i < row.length; i++) row[i] = x.floats().get(at++);
            }
        }
        try (Engine engine = Engine.open(); Net own = engine.load(net.toString());
             CNNdroid droid = new CNNdroid(null, net.toString())) {
            float[] want = values(own.run(x)[0]);
            float[][] got = (float[][])droid.compute(batch);
            ok(got.length == 2 && Arrays.equals(got[0], Arrays.copyOf(want, 10)) &&
                   Arrays.equals(got[1], Arrays.copyOfRange(want, 10, 20)),
               "CNNdroid's compute of a batch");
            float[][] single = (float[][])droid.compute(batch[0]);
            ok(single.length == 1 && single[0].length == 10, "and of one picture");
            ok(droid.compute("picture") == null, "and of what is no picture");
            batch[1][0][3] = new float[27];
            throwsText(IllegalArgumentException.class, "27 columns; expected 28",
                       "rows of two lengths", () -> droid.compute(batch));
            throwsText(IllegalArgumentException.class, "no picture", "an empty batch",
                       () -> droid.compute(new float[0][][][]));
        }
        throwsText(CnnrunException.class, "none.txt", "a NetFile that is not there",
                   () -> new CNNdroid(null, "none.txt"));
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("open")) {
            Engine.open().close();
            return;
        }
        Path nets = Paths.get(args[0]);
        Path work = Paths.get(args[1]);
        try (Engine engine = Engine.open("threads=1")) {
            answers(engine, nets, args[2]);
            errors(engine, nets, work);
            threads(engine, nets);
            loads(engine, work.resolve("lenet.cnr"));
        }
        closing(nets);
        cnndroid(work.resolve("lenet.cnr"), nets);
        System.out.println("1.." + count);
        System.exit(failed ? 1 : 0);
    }
}
