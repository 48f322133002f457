-- A made-up machine: a cluster of two processors by its coefficients, a GPU as a simulator has it, a
-- unit that this machine lacks; and what a real meter's domain feeds.
return {
  domains = { { match = "ina226*", name = "rail", feeds = "cpu:big" } },
  model = {
    { name = "a15", feeds = "cpu:big", frequency = "/sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq",
      cpus = "4-5", capacitance = 2, short = 0.1, leak = 0.05, static = 0.2,
      steps = { { mhz = 800, volts = 0.9 }, { mhz = 1800, volts = 1.1 } } },
    { unit = "gpu4", feeds = "opencl:0", frequency = "/sys/class/devfreq/*.mali/cur_freq",
      load = "/sys/class/devfreq/*.mali/load" },
    { name = "npu", frequency = "/sys/class/devfreq/npu/cur_freq", steps = { { mhz = 1, volts = 1 } } },
  },
  clocks = { { name = "gpu", steps = { { mhz = 177, volts = 0.8 }, { mhz = 600, volts = 1.0 } } } },
  units = { { name = "gpu4", clock = "gpu", power = { static = 0.1, dynamic = 1.2 } } },
}
