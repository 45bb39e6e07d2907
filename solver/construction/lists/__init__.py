"""The list scheduler: one run over arrays, compiled or, where nothing is compiled yet, as it stands."""
