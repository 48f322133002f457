package android.os;

/** Stands for Android's class, so that what names it compiles here. */
public class BatteryManager {
    public static final int BATTERY_PROPERTY_CURRENT_NOW = 2;
    public static final String EXTRA_VOLTAGE = "voltage";

    public int getIntProperty(int id) { return 0; }
}
