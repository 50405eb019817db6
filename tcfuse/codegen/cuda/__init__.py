"""Loop nests to CUDA C."""
