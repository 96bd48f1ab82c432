"""The operator's verbs, one module per noun: command line, REST and console stand on these and nothing else."""
