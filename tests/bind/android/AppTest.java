package cnnrun.app;

import cnnrun.Engine;
import cnnrun.Net;
import cnnrun.Tensor;
import cnnrun.Top;
import java.awt.image.BufferedImage;
import java.io.File;
import java.io.IOException;
import java.io.Reader;
import java.io.StringReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import javax.imageio.ImageIO;

/**
 * Prints TAP. Arguments: folder of plugins, the top of the source, an empty folder; then, for Tiny
 * YOLO, a .cnr, a picture of its size, and lines "CLASS SCORE LEFT TOP RIGHT BOTTOM" that `cnnrun
 * detect` finds there.
 */
public final class AppTest {
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

    private static void refuses(String part, String name, Work work) {
        try {
            work.run();
            ok(false, name + ": nothing was thrown");
        } catch (Exception e) {
            boolean good = String.valueOf(e.getMessage()).contains(part);
            ok(good, name);
            if (!good) System.out.println("# " + e);
        }
    }

    private static boolean near(double a, double b) { return Math.abs(a - b) <= 1e-6; }

    private static int[] pixels(File picture) throws IOException {
        BufferedImage image = ImageIO.read(picture);
        int width = image.getWidth();
        return image.getRGB(0, 0, width, image.getHeight(), null, 0, width);
    }

    /** Means of squares of a square grey picture, so that 28x28 are left. */
    private static int[] digit(Path picture) throws IOException {
        int[] all = pixels(picture.toFile());
        int size = (int)Math.sqrt(all.length);
        int side = size / 28;
        int[] out = new int[28 * 28];
        for (int i = 0; i < out.length; i++) {
            int sum = 0;
            for (int k = 0; k < side * side; k++)
                sum += all[(i / 28 * side + k / side) * size + i % 28 * side + k % side] & 255;
            out[i] = 0x010101 * (sum / (side * side));
        }
        return out;
    }

    private static void preprocess() throws IOException {
        int[] one = {0xff102030};
        java.nio.FloatBuffer to = java.nio.FloatBuffer.allocate(3);
        new Preprocess(1, 1, "rgb", 0.5f, 1, 2, 3).fill(one, to);
        ok(Arrays.equals(to.array(), new float[] {7.5f, 15, 22.5f}), "pixels as planes: rgb");
        String text = "width=1\nheight=1\nchannels=bgr\nmean=1, 2, 3\nscale=2\n";
        Preprocess.read(new StringReader(text)).fill(one, to);
        ok(Arrays.equals(to.array(), new float[] {94, 60, 26}), "bgr, from a file");
        java.nio.FloatBuffer gray = java.nio.FloatBuffer.allocate(1);
        new Preprocess(1, 1, "gray", 1).fill(one, gray);
        ok(Math.abs(gray.get(0) - (.299f * 16 + .587f * 32 + .114f * 48)) < 1e-4, "gray");
        refuses("expected 4 for 12", "another size is refused",
                () -> new Preprocess(2, 2, "rgb", 1).fill(one, to));
        refuses("expected rgb, bgr or gray", "other channels",
                () -> new Preprocess(2, 2, "rgba", 1));
        refuses("height is missing", "a file without height",
                () -> Preprocess.read(new StringReader("width=3")));
        refuses("2 means; expected 3", "too few means", () -> new Preprocess(1, 1, "rgb", 1, 1, 2));
    }

    private static Frames.Plane plane(int row, int pixel, int... bytes) {
        ByteBuffer data = ByteBuffer.allocateDirect(bytes.length);
        for (int b : bytes) data.put((byte)b);
        return new Frames.Plane(data, row, pixel);
    }

