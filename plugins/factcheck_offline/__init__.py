"""First-party components that need no network: decomposer, query writer, judge and primitives."""
