/* meter-hwmon: sensors of current and voltage, and derived power and energy. */
#ifndef METER_HWMON_H
#define METER_HWMON_H

#include "gauge.h"

/* Attributes that switch sensors on and were found off. */
typedef struct hwmon_switches {
    gauge_file *at;
    int32_t n;
} hwmon_switches;

/* adds the sensors of all chips below ROOT/sys/class/hwmon (chips.c) */
cnr_status hwmon_chips(const char *root, gauge_sensors *list, cnr_error *err);
/* Adds sensors of Odroid's INA231 drivers, switching on those that are off, which is noted in
 * `switched`; then waits two seconds for their first values (boards.c). */
cnr_status hwmon_odroid(const char *root, gauge_sensors *list, hwmon_switches *switched,
                        cnr_error *err);
/* Adds the rails of a Jetson. */
cnr_status hwmon_jetson(const char *root, gauge_sensors *list, cnr_error *err);
/* Switches sensors off that were switched on, and frees the list. */
void hwmon_switch_off(hwmon_switches *switched);

#endif
