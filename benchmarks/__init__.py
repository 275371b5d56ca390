"""Every peer and every bar, side by side in one run: `python -m benchmarks gpu` and `cpu`.

case       what is computed, on which inputs, by which contenders
checking   right answers first: outputs poisoned, error against f64
timing     calls of all contenders interleaved; device, graph and host time (GPU)
warm       everything compiled ahead, on all cores, each within a time limit
cases/     the GPU's cases, one family a file
schedules  tensorlang's side of them: pipelines and schedules
peers/     hand-written Triton kernels to compare with
cpu/       the same for the CPU: Halide, NumPy, torch
run        a whole run: warm, check, time, write
results    rows as JSON, with hardware, versions and command
bars       what must be reached, as data
report     the Markdown table;  plot  the picture
"""
