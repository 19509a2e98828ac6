"""What those who work on cypresskit use beside it, from a clone: the fuzzer, the maker of pages, the oracle."""
