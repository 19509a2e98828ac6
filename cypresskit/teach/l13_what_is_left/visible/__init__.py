"""The part of the lesson that stands beside an answer: its process can see this folder alone."""
