"""HTML reports that commands write into their output folder."""