    private static void frames() {
        Frames.Plane luma = plane(4, 1, 0, 255, 76, 9, 150, 29, 128, 9); /* three of four count */
        Frames.Plane u = plane(4, 2, 128, 0, 128, 0);
        Frames.Plane v = plane(4, 2, 128, 0, 128, 0);
        int[] gray = Frames.argb(luma, u, v, 3, 2);
        ok(gray[0] == 0xff000000 && gray[1] == 0xffffffff && gray[2] == 0xff4c4c4c &&
               gray[5] == 0xff808080,
           "a frame without colour: strides of rows and pixels");
        int red =
            Frames.argb(plane(1, 1, 76), plane(1, 1, 85), plane(1, 1, 255), 1, 1)[0] & 0xffffff;
        int blue =
            Frames.argb(plane(1, 1, 29), plane(1, 1, 255), plane(1, 1, 107), 1, 1)[0] & 0xffffff;
        ok((red >> 16) > 250 && (red & 0xffff) < 0x0303 && (blue & 255) > 250 &&
               (blue >> 8) < 0x0303,
           String.format("red and blue of JPEG: %06x %06x", red, blue));
        int[] six = {1, 2, 3, 4, 5, 6};
        ok(Arrays.equals(Frames.turned(six, 3, 2, 90), new int[] {4, 1, 5, 2, 6, 3}) &&
               Arrays.equals(Frames.turned(six, 3, 2, 180), new int[] {6, 5, 4, 3, 2, 1}) &&
               Arrays.equals(Frames.turned(six, 3, 2, 270), new int[] {3, 6, 2, 5, 1, 4}) &&
               Arrays.equals(Frames.turned(six, 3, 2, 0), six),
           "turned by 90, 180, 270 and 0 degrees");
    }

    private static void classify(Engine engine, Path nets) throws IOException {
        try (Net net = engine.load(nets.resolve("lenet5.cnr").toString())) {
            Preprocess size = new Preprocess(28, 28, "gray", 1 / 255f);
            Classifier classifier = new Classifier(net, size);
            List<Top> best = classifier.best(digit(nets.resolve("digits/three.png")), 5);
            ok(best.size() == 5 && best.get(0).index == 3 && best.get(0).score > 0.999,
               "a picture's five best classes, of the real net: " + best.get(0));
            best = classifier.best(digit(nets.resolve("digits/seven.png")), 1);
            ok(best.size() == 1 && best.get(0).index == 7, "and of a second picture");
            ok(Classifier.lines(best).matches("(7|class 7|seven) \\d+\\.\\d%\\R"),
               "as a line: " + Classifier.lines(best).trim());
            refuses("pixels for", "pixels of another size", () -> classifier.best(new int[9], 1));
        }
    }

    private static void detect(Engine engine, String[] words) throws IOException {
        try (Net net = engine.load(words[3])) {
            Preprocess size = new Preprocess(224, 224, "rgb", 1 / 255f);
            Tensor out = new Classifier(net, size).run(pixels(new File(words[4])))[0];
            Yolo yolo = new Yolo(20, 1.08f, 1.19f, 3.42f, 4.41f, 6.63f, 11.38f, 9.42f, 5.11f,
                                 16.62f, 10.52f);
            List<Box> boxes = yolo.boxes(out, 224, 224, 0.3f, 0.45f);
            double worst = boxes.size() == words.length - 5 ? 0 : Double.POSITIVE_INFINITY;
            for (int i = 0; i < Math.min(boxes.size(), words.length - 5); i++)
                worst = Math.max(worst, apart(boxes.get(i), words[5 + i].split(" ")));
            ok(words.length > 5 && worst < 0.2,
               boxes.size() + " boxes, as cnnrun detect has them; at most " + worst + " apart");
            refuses("expected 1x30x", "another net's output",
                    () -> new Yolo(1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5).boxes(out, 9, 9, 0, 1));
        }
    }

    /** Edges in pixels; cnnrun detect cuts them at the picture's. */
    private static double apart(Box box, String[] row) {
        if (box.kind != Integer.parseInt(row[0])) return Double.POSITIVE_INFINITY;
        double worst = 100 * Math.abs(box.score - Double.parseDouble(row[1]));
        float[] edges = {box.left, box.top, box.right, box.bottom};
        for (int i = 0; i < 4; i++)
            worst = Math.max(worst, Math.abs(Math.max(0, Math.min(224, edges[i])) -
                                             Double.parseDouble(row[2 + i])));
        return worst;
    }

