"""The fault lab: private servers, real host processes, injected faults, scripted clients, and a checker that decides.

Whoever is looking for one thing: `postgres`, `redis_server` and `proxy` are what faults are done to.
"""
