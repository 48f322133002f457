package cnnrun.app;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Reader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Named columns of numbers from a CSV. Lines with # are comments; an empty cell is NaN. */
public final class Table {
    private final List<String> names;
    private final List<double[]> rows = new ArrayList<>();

    private Table(List<String> names) { this.names = names; }

    public static Table read(Reader from) throws IOException {
        BufferedReader lines = new BufferedReader(from);
        Table table = null;
        int number = 0;
        for (String line; (line = lines.readLine()) != null;) {
            number++;
            if (line.isEmpty() || line.startsWith("#")) continue;
            String[] cells = line.split(",", -1);
            if (table == null) table = new Table(Arrays.asList(cells));
            else table.add(cells, number);
        }
        if (table == null) throw new IOException("an empty table; expected a line of names");
        return table;
    }

    private void add(String[] cells, int line) throws IOException {
        if (cells.length != names.size())
            throw new IOException("line " + line + " has " + cells.length + " cells; expected " +
                                  names.size());
        double[] row = new double[cells.length];
        for (int i = 0; i < row.length; i++) row[i] = number(cells[i], line);
        rows.add(row);
    }

    private static double number(String cell, int line) throws IOException {
        if (cell.isEmpty() || cell.equals("false")) return cell.isEmpty() ? Double.NaN : 0;
        if (cell.equals("true")) return 1;
        try {
            return Double.parseDouble(cell);
        } catch (NumberFormatException e) {
            throw new IOException("line " + line + ": '" + cell + "'; expected a number");
        }
    }

    public List<String> names() { return names; }

    /** A copy of a column; null: no column has this name. */
    public double[] column(String name) {
        int at = names.indexOf(name);
        if (at < 0) return null;
        double[] out = new double[rows.size()];
        for (int i = 0; i < out.length; i++) out[i] = rows.get(i)[at];
        return out;
    }
}
