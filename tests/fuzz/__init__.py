"""In-process fuzzer: mutated samples through the pipeline and all reports (``python -m tests.fuzz``)."""
