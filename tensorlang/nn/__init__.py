"""Neural-net operators: definitions beside their schedules, and `functional` for torch.

The modules of definitions need no torch; `tensorlang.nn.functional` does.
"""
