"""The way of a decision: measure, plan, scale, apply (ALBIC, Algorithm 1). `loop.py` says it once, in order.

Everything here is a pure core that the engine and the simulator drive alike: it knows no engine, and takes time and
storage from the ports. `background.py` alone has a thread, so that no epoch waits for a planner.
"""
