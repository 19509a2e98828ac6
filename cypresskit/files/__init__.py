"""Files: written atomically, and read with care where others have written them."""
