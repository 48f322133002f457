-- What documents say of the boards: a row a number. W18: Hu Wang's thesis of 2018; CD: the paper on
-- CNNdroid; S16: the thesis of 2016 on Adreno 330 and Tegra K1.
local function row(name, value, from) return { name = name, value = value, from = from } end

return {
  -- chapter 4: a net of 9 convolutions and 3 dense layers on the ODROID-XU3
  row("W18 table 4.1, GPU, seconds", 1.9),
  row("W18 table 4.1, GPU, joules", 1.48),
  row("W18 table 4.1, CPU, seconds", 11.94),
  row("W18 table 4.1, CPU, joules", 52.12),
  row("W18 fig 4.7, our work, seconds", 1.63 / 1.22, "its joules over its watts"),
  row("W18 fig 4.7, our work, joules", 1.63),
  row("W18 fig 4.7, greedy, seconds", 6.59 / 5.44, "its joules over its watts"),
  row("W18 fig 4.7, greedy, watts", 5.44),
  row("W18 fig 4.7, greedy, joules", 6.59),
  row("W18 fig 4.7, EDP of greedy over that of our work", 3.67),
  -- chapter 3: EDP of single operators on 100 x 256 x 256 numbers
  row("W18 fig 3.4, im2col on the GPU, watts", 1.511),
  row("W18 fig 3.4, im2col on the GPU, seconds", (0.033 / 1.511) ^ 0.5, "from EDP and watts"),
  row("W18 fig 3.4, im2col on the CPU, seconds", 5 * (0.033 / 1.511) ^ 0.5, "the GPU is about 5 times as fast"),
  row("W18 table 3.3, pooling on the GPU, EDP", 0.012),
  row("W18 table 3.4, ReLU on the GPU, EDP", 0.0003),
  -- table 5.1: the monitoring application at fixed frequencies of the GPU
  row("W18 table 5.1, 177 MHz, seconds", 3.27789), row("W18 table 5.1, 177 MHz, watts", 0.42),
  row("W18 table 5.1, 543 MHz, seconds", 1.20785), row("W18 table 5.1, 543 MHz, watts", 1.71),
  row("W18 table 5.1, 480 MHz, seconds", 1.29283), row("W18 table 5.1, 480 MHz, watts", 1.43),
  row("W18 table 5.1, 480 MHz, joules", 1.85),
  -- AlexNet on other boards
  row("W18 3.4, AlexNet on Snapdragon 820's GPU, seconds", 0.58),
  row("CD 4.3, AlexNet on HTC One M9's GPU, watts", 0.523),
  row("CD 4.3, AlexNet on HTC One M9's GPU, joules", 0.4),
  row("CD 4.3, AlexNet on HTC One M9's CPU, watts", 2.338),
  row("CD 4.3, AlexNet on HTC One M9's CPU, joules", 51.6),
  -- FastPoorNet on Snapdragon 801
  row("S16 table 3.1, FastPoorNet's convolutions on the CPU, seconds", 1.03716),
  row("S16 table 3.1, FastPoorNet on the CPU, seconds", 1.307),
  row("S16 3.4, FastPoorNet with convolutions on the GPU, seconds", 0.61),
  row("S16 3.4, bandwidth of the GPU, GB/s", 2.84),
}
