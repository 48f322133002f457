-- The documents' results for the boards, one number in each row. W18: Hu Wang's thesis of 2018; CD:
-- the paper on CNNdroid; S16: the thesis of 2016 on Adreno 330 and Tegra K1.
--
-- Each row has its role, which was fixed before any fit. `fitted` rows give a board its parameters.
-- `predicted` rows change none. `follows` rows change none either, but other rows of the same
-- experiment already imply them (an EDP of watts and seconds that were fitted), so they count as
-- fitted. fit.lua fails if a row has another role than this file says.
local list = {}
-- A function that adds a row of that role: its name, value and source.
local function role_of(role)
  return function(name, value, from) list[#list + 1] = { name = name, value = value, from = from, role = role } end
end
local fitted, predicted, follows = role_of "fitted", role_of "predicted", role_of "follows"

-- A remark: the GPU's run is shorter than the period in which the thesis' meter adds up joules (2.4.2).
local short = "the GPU's 17 ms are a third of the period of the thesis' meter"

-- ---- W18, chapter 4: a net of 9 convolutions and 3 dense layers on the ODROID-XU3 ----
fitted("W18 table 4.1, GPU, seconds", 1.9)
fitted("W18 table 4.1, GPU, joules", 1.48)
fitted("W18 table 4.1, CPU, seconds", 11.94)
fitted("W18 table 4.1, CPU, joules", 52.12)
follows("W18 table 4.1, GPU, EDP", 2.81)
follows("W18 table 4.1, CPU, EDP", 622.31)
follows("W18 table 4.1, EDP of the CPU over the GPU's", 221)
fitted("W18 fig 4.7, our work, seconds", 1.63 / 1.22, "its joules over its watts")
fitted("W18 fig 4.7, our work, joules", 1.63)
follows("W18 fig 4.7, our work, watts", 1.22)
predicted("W18 fig 4.7, greedy, seconds", 6.59 / 5.44, "its joules over its watts")
predicted("W18 fig 4.7, greedy, watts", 5.44)
predicted("W18 fig 4.7, greedy, joules", 6.59)
predicted("W18 fig 4.7, EDP of greedy over that of our work", 3.67)
predicted("W18 fig 4.7, seconds of our work over greedy's, less 1", 0.097, "its own joules and watts make 0.103")

-- ---- W18, chapter 3: single operators, on 100 x 256 x 256 numbers but for the products ----
predicted("W18 table 3.1, product on the CPU, EDP", 1402.763)
fitted("W18 table 3.1, scalar product on the GPU, EDP", 2.663)
fitted("W18 table 3.1, float4 product on the GPU, EDP", 0.729)
predicted("W18 fig 3.2, product on the CPU over scalar, seconds", 16.82)
follows("W18 fig 3.2, scalar product over float4, seconds", 2, "about")
predicted("W18 fig 3.2, product on the CPU over the GPU, watts", 2, "about")
predicted("W18 table 3.1, EDP of the CPU over float4's", 2000, "nearly")
fitted("W18 fig 3.4, im2col on the GPU, watts", 1.511)
fitted("W18 table 3.2, im2col on the GPU, EDP", 0.033)
fitted("W18 fig 3.4, im2col on the GPU, seconds", (0.033 / 1.511) ^ 0.5, "from EDP and watts")
fitted("W18 table 3.2, im2col on the CPU, EDP", 1.792)
fitted("W18 fig 3.4, im2col on the CPU over the GPU, seconds", 5, "about")
fitted("W18 fig 3.4, im2col on the CPU, seconds", 5 * (0.033 / 1.511) ^ 0.5, "the GPU is about 5 times as fast")
follows("W18 fig 3.4, im2col on the CPU over the GPU, joules", 10)
follows("W18 table 3.2, EDP of im2col on the CPU over the GPU's", 54)
fitted("W18 table 3.3, pooling on the CPU, EDP", 4.125)
predicted("W18 table 3.3, pooling on the GPU, EDP", 0.012)
predicted("W18 fig 3.5, pooling on the CPU over the GPU, seconds", 12)
predicted("W18 fig 3.5, pooling on the CPU over the GPU, joules", 28)
predicted("W18 table 3.3, EDP of pooling on the CPU over the GPU's", 340)
fitted("W18 table 3.4, ReLU on the CPU, EDP", 0.034)
predicted("W18 table 3.4, ReLU on the GPU, EDP", 0.0003, short)
predicted("W18 fig 3.6, ReLU on the CPU over the GPU, seconds", 6)
predicted("W18 fig 3.6, ReLU on the CPU over the GPU, joules", 22, short)
predicted("W18 fig 3.6, ReLU on the CPU over the GPU, watts", 3.5, "2/7 the other way round; " .. short)
predicted("W18 table 3.4, EDP of ReLU on the CPU over the GPU's", 110, short)

-- ---- W18, chapter 3: nets ----
predicted("W18 table 3.6, LeNet-5 on the CPU, EDP", 0.0982)
-- 17 ms, by EDP and watts, where the thesis adds up joules each 50 ms.
predicted("W18 table 3.6, LeNet-5 on the GPU, EDP", 0.00007, short)
predicted("W18 fig 3.9, LeNet-5 on the GPU, watts", 0.2413, short)
predicted("W18 fig 3.9, LeNet-5 on the CPU over the GPU, seconds", 11)
predicted("W18 fig 3.9, LeNet-5 on the CPU over the GPU, joules", 120, short)
predicted("W18 table 3.6, EDP of LeNet-5 on the CPU over the GPU's", 1400, short)
fitted("W18 fig 3.11, AlexNet on the GPU, watts", 1.31)
fitted("W18 fig 3.12, AlexNet on the GPU, seconds", 11 * 0.58, "over 11 times the Snapdragon 820's")
fitted("W18 fig 3.11, AlexNet on the CPU over the GPU, seconds", 15)
fitted("W18 fig 3.11, AlexNet on the CPU over the GPU, watts", 2, "the GPU's is half")
follows("W18 fig 3.11, AlexNet on the CPU over the GPU, joules", 30)
follows("W18 table 3.8, EDP of AlexNet on the CPU over the GPU's", 472)
fitted("W18 fig 3.19, dense over SpMV on the GPU, seconds", 2.63)
predicted("W18 fig 3.19, dense over SpMV on the GPU, joules", 3, "about")
fitted("W18 fig 3.19, dense over SpMV on the CPU, seconds", 7, "about")
predicted("W18 fig 3.19, dense over SpMV on the CPU, joules", 7, "about")

-- ---- W18, table 5.1: the monitoring application at fixed frequencies of the GPU ----
fitted("W18 table 5.1, 177 MHz, seconds", 3.27789)
fitted("W18 table 5.1, 177 MHz, watts", 0.42)
fitted("W18 table 5.1, 543 MHz, seconds", 1.20785)
fitted("W18 table 5.1, 543 MHz, watts", 1.71)
fitted("W18 fig 5.4, watts at 266 MHz over 350 MHz", 1)
predicted("W18 table 5.1, 480 MHz, seconds", 1.29283)
predicted("W18 table 5.1, 480 MHz, watts", 1.43)
predicted("W18 table 5.1, 480 MHz, joules", 1.85)

-- ---- AlexNet on other boards ----
fitted("W18 3.2, AlexNet on Snapdragon 820's GPU, seconds", 0.58)
fitted("CD 4.3, AlexNet on HTC One M9's GPU, watts", 0.523)
fitted("CD 4.3, AlexNet on HTC One M9's GPU, joules", 0.4)
fitted("CD 4.3, AlexNet on HTC One M9's CPU, watts", 2.338)
fitted("CD 4.3, AlexNet on HTC One M9's CPU, joules", 51.6)

-- ---- FastPoorNet on Snapdragon 801 ----
fitted("S16 table 3.1, FastPoorNet's convolutions on the CPU, seconds", 1.03716)
fitted("S16 table 3.1, FastPoorNet on the CPU, seconds", 1.307)
follows("S16 table 3.1, FastPoorNet's share of convolutions", 0.7934)
fitted("S16 3.4, FastPoorNet with convolutions on the GPU, seconds", 0.61)
follows("S16 table 3.3, FastPoorNet, speed-up", 2.131)
fitted("S16 fig 3.4, from device to device, GB/s", 8.4)
fitted("S16 fig 3.4, from host to device, GB/s", 8.4 / 3.47)
fitted("WX18 4, product on the GPU, GFLOP/s", 7.21)
fitted("WX18 4, product on the CPU, GFLOP/s", 0.44)
follows("WX18 4, product on the GPU over the CPU, GFLOP/s", 16.39)
predicted("S16 fig 3.4, from device to host, GB/s", 8.4 / 4.85)
for i, ms in ipairs { 245.99, 242.82, 83.98, 69.67, 105.85, 103.48, 185.347 } do
  predicted(("S16 table 3.2, convolution %d on the CPU, seconds"):format(i - 1), ms * 1e-3)
end
return list
