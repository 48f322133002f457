package cnnrun.app;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Power of domains over time. csv() has the columns of {@code cnnrun energy log --csv}, so that
 * {@code cnnrun power} draws what a phone recorded.
 */
public final class PowerRecord {
    private final String[] domains;
    private final double[] joules;
    private final double[] last;
    private final List<double[]> rows = new ArrayList<>();

    public PowerRecord(String... domains) {
        this.domains = domains.clone();
        joules = new double[domains.length];
        last = new double[domains.length];
    }

    /** Makes a record from a table: a domain NAME for each column NAME_W. */
    public static PowerRecord of(Table table) {
        List<String> found = new ArrayList<>();
        for (String name : table.names())
            if (name.endsWith("_W")) found.add(name.substring(0, name.length() - 2));
        PowerRecord record = new PowerRecord(found.toArray(new String[0]));
        double[] seconds = table.column("time_s");
        if (seconds == null) throw new IllegalArgumentException("no column time_s");
        double[][] columns = new double[found.size()][];
        for (int d = 0; d < columns.length; d++) columns[d] = table.column(found.get(d) + "_W");
        for (int i = 0; i < seconds.length; i++) {
            double[] watts = new double[columns.length];
            for (int d = 0; d < watts.length; d++) watts[d] = columns[d][i];
            record.add(seconds[i], watts);
        }
        return record;
    }

    /**
     * Watts from the readings of Android's BatteryManager. The sign of a discharging current
     * differs between phones, so its absolute value is used, and no charger may be connected.
     */
    public static double batteryWatts(long microamperes, int millivolts) {
        return Math.abs(microamperes) * 1e-6 * millivolts * 1e-3;
    }

    /** Adds one reading of each domain; NaN: it could not be read. Seconds must rise. */
    public void add(double seconds, double... watts) {
        if (watts.length != domains.length)
            throw new IllegalArgumentException(watts.length + " readings; expected " +
                                               domains.length);
        double before = rows.isEmpty() ? seconds : rows.get(rows.size() - 1)[0];
        if (!rows.isEmpty() && !(seconds > before))
            throw new IllegalArgumentException(seconds + " s after " + before + " s");
        double[] row = new double[1 + 2 * domains.length];
        row[0] = seconds;
        for (int d = 0; d < domains.length; d++) {
            double mean = rows.isEmpty() ? 0 : (watts[d] + last[d]) / 2;
            if (!Double.isNaN(mean)) joules[d] += mean * (seconds - before);
            last[d] = watts[d];
            row[1 + 2 * d] = watts[d];
            row[2 + 2 * d] = joules[d];
        }
        rows.add(row);
    }

    public int size() { return rows.size(); }

    public List<String> domains() { return Arrays.asList(domains); }

    /** Energy of a domain in J since the first reading, by the trapezoidal rule. */
    public double joules(int domain) { return joules[domain]; }

    /** Alternating seconds and watts of a domain's last n readings, for a curve. */
    public double[] curve(int domain, int n) {
        int first = Math.max(0, rows.size() - n);
        double[] out = new double[2 * (rows.size() - first)];
        for (int i = first; i < rows.size(); i++) {
            out[2 * (i - first)] = rows.get(i)[0];
            out[2 * (i - first) + 1] = rows.get(i)[1 + 2 * domain];
        }
        return out;
    }

    /**
     * Line segments x0, y0, x1, y1, ... of a curve in a rectangle of this size. 0 W is at its lower
     * edge, the maximum at its upper edge. Readings that are NaN leave a gap.
     */
    public static float[] polyline(double[] curve, int width, int height) {
        int n = curve.length / 2;
        double most = 0;
        for (int i = 0; i < n; i++)
            if (curve[2 * i + 1] > most) most = curve[2 * i + 1];
        double span = n < 2 ? 0 : curve[2 * n - 2] - curve[0];
        float[] lines = new float[4 * Math.max(0, n - 1)];
        int used = 0;
        for (int i = 1; i < n && span > 0 && most > 0; i++) {
            if (Double.isNaN(curve[2 * i - 1]) || Double.isNaN(curve[2 * i + 1])) continue;
            for (int end = i - 1; end <= i; end++) {
                lines[used++] = (float)((curve[2 * end] - curve[0]) / span * width);
                lines[used++] = (float)((1 - curve[2 * end + 1] / most) * height);
            }
        }
        return Arrays.copyOf(lines, used);
    }

    public String csv() {
        StringBuilder text = new StringBuilder("time_s");
        for (String d : domains) text.append(',').append(d).append("_W,").append(d).append("_J");
        for (double[] row : rows) {
            text.append('\n').append(cell(row[0]));
            for (int i = 1; i < row.length; i++) text.append(',').append(cell(row[i]));
        }
        return text.append('\n').toString();
    }

    private static String cell(double v) {
        return Double.isNaN(v) ? "" : String.format(Locale.ROOT, "%.6g", v);
    }
}
