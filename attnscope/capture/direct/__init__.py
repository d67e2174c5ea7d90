"""The straight way from a head's output to the answer: sums, matrices and norms held fixed, nothing else."""
