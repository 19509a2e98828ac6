"""Write files atomically, read files of unknown origin safely, and cache results on disk."""