    /** Noise, and in it a square of 32 pixels of its own at x, y. */
    private static int[] scene(int x, int y) {
        Random ground = new Random(1);
        Random square = new Random(2);
        int[] out = new int[160 * 120];
        for (int i = 0; i < out.length; i++) out[i] = 0x010101 * (96 + ground.nextInt(64));
        for (int i = 0; i < 32 * 32; i += 16) { /* blocks of 4x4: what survives a blur */
            int shade = 0x010101 * (square.nextInt(2) * 255);
            for (int k = 0; k < 16; k++)
                out[(y + i / 16 / 8 * 4 + k / 4) * 160 + x + i / 16 % 8 * 4 + k % 4] = shade;
        }
        return out;
    }

    private static void track(Engine engine) {
        try (Tracker tracker = new Tracker(engine, 160, 120, "seed=1")) {
            tracker.start(scene(30, 40), new Box(7, 1, 30, 40, 62, 72));
            Box at = null;
            float worst = 1;
            for (int i = 1; i <= 12; i++) {
                at = tracker.next(scene(30 + 3 * i, 40 + i));
                Box want = new Box(7, 1, 30 + 3 * i, 40 + i, 62 + 3 * i, 72 + i);
                worst = at == null ? 0 : Math.min(worst, at.overlap(want));
            }
            ok(worst > 0.7 && at != null && at.kind == 7, "TLD follows a square: " + worst);
            refuses("expected 160x120", "a picture of another size",
                    () -> tracker.next(new int[4]));
        }
        refuses("no option 'sede'", "the tracker's own message",
                () -> new Tracker(engine, 9, 9, "sede=1"));
        refuses("no plugin brings", "an object that is not there", () -> engine.make("tdl"));
    }

    private static double[] percent(Path trace) throws IOException {
        try (Reader in = Files.newBufferedReader(trace)) {
            double[] loads = Table.read(in).column("gpu.load");
            return Arrays.stream(loads).filter(v -> !Double.isNaN(v)).map(v -> 100 * v).toArray();
        }
    }

    private static void loads(Path traces) throws IOException {
        ok(LoadWatch.distance(new double[] {1, 2, 3}, new double[] {1, 1, 2, 3, 3}) == 0 &&
               LoadWatch.distance(new double[] {1, 2, 3}, new double[] {2, 2, 5}) == 3,
           "distances by dynamic time warping, counted by hand");
        double[] template;
        try (Reader in = Files.newBufferedReader(traces.resolve("loop4.csv"))) {
            template = LoadWatch.template(Table.read(in));
        }
        ok(template.length == 40, "a template of a recording");
        for (String name : new String[] {"loop1", "loop2", "loop3", "mail", "idle"}) {
            LoadWatch watch = new LoadWatch(template, 40, 739);
            int compared = 0;
            int inference = 0;
            for (double load : percent(traces.resolve(name + ".csv"))) {
                if (!watch.add(load)) continue;
                compared++;
                inference += watch.isInference() ? 1 : 0;
            }
            ok(compared > 3 && inference == (name.startsWith("loop") ? compared : 0),
               name + ": " + inference + " of " + compared + " windows are inference");
        }
        refuses("ends in .load", "a recording without load",
                () -> LoadWatch.template(Table.read(new StringReader("time,watts\n1,2\n"))));
    }

    private static void write(File root, String name, String text) throws IOException {
        File file = new File(root, name);
        file.getParentFile().mkdirs();
        Files.write(file.toPath(), text.getBytes(StandardCharsets.ISO_8859_1));
    }

