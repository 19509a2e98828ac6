"""The workbench of the site, in the reader's browser."""
