"""The reports in HTML that commands write into their folder of results."""