    private static void cpuLoad(File root) throws IOException {
        write(root, "proc/stat", "cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 1 1 1 1\n");
        CpuLoad machine = new CpuLoad(root, 2);
        ok(machine.wholeMachine() && Double.isNaN(machine.next(0)), "a first load is unknown");
        write(root, "proc/stat", "cpu  40 0 30 120 10 0 0 0 0 0\ncpu0 1 1 1 1\n");
        ok(near(machine.next(1), 0.5), "the machine's load: waiting for a disk is no work");
        write(root, "proc/stat", "nothing\n");
        refuses("begins with cpu", "another file", () -> machine.next(2));

        File closed = new File(root, "closed"); /* as Android has it: no /proc/stat */
        String name = "77 (a (b) c) S 1 1 1 0 -1 4 0 0 0 0 ";
        write(closed, "proc/self/stat", name + "100 50 0 0\n");
        CpuLoad self = new CpuLoad(closed, 2);
        ok(!self.wholeMachine() && Double.isNaN(self.next(10)), "without /proc/stat");
        write(closed, "proc/self/stat", name + "140 60 0 0\n");
        ok(near(self.next(11), 0.25), "the process's own: half a second of two cores' second");
        ok(Double.isNaN(self.next(11)), "no time went by");
        CpuLoad real = new CpuLoad();
        real.next(System.nanoTime() * 1e-9);
        long until = System.nanoTime() + 60000000;
        while (System.nanoTime() < until) continue;
        double load = real.next(System.nanoTime() * 1e-9);
        ok(load > 0 && load <= 1, "this machine's load: " + load);
    }

    private static void power(Path file) throws IOException {
        ok(near(PowerRecord.batteryWatts(-500000, 4000), 2), "half an ampere at 4 V");
        PowerRecord record = new PowerRecord("battery", "gpu");
        record.add(0, 2, 1);
        record.add(1, 4, Double.NaN);
        record.add(3, 2, 1);
        ok(near(record.joules(0), 9) && record.joules(1) == 0,
           "energy is the area below the curve; not between readings that lack");
        refuses("after 3.0 s", "time goes on", () -> record.add(3, 1, 1));
        refuses("1 readings; expected 2", "readings of each domain", () -> record.add(4, 1));
        float[] lines = PowerRecord.polyline(record.curve(0, 9), 300, 100);
        ok(Arrays.equals(lines, new float[] {0, 50, 100, 0, 100, 0, 300, 50}), "a curve's lines");
        ok(PowerRecord.polyline(record.curve(1, 9), 9, 9).length == 0, "none beside a gap");
        ok(record.curve(0, 2)[0] == 1, "the last readings alone");
        Files.write(file, record.csv().getBytes(StandardCharsets.UTF_8));
        try (Reader in = Files.newBufferedReader(file)) {
            PowerRecord again = PowerRecord.of(Table.read(in));
            ok(again.csv().equals(record.csv()) && again.domains().get(1).equals("gpu"),
               "what is written is read");
        }
        refuses("line 2 has 1 cells; expected 2", "a row that is short",
                () -> Table.read(new StringReader("time_s,a_W\n1\n")));
        refuses("line 3: 'x'; expected a number", "a cell that is no number",
                () -> Table.read(new StringReader("time_s,a_W\n1,2\n2,x\n")));
    }

    public static void main(String[] words) throws Exception {
        Path root = Paths.get(words[1]);
        preprocess();
        frames();
        loads(root.resolve("governors/traces"));
        cpuLoad(new File(words[2], "root"));
        power(Paths.get(words[2], "power.csv"));
        List<String> options = Plugins.options(new File(words[0]));
        ok(options.size() > 2 && options.get(1).contains("libcnnrun-plugin-"),
           "plugins of a folder: " + (options.size() - 1));
        refuses("no libcnnrun-plugin-*.so", "a folder without any",
                () -> Plugins.options(root.toFile()));
        options.add("cache=" + words[2]);
        try (Engine engine = Engine.open(options.toArray(new String[0]))) {
            track(engine);
            classify(engine, root.resolve("scripts/nets"));
            if (words.length > 3) detect(engine, words);
        }
        System.out.println("1.." + count);
        System.exit(failed ? 1 : 0);
    }
}
