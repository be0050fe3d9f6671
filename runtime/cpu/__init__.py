"""The CPU runtime: JIT engine, thread pool, memory pool, call path and object cache."""
