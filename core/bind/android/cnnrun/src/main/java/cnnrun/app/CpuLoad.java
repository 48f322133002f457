package cnnrun.app;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;

/**
 * The load of the processors, from 0 to 1. Since Android 8, apps can't read /proc/stat; the load of
 * this process is given instead.
 */
public final class CpuLoad {
    private static final double TICKS_PER_SECOND = 100; // of the kernel's clock, USER_HZ
    private final File stat;
    private final File self;
    private final int cores;
    private double busy = Double.NaN;
    private double all;

    public CpuLoad() { this(new File("/"), Runtime.getRuntime().availableProcessors()); }

    CpuLoad(File root, int cores) {
        stat = new File(root, "proc/stat");
        self = new File(root, "proc/self/stat");
        this.cores = cores;
    }

    /** True: next() gives the load of the whole machine; false: that of this process. */
    public boolean wholeMachine() { return stat.canRead(); }

    /**
     * The load since the previous call; NaN in the first call, or if no time has passed.
     *
     * @param seconds time now, by any clock
     */
    public double next(double seconds) throws IOException {
        double[] now = wholeMachine() ? machine() : process(seconds);
        double load = now[1] > all ? (now[0] - busy) / (now[1] - all) : Double.NaN;
        busy = now[0];
        all = now[1];
        return Double.isNaN(load) ? load : Math.max(0, Math.min(1, load));
    }

    /** Line "cpu user nice system idle iowait irq softirq steal ...", in ticks. */
    private double[] machine() throws IOException {
        String[] words = text(stat).split("\n", 2)[0].trim().split("\\s+");
        if (words.length < 5 || !words[0].equals("cpu"))
            throw new IOException(stat + ": expected a line that begins with cpu");
        double sum = 0;
        for (int i = 1; i < Math.min(words.length, 9); i++) sum += Double.parseDouble(words[i]);
        double idle = Double.parseDouble(words[4]);
        if (words.length > 5) idle += Double.parseDouble(words[5]);
        return new double[] {sum - idle, sum};
    }

    /** Reads fields 14 and 15, user and system ticks. The name before them may contain spaces. */
    private double[] process(double seconds) throws IOException {
        String line = text(self);
        String[] words = line.substring(line.lastIndexOf(')') + 1).trim().split("\\s+");
        if (words.length < 13) throw new IOException(self + ": expected 15 fields");
        double ticks = Double.parseDouble(words[11]) + Double.parseDouble(words[12]);
        return new double[] {ticks, seconds * cores * TICKS_PER_SECOND};
    }

    private static String text(File file) throws IOException {
        return new String(Files.readAllBytes(file.toPath()), StandardCharsets.ISO_8859_1);
    }
}
